"""Which kind of run a scenario is, and how wide its 80 % interval is: from the errors of groups that were left out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal, get_args

from ..catalog.device import NARROW, BackendId, Device
from ..catalog.efficiency import Efficiency, Regime
from ..catalog.engine import ServingSpeed, Style
from ..catalog.limited import Limited
from ..record import dataclass, replace
from .paths import Path, inference_path

Evidence = Literal["enough", "few", "single-source", "judged", "none"]
"""What stands behind a range: measurements of several sources, of two or beside judgement, of one, of nobody."""
_WEAKER = get_args(Evidence)

PRIOR_FACTOR = 1.15
"""Widening for each parameter in play that no measurement speaks for; several add as squares."""
BY_RULE_FACTOR = 1.4
"""Widening for a device whose rates or bandwidth follow by a rule: judgement. Clocks of all cores are rarely stated; a
notebook may have one channel of memory where the processor takes two."""
UNKNOWN_WIDTH = 2.5
FEW_GROUPS = 3
"""Sources from which on their spread speaks for a kind of run; of fewer it is widened as by a parameter without any."""


@dataclass(frozen=True, slots=True)
class Interval:
    """The kind of run, the factor from the expected value to each end, and what stands behind it."""

    regime: str
    width: float
    evidence: Evidence
    factor: float = 1.0
    """Speed that was measured on this device over the computed one."""
    own_rows: int = 0
    """Measurements of the user's own behind it."""
    software: str = ""
    """The engine that trains, where nobody measured it in such a job."""

    @property
    def told(self) -> str:
        """The kind of run in words of a warning."""
        return f"{self.regime}, under {self.software}" if self.software else self.regime


@lru_cache(maxsize=4096)
def interval(efficiency: Efficiency, kind: str, regime: str, priors: int) -> Interval:
    """The interval of a regime: `exp(t sigma)` from its groups, widened for parameters that are only priors.

    So is one that two sources stand behind. A kind of run that nobody measured has the interval of `unknown`: how far
    kinds of run are off that were left out.
    """
    known = efficiency.regimes.get(kind, {})
    entry = known.get(regime)
    fallback = known.get("unknown")
    width = entry.width if entry else fallback.width if fallback else UNKNOWN_WIDTH
    if entry is not None and 1 < entry.groups < FEW_GROUPS:
        priors += 1  # each of two tells how far the other is off, no more
    width = math.exp(math.log(width) + math.log(PRIOR_FACTOR) * math.sqrt(priors))
    return Interval(regime, width, _evidence(entry, priors))


def _evidence(entry: Regime | None, priors: int) -> Evidence:
    if entry is None or not entry.rows:
        return "none"
    if entry.sources == 1:
        return "single-source"
    return "few" if entry.groups < FEW_GROUPS or priors else "enough"


def weakest(found: Interval, prompts: Interval | None = None) -> tuple[Evidence, str]:
    """What stands behind the interval that rests on least, and its kind of run: that of `prompts` said as theirs."""
    if prompts is None or _WEAKER.index(prompts.evidence) <= _WEAKER.index(found.evidence):
        return found.evidence, found.told
    return prompts.evidence, f"prompts, {prompts.regime}"


def calibrated(efficiency: Efficiency, device: Device, kind: str, found: Interval) -> Interval:
    """The interval that the user's own measurements leave, where there are some of this kind on this device."""
    own = efficiency.own(device.id, kind, found.regime)
    if own is not None:
        return Interval(found.regime, own.width, "enough", own.factor, own.rows)
    ends = [math.log(BY_RULE_FACTOR)] if device.by_rule else []
    if isinstance(device, Limited):
        ends.append(math.log(device.width))
    if not ends:
        return found
    width = math.exp(math.hypot(math.log(found.width), *ends))
    return replace(found, width=width, evidence=_with_judgement(found.evidence))


def known_software(efficiency: Efficiency, backend: BackendId, job: str) -> Mapping[str, int]:
    """Engines that some source measured in a job on devices of a backend, with how many did."""
    return efficiency.trained.get(backend, {}).get(job, {})


def under_unmeasured(efficiency: Efficiency, found: Interval, name: str) -> Interval:
    """The interval of a training under software that nobody measured in its job, by name: wider, and judgement.

    That of a kind of run without measurements is judgement already, and wide enough for any software.
    """
    if found.evidence == "none":
        return found
    width = found.width * efficiency.factor("training.other_software")
    return replace(found, width=width, evidence="none", software=name)


HOST_SHARE = 0.05
"""Of a step, from which on what the host adds to it sets the pace: hosts differ more than devices do."""
HOST_PACED = ", host paced"
"""Ends the name of a kind of run whose host sets the pace."""


