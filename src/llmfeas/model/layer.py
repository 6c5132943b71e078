"""A layer of a decoder: branches of the residual stream, each a mixer or a feed-forward with its norms."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any, ClassVar

from ..autograd.basic import add, added_in_place, cast, dropout, scaled
from ..autograd.graph import Tensor
from ..autograd.recorder import Recorder
from ..record import dataclass, replace
from .beside import passing_by
from .context import Context
from .mixers.rotation import Around
from .norm import Norm, NormProgram
from .operator import Operator, Program
from .weight import Weight


@dataclass(frozen=True, slots=True)
class Branch:
    """An operator on the residual stream, which what it makes is added to."""

    operator: Operator
    mixes: bool
    """It mixes tokens; otherwise it works on each of them alone."""
    before: Norm | None = None
    behind: Norm | None = None
    beside: tuple[Operator, ...] = ()
    """Held with it; what they make is too small to be in its program."""
    shortcut: Operator | None = None
    """Reads what `operator` reads, and is added to the stream at the end of the layer."""
    weight_set: int = 0
    """The number of its weights where other layers run the same ones; 0: they are its layer's own."""

    @property
    def operators(self) -> tuple[Operator, ...]:
        """All of it, in the order of the forward pass."""
        parts = (self.before, *self.beside, self.shortcut, self.operator, self.behind)
        return tuple(part for part in parts if part is not None)

    def changed(self, change: Callable[[Operator], Operator]) -> Branch:
        """The branch with its operators changed; norms stay as they are."""
        return replace(
            self,
            operator=change(self.operator),
            beside=tuple(map(change, self.beside)),
            shortcut=change(self.shortcut) if self.shortcut is not None else None,
        )


@dataclass(frozen=True, slots=True)
class Layer:
    """Branches one after the other, or two in `parallel` on one stream, with one norm or each its own."""

    branches: tuple[Branch, ...]
    parallel: bool = False
    copies_shared: ClassVar[bool] = False
    """Public code builds what it shares once more, with tied weights: adapters are its own."""

    @property
    def operators(self) -> tuple[Operator, ...]:
        """All of it, in the order of the forward pass."""
        return (*(operator for branch in self.branches for operator in branch.operators), *self.ends)

    @property
    def ends(self) -> tuple[Operator, ...]:
        """What it has besides its branches."""
        return ()

    @property
    def own(self) -> tuple[Operator, ...]:
        """What no other layer runs."""
        return (*self._of_sets(False), *self.ends)

    @property
    def shared(self) -> tuple[Operator, ...]:
        """What other layers run too."""
        return self._of_sets(True)

    @property
    def weight_set(self) -> int:
        """The number of the weights that it shares with other layers; 0: there are none."""
        return max((branch.weight_set for branch in self.branches), default=0)

    def _of_sets(self, shared: bool) -> tuple[Operator, ...]:
        branches = [branch.operators for branch in self.branches if (branch.weight_set > 0) == shared]
        return tuple(chain.from_iterable(branches))

    @property
    def weights(self) -> tuple[Weight, ...]:
        """All of them, in the order of the forward pass."""
        return tuple(weight for operator in self.operators for weight in operator.weights)

    @property
    def window(self) -> int | None:
        """Tokens that its attention sees at most; None: all."""
        return next((op.window for op in self.operators if op.window is not None), None)

    def changed(self, change: Callable[[Operator], Operator]) -> Layer:
        """The layer with each of its operators changed; norms stay as they are."""
        return replace(self, branches=tuple(branch.changed(change) for branch in self.branches))

    def apart(self) -> Layer:
        """The layer as if its weights were its own."""
        return replace(self, branches=tuple(replace(branch, weight_set=0) for branch in self.branches))

    def program(self, context: Context) -> LayerProgram:
        """Its branches as the implementation runs them on the stream."""
        if self.parallel:
            return ParallelProgram(context, self)
        shortcut = any(branch.shortcut is not None for branch in self.branches)
        if shortcut and context.traits.experts_join_dense:
            return BesideProgram(context, self)
        return (ShortcutProgram if shortcut else SerialProgram)(context, self)


class BranchProgram:
    """What a branch runs."""

    __slots__ = ("before", "behind", "mixes", "run", "shortcut", "weights")

    def __init__(self, context: Context, branch: Branch) -> None:
        first = len(context.weights)
        self.mixes = branch.mixes
        self.before = branch.before.program(context) if branch.before is not None else None
        by = passing_by(context, branch.beside)
        run: Program = branch.operator.program(context)
        self.run: Program = (lambda x, *rest: run(by(x), *rest)) if branch.beside else run
        self.shortcut: Program | None = branch.shortcut.program(context) if branch.shortcut is not None else None
        self.behind = branch.behind.program(context) if branch.behind is not None else None
        self.weights = context.weights[first:]

    def normed(self, recorder: Recorder, x: Tensor) -> Tensor:
        """The stream as the branch reads it."""
        return x if self.before is None else self.before(recorder, x)


def _of_branch(context: Context, branch: Branch, place: int) -> BranchProgram:
    """What a branch runs: the program that an earlier layer has where both run one set of weights.

    Its weights then belong to the later layer, in whose backward pass their gradients first arrive.
    """
    if not branch.weight_set:
        return BranchProgram(context, branch)
    found: BranchProgram | None = context.shared.get((branch.weight_set, place))
    if found is None:
        found = context.shared[branch.weight_set, place] = BranchProgram(context, branch)
    for weight in found.weights:
        weight.place = context.place
    return found


