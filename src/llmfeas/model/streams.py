"""Parallel residual streams as public code runs them (Gemma 3n): one of them passes a layer's branches, a small router
says what the others take of it; a low-rank branch stands beside attention."""

from __future__ import annotations

from ..autograd.basic import (
    add,
    added_in_place,
    cast,
    clamped,
    copied,
    divided,
    less,
    mean,
    mul,
    power,
    scaled,
    shifted,
    unary_of_output,
)
from ..autograd.graph import Tensor
from ..autograd.products import matmul
from ..autograd.views import copy, joined, overwritten, repeated, sliced, spread_heads
from ..catalog.architecture import Architecture
from ..record import dataclass
from .activations import activated, activation_kind
from .beside import LayerInput, StreamMixing, StreamProjections
from .context import Context
from .layer import Branch, Layer, LayerProgram
from .mixers.rotation import Around
from .norm import NormProgram
from .operator import Operator


class StreamsProgram:
    """The embedding projected into further streams as large as it, and the mean of all behind the last layer."""

    __slots__ = ("context", "projections", "streams")

    def __init__(self, context: Context, operator: StreamProjections) -> None:
        self.context, self.streams = context, operator.streams
        self.projections = context.made(operator.weights).projections

    def enter(self, embedded: Tensor) -> Tensor:
        """All streams in one tensor."""
        return joined(self.context.recorder, *self._alike(embedded, "stream_in", [embedded] * (self.streams - 1)))

    def leave(self, streams: Tensor) -> Tensor:
        """Their mean."""
        recorder, n = self.context.recorder, streams.n // self.streams
        first, *others = (sliced(recorder, streams, n) for _ in range(self.streams))
        found = self._alike(first, "stream_out", others)
        together = joined(recorder, *found)
        return mean(recorder, together, n)

    def _alike(self, first: Tensor, name: str, others: list[Tensor]) -> list[Tensor]:
        """Projections of others, each brought to the magnitude of the first."""
        recorder = self.context.recorder
        target = unary_of_output(recorder, self._size(first))
        found = [first]
        for place, other in enumerate(others):
            projected = cast(recorder, self.context.apply(self.projections[f"{name}_{place}"], other), first.width)
            size = unary_of_output(recorder, clamped(recorder, self._size(projected), 1))
            found.append(divided(recorder, mul(recorder, projected, target), size))
        return found

    def _size(self, x: Tensor) -> Tensor:
        recorder = self.context.recorder
        return mean(recorder, power(recorder, x), self.context.sizes.bs)


@dataclass(frozen=True, slots=True)
class StreamLayer(Layer):
    """Attention and a feed-forward on one of some streams."""

    mixing: StreamMixing = StreamMixing(0, 0, 0)
    gate: LayerInput = LayerInput(0, 0)
    activation: str = ""

    @property
    def ends(self) -> tuple[Operator, ...]:
        """Routers and the low-rank branch; gate, projection, norm of the layer's own embedding."""
        return self.mixing, self.gate

    def program(self, context: Context) -> StreamLayerProgram:
        """Prediction, branches, correction."""
        return StreamLayerProgram(context, self)


class StreamLayerProgram(LayerProgram):
    """Gemma3nTextDecoderLayer."""

    __slots__ = ("kind", "norms", "projections", "scale", "streams", "width")

    def __init__(self, context: Context, layer: StreamLayer) -> None:
        super().__init__(context, layer)
        mixing, gate = context.made(layer.mixing.weights), context.made(layer.gate.weights)
        self.projections = {**mixing.projections, **gate.projections}
        vectors = {**mixing.parameters, **gate.parameters}
        self.scale, self.streams, self.width = vectors["stream_scale"], layer.mixing.streams, layer.gate.width
        self.kind = activation_kind(context.traits.activation, layer.activation)
        self.norms = {
            name: NormProgram(layer.mixing.hidden, vectors[name], None, context.traits.norm)
            for name in ("stream_norm", "branch_norm", "layer_out_norm")
        }

    def __call__(self, x: Tensor, around: Around) -> Tensor:
        """All streams behind the layer."""
        recorder = self.context.recorder
        attended, fed = self.branches
        n = x.n // self.streams
        predictions = self._predicted(x, n)
        active = sliced(recorder, predictions, n)
        normed = attended.normed(recorder, active)
        beside = add(recorder, normed, self._branch(normed))
        attention, _scores = attended.run(normed, around)
        attention = self._joining(attention, attended.behind)
        gated = add(recorder, active, attention)
        both = scaled(recorder, add(recorder, gated, beside))
        hidden = fed.normed(recorder, both)
        hidden = fed.run(hidden)
        normed_fed = self._joining(hidden, fed.behind)
        through = add(recorder, both, normed_fed)
        corrected = self._corrected(predictions, through, n)
        return self._with_input(corrected, around, n)

    def _branch(self, x: Tensor) -> Tensor:
        low = self.context.apply(self.projections["branch_in"], x)
        low = self.context.apply(self.projections["branch_out"], low)
        return self.norms["branch_norm"](self.context.recorder, low)

    def _routed(self, x: Tensor) -> Tensor:
        recorder = self.context.recorder
        routed = scaled(recorder, self.norms["stream_norm"](recorder, x))
        routed = self.context.apply(self.projections["stream_router"], routed)
        return cast(recorder, unary_of_output(recorder, cast(recorder, routed, 4)), x.width)

    def _predicted(self, x: Tensor, n: int) -> Tensor:
        """Every stream as all of them say together."""
        recorder = self.context.recorder
        routed = self._routed(sliced(recorder, x, n))
        shares = copy(recorder, self.context.apply(self.projections["stream_predictions"], routed))
        narrow = cast(recorder, x, 2) if recorder.autocast else x
        predictions = matmul(recorder, narrow, shares, x.n)
        predictions = added_in_place(recorder, predictions, x)
        return cast(recorder, copy(recorder, predictions), x.width)

    def _corrected(self, predictions: Tensor, through: Tensor, n: int) -> Tensor:
        """Every stream after what came through the branches."""
        recorder = self.context.recorder
        routed = self._routed(through)
        new = less(recorder, through, sliced(recorder, predictions, n))
        new = repeated(recorder, new, self.streams)
        shares = shifted(recorder, self.context.apply(self.projections["stream_corrections"], routed))
        corrected = mul(recorder, new, shares)
        return added_in_place(recorder, corrected, predictions)

    def _with_input(self, corrected: Tensor, around: Around, n: int) -> Tensor:
        """The layer's own embedding, gated by the first stream, on all others."""
        context, recorder = self.context, self.context.recorder
        assert around.inputs is not None
        first = copied(recorder, sliced(recorder, corrected, n))
        first = mul(recorder, first, self.scale)
        first = activated(recorder, context.apply(self.projections["layer_gate"], first), self.kind)
        first = mul(recorder, first, sliced(recorder, around.inputs, context.sizes.bs * self.width))
        first = self.norms["layer_out_norm"](recorder, context.apply(self.projections["layer_out"], first))
        return overwritten(recorder, corrected, spread_heads(recorder, first, self.streams - 1))


def with_streams(a: Architecture, branches: tuple[Branch, ...]) -> StreamLayer:
    """A layer of an architecture that has parallel streams."""
    assert a.altup is not None
    assert a.per_layer_embedding is not None
    mixing = StreamMixing(a.hidden, a.altup.streams, a.altup.rank)
    return StreamLayer(
        branches, mixing=mixing, gate=LayerInput(a.hidden, a.per_layer_embedding.width), activation=a.activation
    )
