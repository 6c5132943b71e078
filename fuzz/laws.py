"""What an expert expects of any answer: the laws, each with its exceptions and their causes.

A law compares the answers to two questions that differ in one thing, or looks at one answer alone. `docs/laws.md` is
written from this table by `python -m fuzz.laws`; tests/test_laws.py holds both together and asks random questions,
`LLMFEAS_LAWS=10000 pytest tests/test_laws.py` as many as one likes.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fuzz.agreement import AGREEMENTS
from llmfeas.catalog.store import catalog
from llmfeas.errors import LlmfeasError
from llmfeas.feasibility.result import Estimate
from llmfeas.memory.runtime import overhead_of
from llmfeas.model.sums import architecture_sums
from llmfeas.objectives import METHODS, OBJECTIVES
from llmfeas.options import BY_NAME, TASKS, TAUGHT
from llmfeas.planning.answer import bare_answer
from llmfeas.ranges import Range
from llmfeas.record import fields
from llmfeas.scenario import Scenario
from llmfeas.timing.host import experts_share, host_share, memory_bytes_per_s, products_flop_per_s, weights_read_bytes
from llmfeas.timing.inference import InferenceTime, reader_of
from llmfeas.timing.rates import peak_flop_per_s
from llmfeas.timing.training import TrainingTime
from llmfeas.units import TERA
from llmfeas.workload.kernels import has_host, traits_of

Ask = Mapping[str, object]
TRAINING = tuple(task for task in TASKS if task != "inference")
ADAPTERS = ("lora", "qlora")
SLACK = 1e-6
"""What rounding may do."""
BLOCKS = 1.0001
"""What small tensors take more in blocks of 512 bytes, each by itself, than in one buffer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unless:
    """Where a law does not hold, and why."""

    cause: str
    holds: Callable[[Estimate, Estimate], bool]
    """Whether the two answers are such a case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """What does not grow from one answer to the other."""

    name: str
    text: str
    tasks: Sequence[str]
    first: Ask
    """Settings of the question that has at most..."""
    second: Ask
    """...what the question with these has."""
    figure: Callable[[Estimate], float]
    factor: float = 1.0
    """How often more the first may be."""
    unless: Sequence[Unless] = ()


def peak(found: Estimate) -> float:
    """Bytes of the expected peak of one device."""
    return found.memory.peak_bytes.expected


def job(found: Estimate) -> float:
    """Seconds that a token of a training takes."""
    return 1 / found.speed.expected


def all_users(found: Estimate) -> float:
    """Seconds that a token of all requests together takes."""
    return 1 / _pace(found)


def one_user(found: Estimate) -> float:
    """Tokens a second that one request sees."""
    return _pace(found) / found.scenario.concurrency


def _pace(found: Estimate) -> float:
    """Tokens a second of all requests while they write, whatever waits; of readers and trainings those that pass."""
    time = found.time
    if isinstance(time, InferenceTime):
        return time.decode_tokens_per_second.expected or time.prefill_tokens_per_second.expected
    return found.speed.expected


def _never_moved(first: Estimate, second: Estimate) -> bool:
    return not has_host(first.scenario)


def _slow_card(first: Estimate, second: Estimate) -> bool:
    scenario = first.scenario
    multiplies = peak_flop_per_s(scenario.device, scenario.precision)
    reads = scenario.device.bandwidth_bytes_per_s
    return multiplies < 3 * products_flop_per_s(scenario) or reads < 1.5 * memory_bytes_per_s(scenario)


def _whole_buckets(first: Estimate, second: Estimate) -> bool:
    return overhead_of(first.scenario).whole_buckets


def _wide_adapters(first: Estimate, second: Estimate) -> bool:
    return first.scenario.method in ADAPTERS and traits_of(first.scenario).adapters == "written"


def _written_recurrence(first: Estimate, second: Estimate) -> bool:
    return architecture_sums(first.scenario.model.architecture).recurrent_layers > 0


def _named_states(first: Estimate, second: Estimate) -> bool:
    return first.scenario.model.architecture.gated_recurrence is not None


def _other_engine(first: Estimate, second: Estimate) -> bool:
    one, other = first.scenario, second.scenario
    layouts = ((each.engine, each.quant, each.tp, each.pp, each.gpu_layers, each.n_cpu_moe) for each in (one, other))
    return len(set(layouts)) > 1


def _written_out(first: Estimate, second: Estimate) -> bool:
    engine, quant = first.scenario.engine_record, first.scenario.quant
    return engine.serving.speed.family == "eager" and quant in ("nf4", "nf4-single")


def _experts_differ(first: Estimate, second: Estimate) -> bool:
    return first.scenario.model.architecture.experts is not None


def _other_layout(first: Estimate, second: Estimate) -> bool:
    one, other = first.scenario, second.scenario
    layouts = (
        (each.tp, each.pp, each.cp, each.ep, each.micro_batch, each.zero, _recomputed(each)) for each in (one, other)
    )
    return len(set(layouts)) > 1


def _recomputed(scenario: Scenario) -> str | None:
    """What runs again where that was chosen with the layout."""
    return None if scenario.was_given("checkpointing") else scenario.checkpointing


OTHER_LAYOUT = Unless(cause="another layout was chosen, since the other does not fit", holds=_other_layout)
LAWS: tuple[Law, ...] = (
    Law(
        name="gradients that are divided",
        text="ZeRO 2 needs no more memory than ZeRO 1",
        tasks=TRAINING,
        first={"zero": 2},
        second={"zero": 1},
        figure=peak,
        factor=1.01,
        unless=(
            Unless(
                cause="DeepSpeed makes its buckets of 5e8 elements in full size from ZeRO 2 on, however little is "
                "trained",
                holds=_whole_buckets,
            ),
            OTHER_LAYOUT,
        ),
    ),
    Law(
        name="pure 16 bits",
        text="`bf16` needs no more memory than `bf16-mixed`",
        tasks=TRAINING,
        first={"precision": "bf16"},
        second={"precision": "bf16-mixed"},
        figure=peak,
        factor=BLOCKS,
        unless=(
            Unless(
                cause="adapters stay in fp32 (peft): without autocast each of their inputs is copied in 4 bytes",
                holds=_wide_adapters,
            ),
            Unless(
                cause="recurrences that are written out work in fp32, into which 16 bits are copied (tracked: Mamba 2 "
                "1.17 of the peak under autocast, Zamba 2 1.08, Nemotron-H 1.06)",
                holds=_written_recurrence,
            ),
            OTHER_LAYOUT,
        ),
    ),
    Law(
        name="blocks that run again",
        text="full checkpointing needs no more memory than none",
        tasks=TRAINING,
        first={"checkpointing": "full"},
        second={"checkpointing": "none"},
        figure=peak,
        factor=1.05,
        unless=(
            Unless(
                cause="RecurrentGemma's code names its last states, and so what is run again for them (tracked: 25.7 "
                "GB beside 24.8, two sequences of 128 tokens)",
                holds=_named_states,
            ),
            OTHER_LAYOUT,
        ),
    ),
    Law(
        name="work that is done again",
        text="no checkpointing takes no more time than full checkpointing",
        tasks=TRAINING,
        first={"checkpointing": "none"},
        second={"checkpointing": "full"},
        figure=job,
        unless=(OTHER_LAYOUT,),
    ),
    Law(
        name="states in 8 bits",
        text="8-bit AdamW needs no more memory than AdamW",
        tasks=TRAINING,
        first={"optimizer": "adamw-8bit"},
        second={"optimizer": "adamw"},
        figure=peak,
        factor=1.01,
        unless=(OTHER_LAYOUT,),
    ),
    *(
        Law(
            name=f"states elsewhere ({optimizer})",
            text=f"{optimizer} with its states on the host is no faster: the processor does its work, and "
            "gradients and weights travel",
            tasks=("finetune", "pretrain"),
            first={"optimizer": optimizer, "offload": "none"},
            second={"optimizer": optimizer, "offload": "optimizer"},
            figure=job,
            unless=(
                Unless(cause="device and host share one memory", holds=_never_moved),
                Unless(cause="a small card is slower than the processor beside it", holds=_slow_card),
                OTHER_LAYOUT,
            ),
        )
        for optimizer in ("adamw", "muon")
    ),
    Law(
        name="room on the host",
        text="states on the host need no more memory of the device",
        tasks=TRAINING,
        first={"offload": "optimizer"},
        second={"offload": "none"},
        figure=peak,
        factor=1.01,
        unless=(Unless(cause="device and host share one memory", holds=_never_moved), OTHER_LAYOUT),
    ),
    Law(
        name="more sequences",
        text="a smaller micro-batch needs no more memory, where several are added up",
        tasks=TRAINING,
        first={"micro_batch": 1, "global_batch": 4096},
        second={"micro_batch": 2, "global_batch": 4096},
        figure=peak,
        factor=1.01,
        unless=(Unless(cause="another layout was chosen", holds=lambda a, b: _layout(a) != _layout(b)),),
    ),
    Law(
        name="requests together",
        text="two requests write at least as much together as one",
        tasks=("inference",),
        first={"concurrency": 2},
        second={"concurrency": 1},
        figure=all_users,
        unless=(
            Unless(cause="another engine, format or layout was chosen", holds=_other_engine),
            Unless(
                cause="two requests are sent to different experts, so that a step reads more of them",
                holds=_experts_differ,
            ),
            Unless(
                cause="PyTorch writes weights of few bits out before products of more than one token",
                holds=_written_out,
            ),
        ),
    ),
    Law(
        name="a share of the server",
        text="a request is no faster beside another one",
        tasks=("inference",),
        first={"concurrency": 2},
        second={"concurrency": 1},
        figure=one_user,
        unless=(Unless(cause="another engine, format or layout was chosen", holds=_other_engine),),
    ),
    Law(
        name="longer requests",
        text="a shorter context needs no more memory",
        tasks=("inference",),
        first={"context": 256},
        second={"context": 1024},
        figure=peak,
        unless=(Unless(cause="another engine, format or layout was chosen", holds=_other_engine),),
    ),
)


def _layout(found: Estimate) -> tuple[object, ...]:
    scenario = found.scenario
    return (scenario.tp, scenario.pp, scenario.cp, scenario.ep, scenario.zero, _recomputed(scenario))


def _ranges(found: Estimate) -> Iterator[tuple[str, Range]]:
    yield "memory.peak_bytes", found.memory.peak_bytes
    for name in (each.name for each in fields(found.time)):
        if isinstance(value := getattr(found.time, name), Range):
            yield f"time.{name}", value


ALWAYS: Mapping[str, str] = {
    "ranges in order": "every range is finite, not negative, and holds its expected value",
    "no more than the peak": "no training uses more than all of the peak FLOP/s, the high end of its range neither",
    "no more than memory and units": "no answer is written faster than the devices read what a token meets, no prompt "
    "read faster than their fastest units multiply, the fast end of a range neither; drafts share one reading",
    "bytes that add up": "the components of memory add up to the expected peak",
}
"""Laws of one answer alone."""


def broken_alone(found: Estimate) -> list[str]:
    """The laws of one answer alone that it breaks, with the figures."""
    faults = [
        f"ranges in order: {name} is {each}"
        for name, each in _ranges(found)
        if not 0 <= each.low <= each.expected * (1 + SLACK) <= each.high * (1 + SLACK) ** 2 < float("inf")
    ]
    if isinstance(found.time, TrainingTime) and found.time.mfu.high > 1 + SLACK:
        faults.append(f"no more than the peak: {found.time.mfu}")
    if isinstance(found.time, InferenceTime):
        faults += _too_fast(found, found.time)
    total = sum(found.memory.components.values())
    if abs(total - peak(found)) > SLACK * total:
        faults.append(f"bytes that add up: {total} and {peak(found)}")
    return faults


def _too_fast(found: Estimate, time: InferenceTime) -> Iterator[str]:
    """What beats the memory or the units, by counts that are simpler and more generous than the answer's own."""
    scenario = found.scenario
    device, sums = scenario.device, architecture_sums(scenario.model.architecture)
    together, made = scenario.tp * scenario.cp * max(1, scenario.ep * scenario.expert_tp), scenario.tokens_a_step
    here = (1 - host_share(scenario)) * (1 - experts_share(scenario))
    read = here * weights_read_bytes(scenario, 1.0) / (device.bandwidth_bytes_per_s * together)
    rates = [getattr(device.tflop_per_s, each.name) or 0.0 for each in fields(device.tflop_per_s)]
    multiply = 2 * sums.active / (max(rates) * TERA)
    # an encoder-decoder reads with its encoder alone
    reading = 2 * architecture_sums(reader_of(scenario).model.architecture).active / (max(rates) * TERA)
    first = max(read, scenario.prompt * reading / (together * scenario.pp))
    limits = [
        ("tokens_per_second_per_sequence", time.tokens_per_second_per_sequence.high * read, made),
        ("prefill_tokens_per_second", time.prefill_tokens_per_second.high * reading, scenario.num_devices),
        ("time_to_first_token_seconds", first, time.time_to_first_token_seconds.low),
    ]
    if found.load:
        written = found.load.output_tokens_per_second.high
        limits.append(("load.output_tokens_per_second", written * multiply, scenario.num_devices * made))
        if found.load.tpot_seconds.p50 is not None and scenario.output != 1:
            limits.append(("load.tpot_seconds", read, found.load.tpot_seconds.p50.low * made))
    for name, wanted, there in limits:
        if wanted > there * (1 + SLACK):
            yield f"no more than memory and units: {name} takes {wanted / there:.3g} times what the devices have"