class LayerProgram:
    """A layer on the stream. Its names are those of the public code: they decide what is alive in forward."""

    __slots__ = ("branches", "context", "scores", "windowed")

    def __init__(self, context: Context, layer: Layer) -> None:
        self.context = context
        self.scores: Tensor | None = None
        """Attention weights that the code returns beside the stream, named until the next layer has returned."""
        self.windowed = layer.window is not None
        if context.traits.layer_buffer_bytes:
            context.buffers.append(context.recorder.new(context.traits.layer_buffer_bytes, 1))
        self.branches = [_of_branch(context, branch, place) for place, branch in enumerate(layer.branches)]

    def __call__(self, x: Tensor, around: Around) -> Tensor:
        """The stream behind the layer."""
        raise NotImplementedError

    def _returned(self, weights: Tensor | None) -> None:
        if self.context.traits.returns_scores and self.context.recorder.replay is None:
            self.scores = weights

    def _joining(self, x: Tensor, norm: NormProgram | None) -> Tensor:
        """What a branch passes through before it joins the stream."""
        context, recorder = self.context, self.context.recorder
        x = dropout(recorder, x, context.recipe.drop_residual)
        if norm is not None:
            x = norm(recorder, x)
        if context.traits.scales_residual:
            x = scaled(recorder, x)
        return x


class SerialProgram(LayerProgram):
    """One branch after the other, with norms before, behind, or both."""

    __slots__ = ()

    def __call__(self, x: Tensor, around: Around) -> Tensor:
        """The stream behind the layer; scores are named until then."""
        context, recorder = self.context, self.context.recorder
        residual = hidden = x
        wide, sums = context.traits.residual_fp32, context.traits.norms_sum
        for branch in self.branches:
            if branch.before is not None:
                hidden = branch.before(
                    recorder, cast(recorder, residual, context.recipe.weight_bytes) if wide else residual
                )
            if wide:
                residual = cast(recorder, residual, 4)
            if branch.mixes:
                hidden, weights = branch.run(hidden, around)
                self._returned(weights)
            else:
                hidden = branch.run(hidden)
            last = branch.behind if branch.before is None and sums != "no" else None
            hidden = self._joining(hidden, branch.behind if last is None else None)
            if context.traits.names_attended and branch.mixes:
                _attended = hidden
            made = hidden if last is not None and sums == "beside" else None
            hidden = add(recorder, residual, hidden)
            if last is not None:
                hidden = last(recorder, hidden)
            del made
            residual = hidden
        return hidden


class ShortcutProgram(LayerProgram):
    """Branches one after the other, with experts on a shortcut around those that follow them (LongCat-Flash)."""

    __slots__ = ()

    def __call__(self, x: Tensor, around: Around) -> Tensor:
        """The stream behind the layer; the shortcut is named until then."""
        recorder = self.context.recorder
        hidden = x
        shortcut: Tensor | None = None
        for branch in self.branches:
            if branch.mixes:
                x = self._attended(branch, hidden, around)
                continue
            if branch.shortcut is None:
                hidden = branch.run(branch.normed(recorder, x))
            else:
                hidden = branch.normed(recorder, x)
                shortcut = branch.shortcut(hidden)
                hidden = branch.run(hidden)
            hidden = add(recorder, x, self._joining(hidden, branch.behind))
        return hidden if shortcut is None else add(recorder, hidden, shortcut)

    def _attended(self, branch: BranchProgram, x: Tensor, around: Around) -> Tensor:
        recorder = self.context.recorder
        hidden = branch.normed(recorder, x)
        hidden, _weights = branch.run(hidden, around)
        return add(recorder, x, self._joining(hidden, branch.behind))


class BesideProgram(SerialProgram):
    """A mixer, then a dense feed-forward beside experts that read the stream itself; norms join what both make (Gemma
    4)."""

    __slots__ = ()

    def __call__(self, x: Tensor, around: Around) -> Tensor:
        """The stream behind the layer."""
        recorder = self.context.recorder
        attended, fed = self.branches
        hidden, _weights = attended.run(attended.normed(recorder, x), around)
        residual = add(recorder, x, self._joining(hidden, attended.behind))
        hidden = fed.run(fed.normed(recorder, residual))
        experts: Any = fed.shortcut
        first = experts.norms[0](recorder, hidden)
        second = experts(residual)
        hidden = add(recorder, first, second)
        return add(recorder, residual, self._joining(hidden, fed.behind))


class ParallelProgram(LayerProgram):
    """A mixer and a feed-forward on the same stream, through one norm or each its own."""

    __slots__ = ()

    def __call__(self, x: Tensor, around: Around) -> Tensor:
        """The stream behind the layer; scores are named until then."""
        context, recorder = self.context, self.context.recorder
        traits, drop = context.traits, context.recipe.drop_residual
        mixer, feed = self.branches
        if feed.before is None or traits.norms_first:
            before = mixer.normed(recorder, x)
            other = before if feed.before is None else feed.before(recorder, x)
            attended, weights = mixer.run(before, around)
            self._returned(weights)
            attended = dropout(recorder, attended, drop)
            fed = feed.run(other)
        else:
            attended, weights = mixer.run(mixer.normed(recorder, x), around)
            self._returned(weights)
            attended = dropout(recorder, attended, drop)
            fed = feed.run(feed.before(recorder, x))
        if traits.adds_in_place:
            fed = added_in_place(recorder, fed, attended)
            return add(recorder, x, dropout(recorder, fed, drop))
        fed = dropout(recorder, fed, drop)
        if traits.adds_attended_first:
            return add(recorder, add(recorder, x, attended), fed)
        return add(recorder, add(recorder, attended, fed), x)
