"""What an engine's own words can express: which settings, and which of them together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property

from ...objectives import Task
from ...options import BY_NAME
from ...record import dataclass, field
from ...scenario import Scenario
from ...timing.products import casts_base

DTYPES = {"fp32": "float32", "tf32": "float32", "bf16": "bfloat16", "fp16": "float16"}
"""Types in PyTorch's words."""
SPLITS = ("num_devices", "tp", "pp", "interleave", "ep", "cp")
"""Settings that are 1 where nothing is divided."""


@dataclass(frozen=True, slots=True)
class Objection:
    """A setting that an engine cannot express, alone or with others: why, and which value it can express instead."""

    setting: str
    because: str = ""
    instead: object = None


ONE_COPY = Objection("num_devices", "one server holds one copy of the model: start several servers instead")
READS_ALONE = Objection("model", "it makes vectors and scores of texts, and this model writes")
PAIRS_BY_LABEL = Objection("model", "it scores pairs by the label of an encoder, and this model is a decoder")
WHOLE: Mapping[str, tuple[object, ...]] = {"offload": ("none",), "gpu_layers": (None,), "n_cpu_moe": (None,)}
"""Choices of an engine that leaves nothing to the host."""


def no_objection(scenario: Scenario) -> Objection | None:
    """Object to nothing."""
    return None


def is_gguf(scenario: Scenario) -> bool:
    """Whether the model is a GGUF file."""
    return (scenario.model_path or "").lower().endswith(".gguf")


def drafted_by(scenario: Scenario) -> str | None:
    """What drafts tokens ahead: `model`, `mtp` or `eagle`; None where nothing does."""
    return "model" if scenario.draft_model is not None else scenario.draft


@dataclass(frozen=True, kw_only=True, eq=False)
class Expressible:
    """What a launcher can express; `launch` writes it down, and nothing else is proposed for its engine.

    `choices` lists for a setting the values that it can express; a setting that is not listed is free. `splits` are
    the layouts that it knows. `objection` refuses combinations. Compared by identity.
    """

    id: str
    """The launcher's name."""
    tasks: tuple[Task, ...]
    backends: frozenset[str]
    choices: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    splits: frozenset[str] = frozenset()
    reads_gguf: bool = False
    drafts: frozenset[str] = frozenset()
    """What can draft tokens ahead: `model`, `mtp`, `eagle`."""
    disaggregates: frozenset[str] = frozenset()
    """Backends on which it reads prompts and writes answers on devices of their own."""
    wide_bases: bool = False
    """It can hold a frozen base in fp32 under autocast."""
    objection: Callable[[Scenario], Objection | None] = no_objection

    @cached_property
    def _values(self) -> Mapping[str, Mapping[str, tuple[object, ...]]]:
        """What settings that mean something to a task may be, by the task."""
        listed = {**{name: (1,) for name in SPLITS if name not in self.splits}, **self.choices}
        return {
            task: {name: values for name, values in listed.items() if task in BY_NAME[name].tasks}
            for task in self.tasks
        }

    def refused(self, scenario: Scenario) -> Objection | None:
        """The first setting of a scenario that cannot be expressed."""
        if not scenario.engine_record.runs(scenario.model.architecture):
            return Objection("model", f"{scenario.engine} has no model of this architecture")
        if is_gguf(scenario) and not self.reads_gguf:
            return Objection("model", "it does not read GGUF files")
        if scenario.offload_layers is not None:
            return Objection("offload_layers", "what is written moves all layers or none")
        if casts_base(scenario) and not self.wide_bases:
            return Objection("base_dtype", "its frozen bases are in 16 bits")
        if drafted_by(scenario) not in (None, *self.drafts):
            return Objection("draft")
        if scenario.disaggregate is not None and scenario.device.backend not in self.disaggregates:
            return Objection("disaggregate")
        if scenario.task not in self.tasks:
            return Objection("task")
        if scenario.device.backend not in self.backends:
            return Objection("backend")
        for name, values in self._values[scenario.task].items():
            if getattr(scenario, name) not in values:
                return Objection(name, instead=self._only(name))
        return self.objection(scenario)

    def _only(self, setting: str) -> object:
        """The one value of a setting that can be expressed; None where there are several, or none."""
        if setting in SPLITS:
            return 1 if setting != "num_devices" else None
        values = self.choices.get(setting, ())
        return values[0] if len(values) == 1 else None