def broken(law: Law, ask: Ask) -> str:
    """What a question shows against a law; empty where the law holds, is excepted, or cannot be asked."""
    try:
        first, second = (bare_answer({**ask, **settings}) for settings in (law.first, law.second))
    except LlmfeasError:
        return ""
    one, other = law.figure(first), law.figure(second)
    if one <= other * law.factor * (1 + SLACK) or any(each.holds(first, second) for each in law.unless):
        return ""
    return f"{law.text}: {one:.6g} and {other:.6g} for {dict(ask)}"


def drawn(seed: int, tasks: Sequence[str]) -> dict[str, object]:
    """Draw a question of one of some tasks."""
    draw, known = random.Random(seed), catalog()
    count, task = draw.choice((1, 1, 2, 8, 64)), draw.choice(tasks)
    ask: dict[str, object] = {
        "model": draw.choice(list(known.models)),
        "device": draw.choice(list(known.devices)),
        "num_devices": count,
        "task": task,
    }
    if task == "inference":
        more: dict[str, Sequence[object]] = {
            "context": (1024, 4096),
            "prompt": (0, 500),
            "concurrency": (2, 16, 300),
            "rate": (0.5, 5),
            "output": (1, 200),
            "draft": ("eagle", "qwen3-0.6b"),
            "precision": ("fp32", "fp16"),
            "engine": ("vllm", "llama.cpp", "sglang", "mlx", "transformers"),
            "quant": ("none", "q4_k_m", "q8_0", "fp8", "awq-int4"),
        }
    else:
        ask["micro_batch"] = draw.choice((1, 2, 4))
        if task in TAUGHT:
            ask["teacher"] = ask["model"]
        more = {
            "loss": tuple(name for name, each in OBJECTIVES.items() if each.task == task),
            "adapters": tuple(METHODS),
            "tp": (1, 2),
            "pp": (1, 2, 4),
            "cp": (1, 2),
            "seq_len": (128, 512, 2048),
            "engine": ("pytorch", "deepspeed", "megatron", "torchtitan", "unsloth"),
            "optimizer": ("adamw", "adafactor", "sgd", "lion"),
            "checkpointing": ("none", "selective", "full"),
            "precision": ("fp32", "bf16-mixed", "fp16-mixed", "fp8-mixed"),
            "zero": (0, 1, 2, 3),
        }
    picked = {name: draw.choice(values) for name, values in more.items() if values and draw.random() < 0.3}
    if count == 1:
        picked = {name: value for name, value in picked.items() if name not in ("tp", "pp", "cp")}
    return {**ask, **{name: value for name, value in picked.items() if task in BY_NAME[name].tasks}}


def page() -> str:
    """The table as docs/laws.md shows it."""
    lines = [
        "# Laws",
        "",
        "What an expert expects of any answer. Each law is checked with random models, devices, counts and settings;",
        "where it does not hold there is a cause, which stands beside it. Written by `python -m fuzz.laws`.",
        "",
        "| Law | What holds | Unless |",
        "| --- | --- | --- |",
    ]
    lines += [f"| {name} | {text} | |" for name, text in ALWAYS.items()]
    for law in LAWS:
        causes = dict.fromkeys(each.cause for each in law.unless)
        lines.append(f"| {law.name} | {law.text} | {'; '.join(causes)} |")
    lines += [
        "",
        "## Promises",
        "",
        "What one part of an answer says another question must say too (`fuzz/agreement.py`).",
    ]
    lines += ["| Promise | What holds |", "| --- | --- |"]
    lines += [f"| {each.name} | {each.text} |" for each in AGREEMENTS]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1] if len(sys.argv) > 1 else "docs/laws.md").write_text(page(), encoding="utf-8")