def host_paced(parts: Mapping[str, float]) -> bool:
    """Whether the host, which launches kernels from Python, adds so much to a step that it sets the pace."""
    return parts["host"] >= HOST_SHARE * sum(parts.values())


def paced(efficiency: Efficiency, regime: str, *, by_host: bool) -> str:
    """Name a kind of training where the host sets the pace or does not, if the two have ranges of their own."""
    name = f"{regime}{HOST_PACED}"
    return name if by_host and name in efficiency.regimes.get("training", {}) else regime


WRITTEN_FACTOR = 2.0
"""Widening for trainings that write their answers first. Three runs of NeMo RL 0.4 on H100, which nothing was fitted to
(docs/about/performance-summary.md: Llama 3.1 8B, Qwen3 32B and 30B-A3B, with the lengths that answers had on average),
took 2.1, 0.96 and 1.9 times as long as computed: steps wait for their longest answer. Of 22 more (NeMo RL 0.5 and 0.6,
verl, Miles), with average lengths, 20 are inside since weights are handed over tensor by tensor, 15 before
(data/measurements/rl.yaml, post_training.yaml)."""


def unmeasured(found: Interval, task: str, *, written: bool) -> Interval:
    """The interval of a task with an objective, whose speeds, where any are known, are not fitted: that of fine-tuning,
    widened by judgement.

    `written`: what is learned from is written before, at the speed of a server that does nothing else.
    """
    width = math.exp(math.hypot(math.log(found.width), math.log(WRITTEN_FACTOR if written else PRIOR_FACTOR)))
    return Interval(f"{task}, {found.regime}", width, "judged", found.factor)


def _with_judgement(evidence: Evidence) -> Evidence:
    return "few" if evidence == "enough" else evidence


def training_regime(device: Device, task: str, style: Style, precision: str, moe: bool) -> str:
    """Name the kind of a training run: what it runs on, what is trained, which engine, which precision."""
    job = "pretrain" if task == "pretrain" else "finetune"
    server = device.kind == "datacenter"
    if device.backend != "cuda":
        smaller = "-consumer" if device.backend in ("rocm", "xpu") and not server else ""
        return f"{BACKEND_NAMES.get(device.backend, device.backend)}{smaller}-{'moe-' if moe else ''}{job}"
    if moe:
        return f"moe-{job}"
    tuned = style != "plain"
    if job == "finetune":
        return ("finetune-tuned" if tuned else "finetune-datacenter") if server else "finetune-consumer"
    if not server:
        return "pretrain-consumer"
    return f"{'tuned' if tuned else 'pytorch'}-{NARROW.get(precision, '16bit')}"


BACKEND_NAMES = {"hpu": "gaudi", "metal": "apple", "xpu": "intel"}
"""Whose devices a backend means, in the names of regimes."""


def _llama_class(path: Path) -> str:
    return {
        "cuda": "llama.cpp-cuda",
        "cuda-datacenter": "llama.cpp-datacenter",
        "unified": "llama.cpp-unified",
    }.get(path.bandwidth, f"llama.cpp-{path.backend}")


EXPERTS_ON_HOST = "llama.cpp-experts"
"""Runs whose experts stay in main memory, which sets their pace whatever the card."""


def _stack(family: str, device: Device) -> str:
    """A family of engines, which on devices other than NVIDIA's is other software: no speed of one speaks for both."""
    return family if device.backend == "cuda" or family in ("llama.cpp", "mlx") else f"{family}-{device.backend}"


def decode_regime(device: Device, speed: ServingSpeed, batched: bool, tp: int, *, experts: bool = False) -> str:
    """Name the kind of a decoding run: experts on the host, engine family, memory class, batch, tensor parallel."""
    path = inference_path(device, speed)
    if experts:
        return EXPERTS_ON_HOST
    if path.family in ("llama.cpp", "mlx"):
        alone = path.family if path.family == "mlx" else _llama_class(path)
        return f"{path.family}-batched" if batched else alone
    family = path.family if path.family in ("compiled", "eager") else "server"
    if device.backend != "cuda":
        return _stack(family, device)  # alone, batched and divided together: each by itself has few sources
    if batched:
        return "batched"
    return f"{family}-tp" if tp > 1 and family != "eager" else family


def prefill_regime(device: Device, speed: ServingSpeed, *, experts: bool = False) -> str:
    """Name the kind of a prefill: experts that come from the host, engine family, software backend."""
    if experts:
        return EXPERTS_ON_HOST
    path = inference_path(device, speed)
    if path.family == "mlx" and device.has_matrix_units:
        return "mlx-matrix"  # units that other Macs lack
    if path.family != "llama.cpp":
        return _stack(path.family, device)
    if path.backend == "cuda":
        return "cuda-consumer" if device.kind == "consumer" else "cuda-other"
    return path.backend
