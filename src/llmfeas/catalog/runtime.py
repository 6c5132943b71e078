"""How engines lay out memory, and what they hold beside tensors (data/runtime.yaml), typed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, cast

from ..record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class InferenceBehaviour:
    """Cache, passes over the prompt and overheads of one kind of inference engine; fields as in data/runtime.yaml."""

    cache: Literal["growing", "preallocated", "paged"]
    block_tokens: int = 1
    appends: bool = False
    public_code: bool = False
    window_extra: int | None = None
    pass_tokens: int | None = None
    reserves: bool = False
    value_bytes: float | None = None
    score_bytes: float = 0.0
    in_place: bool = False
    logits: Literal["last", "pass"] = "last"
    logit_bytes: float | None = None
    fixed_bytes: float = 0.0
    slack: float = 0.0
    cache_slack: float = 0.0
    log_spread: float = 0.15
    groups: int = 0
    rows: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingOverhead:
    """What a training framework holds beside tensors; fields as in data/runtime.yaml."""

    fixed_bytes: float = 0.0
    gaps: float = 0.0
    sharded_bytes: float = 0.0
    log_spread: float = 0.2
    sharded_log_spread: float = 0.2
    adapters_log_spread: float | None = None
    groups: int = 0
    rows: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Runtime:
    """The whole file. Compared by identity, so that what is derived from it can be cached."""

    contexts: Mapping[str, float]
    inference: Mapping[str, InferenceBehaviour]
    engines: Mapping[str, str]
    training: Mapping[str, TrainingOverhead]
    training_engines: Mapping[str, str]
    usable: Mapping[str, float]

    def framework(self, engine: str, fused: bool) -> str:
        """Name the entry of `training` for an engine; one without an entry is like plain PyTorch.

        `fused`: fused kernels run, so what is plain PyTorch is one of the pre-training frameworks written in it.
        """
        name = self.training_engines.get(engine, "pytorch")
        return "frameworks" if fused and name == "pytorch" else name

    def behaviour(self, engine: str) -> InferenceBehaviour:
        """Give how an inference engine behaves; one without an entry runs eagerly."""
        return self.inference[self.engines.get(engine, "eager")]


def runtime_from_mapping(raw: Mapping[str, object]) -> Runtime:
    """Build the table from a loaded data/runtime.yaml.

    Raises:
        KeyError, TypeError: a section or field is missing or unknown.
    """
    inference = cast(Mapping[str, Mapping[str, object]], raw["inference"])
    training = cast(Mapping[str, Mapping[str, object]], raw["training"])
    return Runtime(
        contexts=cast(Mapping[str, float], raw["contexts"]),
        inference={name: InferenceBehaviour(**entry) for name, entry in inference.items()},  # type: ignore[arg-type]
        engines=cast(Mapping[str, str], raw["engines"]),
        training={name: TrainingOverhead(**entry) for name, entry in training.items()},  # type: ignore[arg-type]
        training_engines=cast(Mapping[str, str], raw["training_engines"]),
        usable=cast(Mapping[str, float], raw["usable"]),
    )
