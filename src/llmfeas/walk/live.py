"""The tensors that are alive at the fullest moment of a step, told by what makes them: a plain walk that is watched.

For explanations alone: a watched walk takes some ten times as long as one that counts.
"""

from __future__ import annotations

import sys
from collections import Counter
from types import CodeType, FrameType

from ..autograd.graph import tensor_of
from ..autograd.storage import COMPONENT_BITS, COMPONENTS, HOST, Ledger, Sizes, Storage, numeric_sizes, stored
from ..model.setup import Setup
from ..record import dataclass
from .step import walked_step

MODEL, AUTOGRAD = "llmfeas.model.", "llmfeas.autograd."
PLACES = {
    "decoder": "model",
    "layer": "residual stream",
    "feedforward": "feed-forward",
    "head": "head and loss",
    "latent": "latent attention",
    "delta": "linear attention",
    "scores": "attention",
    "norm": "norm",
}
"""What a module of the model's programs is called; others go by their own names."""
PLUMBING = ("recorder", "graph", "storage", "context", "weight", "setup", "operator", "rules")
"""Modules that make tensors on behalf of others."""


@dataclass(frozen=True, slots=True)
class LiveTensors:
    """Tensors alike that are alive together."""

    component: str
    operator: str
    shape: tuple[int, ...]
    width: int
    """Bytes of an element."""
    count: int

    @property
    def bytes(self) -> int:
        """Bytes of all of them, before the allocator rounds them up."""
        return self.count * self.width * _elements(self.shape)


def live_tensors(setup: Setup, micro_batch: int, seq_len: int, moment: str, gradient_share: float) -> list[LiveTensors]:
    """What is alive at the fullest point of a moment (forward, loss, backward), the largest first.

    Weights are left out; `gradient_share` of each finished gradient stays.
    """
    sizes = numeric_sizes(micro_batch, seq_len)
    levels = [level for level, name, _ in walked_step(setup, sizes).marks if name == moment]
    if not levels:
        return []
    ledger = _Watched(max(levels, key=lambda level: _fullness(level, gradient_share)), moment)
    walked_step(setup, sizes, ledger=ledger)
    found = Counter(
        (name := COMPONENTS[component // COMPONENT_BITS], operator, _shape(name, elements, sizes), width)
        for component, operator, elements, width in ledger.seen
        if 0 < component < HOST
    )
    groups = [LiveTensors(*key, count) for key, count in found.items()]
    return sorted(groups, key=lambda group: -group.bytes)


def _fullness(level: int, gradient_share: float) -> float:
    parts = [level >> COMPONENT_BITS * place & (1 << COMPONENT_BITS) - 1 for place in range(len(COMPONENTS))]
    return gradient_share * parts[1] + sum(parts[2:])


def _elements(shape: tuple[int, ...]) -> int:
    count = 1
    for extent in shape:
        count *= extent
    return count


def _shape(component: str, elements: int, sizes: Sizes) -> tuple[int, ...]:
    """Elements as sequences x tokens x width, where they are that many; copies of weights have no such shape."""
    if component == "workspace" or elements % sizes.bs:
        return (elements,)
    return (sizes.b, sizes.s, elements // sizes.bs)


Made = tuple[int, str, int, int]
"""Component, operator, elements and bytes of an element."""


class _Watched(Ledger):
    """A ledger that notes which storages live, by the call that makes or ends them."""

    __slots__ = ("alive", "moment", "seen", "target")

    def __init__(self, target: int, moment: str) -> None:
        self.alive: dict[int, Made] = {}
        """By the id of a storage: one that is itself a key would never lose its last reference, which ends it."""
        self.seen: list[Made] = []
        self.target, self.moment = target, moment
        super().__init__()

    @property
    def level(self) -> int:
        """The packed level."""
        return int(_LEVEL.__get__(self))

    @level.setter
    def level(self, value: int) -> None:
        _LEVEL.__set__(self, value)
        frame = sys._getframe(1)
        code = frame.f_code
        if code is _TENSOR_OF or code is _STORED:
            held = frame.f_locals
            size = held["storage"].size >> held["component"], 1
            size = (held["n"], held["width"]) if code is _TENSOR_OF else size
            self.alive[id(held["storage"])] = (held["component"], _maker(frame), *size)
        elif code is _DEL:
            self.alive.pop(id(frame.f_locals["self"]), None)
        elif code is _MOVE:
            storage = id(frame.f_locals["self"])
            self.alive[storage] = (frame.f_locals["component"], *self.alive[storage][1:])
        if value == self.target and not self.seen and self.here[0] == self.moment:
            self.seen = list(self.alive.values())


def _maker(frame: FrameType) -> str:
    """What makes a tensor: the model's part, and the operator of autograd in it."""
    operator, at = "", frame.f_back
    while at is not None:
        module, name = at.f_globals.get("__name__", ""), at.f_code.co_name
        tail = module.rsplit(".", 1)[-1]
        if module.startswith(AUTOGRAD) and tail not in PLUMBING and not operator:
            operator = name.strip("_").replace("_", " ")
        if module.startswith(MODEL) and tail not in PLUMBING:
            place = PLACES.get(tail, tail)
            return f"{place}, {operator}" if operator else place
        at = at.f_back
    return operator or "gradient"


def _code(function: object) -> CodeType:
    code: CodeType = function.__code__  # type: ignore[attr-defined]
    return code


_TENSOR_OF, _STORED, _DEL, _MOVE = map(_code, (tensor_of, stored, Storage.__del__, Storage.move))
_LEVEL = vars(Ledger)["level"]
