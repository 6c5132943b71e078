"""Embeddings of each layer as public code runs them (Gemma 4): made of tokens and embedding once, gated into the stream
behind each layer."""

from __future__ import annotations

from ..autograd.basic import add, mul, scaled, scaled_in_place
from ..autograd.graph import Tensor
from ..autograd.products import embedding
from ..autograd.views import sliced
from ..catalog.architecture import Architecture
from ..record import dataclass
from .activations import activated, activation_kind
from .beside import LayerInput, LayerTables
from .context import Context
from .layer import Branch, Layer, SerialProgram
from .mixers.rotation import Around
from .norm import NormProgram
from .operator import Operator


class TablesProgram:
    """A look-up of all layers at once, where there is a table, and a projection of the embedding, normed and added."""

    __slots__ = ("context", "norm", "projection", "table")

    def __init__(self, context: Context, operator: LayerTables) -> None:
        made = context.made(operator.weights)
        self.context = context
        self.table, self.projection = made.parameters.get("layer_embedding"), made.projections["layer_projection"]
        self.norm = NormProgram(operator.width, made.parameters["layer_norm"], None, context.traits.norm)

    def __call__(self, ids: Tensor, embedded: Tensor) -> Tensor:
        """What each layer gets, side by side."""
        recorder = self.context.recorder
        looked_up = None if self.table is None else scaled(recorder, embedding(recorder, self.table, ids))
        projected = self.norm(recorder, scaled(recorder, self.context.apply(self.projection, embedded)))
        if looked_up is None:
            return projected
        return scaled(recorder, add(recorder, projected, looked_up))


@dataclass(frozen=True, slots=True)
class LayerWithInput(Layer):
    """Branches, then its part of the embeddings of each layer."""

    gate: LayerInput = LayerInput(0, 0)
    activation: str = ""
    scales: bool = True
    """All of it is multiplied by a number, in place."""

    @property
    def ends(self) -> tuple[Operator, ...]:
        """Gate, projection, norm."""
        return (self.gate,)

    def program(self, context: Context) -> InputProgram:
        """Its branches, then what its own embedding adds."""
        return InputProgram(context, self)


class InputProgram(SerialProgram):
    """The stream through a gate, times the layer's embedding, projected, normed and added; all of it times a number."""

    __slots__ = ("gate", "kind", "norm", "out", "scales", "width")

    def __init__(self, context: Context, layer: LayerWithInput) -> None:
        super().__init__(context, layer)
        made = context.made(layer.gate.weights)
        self.gate, self.out = made.projections["layer_gate"], made.projections["layer_out"]
        self.norm = NormProgram(layer.gate.hidden, made.parameters["layer_out_norm"], None, context.traits.norm)
        self.scales = layer.scales
        self.kind, self.width = activation_kind(context.traits.activation, layer.activation), layer.gate.width

    def __call__(self, x: Tensor, around: Around) -> Tensor:
        """The stream behind the layer."""
        context, recorder = self.context, self.context.recorder
        residual = super().__call__(x, around)
        assert around.inputs is not None
        hidden = activated(recorder, context.apply(self.gate, residual), self.kind)
        hidden = mul(recorder, hidden, sliced(recorder, around.inputs, context.sizes.bs * self.width))
        hidden = self.norm(recorder, context.apply(self.out, hidden))
        ahead = add(recorder, residual, hidden)
        return scaled_in_place(recorder, ahead) if self.scales else ahead


def with_input(a: Architecture, branches: tuple[Branch, ...]) -> LayerWithInput:
    """A layer of an architecture that has embeddings of each layer."""
    assert a.per_layer_embedding is not None
    each = a.per_layer_embedding
    gate = LayerInput(a.hidden, each.width)
    return LayerWithInput(branches, gate=gate, activation=a.activation, scales=each.rows > 0)
