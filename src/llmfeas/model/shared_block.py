"""A transformer block that several layers run with one set of weights, and what each use has of its own (Zamba)."""

from __future__ import annotations

from typing import ClassVar, Final

from ..autograd.basic import add
from ..autograd.graph import Parameter, Tensor
from ..autograd.views import joined
from ..catalog.architecture import Architecture, LayerKind
from ..catalog.parts import SharedBlock
from ..record import dataclass, replace
from .context import Context, Linear
from .feedforward import feed_forward
from .layer import Branch, BranchProgram, Layer, LayerProgram
from .mixers.attention import attention
from .mixers.rotation import Around
from .norm import norm
from .operator import Operator
from .weight import Weight, column_linear, row_linear

Adapters = dict[tuple[str, str], Parameter]
"""By projection and factor."""

_FACTORS: Final = ("down", "up", "magnitude", "scale")


@dataclass(frozen=True, slots=True)
class BlockUse(Operator):
    """The projection from what the block makes to what the mixer reads too, and pairs that adapt the block."""

    title: ClassVar[str] = "blocks that layers share"
    is_common: ClassVar[bool] = False
    hidden: int
    pairs: tuple[tuple[str, int, int], ...] = ()
    """Projections of the block that a low-rank pair adds to: name, inputs, outputs."""
    rank: int = 0
    uses: int = 1
    """Of its block: each copy of it has the pairs of all of them, which adapters reach in each copy."""

    @property
    def weights(self) -> tuple[Weight, ...]:
        """The projection, and two factors a pair."""
        found = row_linear("use", self.hidden, self.hidden)
        for name, inputs, outputs in self.pairs:
            found += column_linear(f"use_{name}_down", inputs, self.rank, split="none")
            found += column_linear(f"use_{name}_up", self.rank, outputs, inner=True)
        return tuple(replace(weight, pairs=self.uses) if weight.name != "use" else weight for weight in found)

    def program(self, context: Context) -> BlockUseProgram:
        """Its projections."""
        return BlockUseProgram(context, self)


class BlockUseProgram:
    """The projections of one use: its own, and the pairs that it lends to the block."""

    __slots__ = ("context", "own", "pairs")

    def __init__(self, context: Context, operator: BlockUse) -> None:
        made = context.made(operator.weights).projections
        self.context = context
        self.own = made["use"]
        self.pairs = {name: (made[f"use_{name}_down"], made[f"use_{name}_up"]) for name, _, _ in operator.pairs}

    def __call__(self, x: Tensor) -> Tensor:
        """What the block made, projected."""
        return self.context.apply(self.own, x)


def with_shared_block(a: Architecture, block: SharedBlock, kind: LayerKind, own: tuple[Branch, ...]) -> SharingLayer:
    """A layer whose own branch, a mixer, also reads what the shared block makes of stream and embedding."""
    both = replace(attention(a, kind), reads=2 * a.hidden)
    fed = feed_forward(a, a.ffn or 0)
    pairs: tuple[tuple[str, int, int], ...] = ()
    if block.adapter_rank:
        pairs = (("gate_up", a.hidden, 2 * fed.width),)
        if block.adapts_attention:
            wide = 2 * a.hidden
            pairs = (*((name, wide, both.q_width) for name in ("q", "k", "v")), *pairs)
    one = norm(a)
    shared = (
        Branch(both, True, replace(one, width=2 * a.hidden), weight_set=kind.weight_set),
        Branch(fed, False, one, weight_set=kind.weight_set),
    )
    uses = sum(each.weight_set == kind.weight_set for each in a.layer_kinds)
    return SharingLayer((*shared, *own), use=BlockUse(a.hidden, pairs, block.adapter_rank, uses))


@dataclass(frozen=True, slots=True)
class SharingLayer(Layer):
    """A shared block's two branches, then the layer's own one."""

    use: BlockUse = BlockUse(0)
    copies_shared: ClassVar[bool] = True

    @property
    def ends(self) -> tuple[Operator, ...]:
        """The projection behind the block."""
        return (self.use,)

    def program(self, context: Context) -> SharingProgram:
        """The block, then the mixer on the stream and what the block made."""
        return SharingProgram(context, self)


class SharingProgram(LayerProgram):
    """ZambaHybridLayer: block, projection, mixer."""

    __slots__ = ("adapters", "use")

    def __init__(self, context: Context, layer: SharingLayer) -> None:
        super().__init__(context, layer)
        self.adapters = [self._own_adapters(branch) for branch in self.branches[:-1]]
        self.use = layer.use.program(context)

    def _own_adapters(self, branch: BranchProgram) -> Adapters:
        """Adapters of the block's projections, which each use has of its own: the first those that came with them."""
        found: Adapters = {}
        for name, linear in _projections(branch).items():
            for factor in _FACTORS:
                known: Parameter | None = getattr(linear, factor)
                if known is not None:
                    first = any(known is each for each in branch.weights)
                    found[name, factor] = known if first else self.context.adapter(*known.shape)
        own = set(map(id, found.values()))
        branch.weights = [weight for weight in branch.weights if id(weight) not in own]
        return found

    def __call__(self, x: Tensor, around: Around) -> Tensor:
        """The stream behind the layer."""
        recorder = self.context.recorder
        mixer = self.branches[-1]
        hidden = add(recorder, x, self.use(self._block(x, around)))
        hidden, _scores = mixer.run(mixer.normed(recorder, hidden), around)
        return add(recorder, x, hidden)

    def _block(self, x: Tensor, around: Around) -> Tensor:
        """What the shared block makes of the stream beside the embedding."""
        recorder = self.context.recorder
        attended, fed, _own = self.branches
        assert around.embedded is not None
        hidden = joined(recorder, x, around.embedded)
        hidden = attended.normed(recorder, hidden)
        self._lend(0)
        hidden, weights = attended.run(hidden, around)
        self._returned(weights)
        hidden = fed.normed(recorder, hidden)
        self._lend(1)
        return fed.run(hidden)  # type: ignore[no-any-return]

    def _lend(self, place: int) -> None:
        """Have the block's projections add this use's pairs, with its adapters."""
        known = _projections(self.branches[place])
        for (name, factor), adapter in self.adapters[place].items():
            setattr(known[name], factor, adapter)
        for name, pair in self.use.pairs.items():
            if name in known:
                known[name].beside = pair


def _projections(branch: BranchProgram) -> dict[str, Linear]:
    return branch.run.projections  # type: ignore[attr-defined,no-any-return]
