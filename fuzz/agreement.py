"""What a command says of a question, the others say too: each promise of an answer, asked again as a person would.

A promise is one part of an answer that names a question of its own: a rung, a way, a use, a row, the answer of `solve`.
`docs/laws.md` shows this table below the laws; tests/test_agreement.py asks random questions of the same kind,
`LLMFEAS_LAWS=1000 pytest tests/test_agreement.py` as many as one likes.
"""

from __future__ import annotations

import itertools
import json
import random
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from llmfeas.catalog.quantization import NATIVE
from llmfeas.catalog.store import catalog
from llmfeas.check.run import findings
from llmfeas.cli.scenario_items import ScenarioLine
from llmfeas.cli.workers import SweepOptions
from llmfeas.cli.workers import answered as answers_of
from llmfeas.errors import LlmfeasError
from llmfeas.feasibility.inputs import inputs
from llmfeas.feasibility.result import Estimate, Rung
from llmfeas.objectives import METHODS, OBJECTIVES
from llmfeas.options import BY_NAME, GROUPED, GUIDED, TASKS, TAUGHT
from llmfeas.planning.answer import answer, bare_answer
from llmfeas.planning.compare import comparison
from llmfeas.planning.ladder import REFUSED
from llmfeas.planning.launch import LAUNCHERS, Launcher
from llmfeas.planning.plan import plan
from llmfeas.planning.solve import solved
from llmfeas.units import GIB
from llmfeas.workload.kernels import runs_fused

Ask = Mapping[str, object]
FEASIBLE = ("feasible", "tight")
LAYOUT = ("tp", "pp", "cp", "ep", "zero", "interleave")
OF_A_USE = ("tp", "pp", "cp", "zero", "offload", "engine")
"""What a use may leave out of a question that names no task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """One kind of promise, and what of a question's answer does not keep it."""

    name: str
    text: str
    faults: Callable[[Ask], Iterator[str]]
    tasks: Sequence[str] = TASKS


def _figures(found: Estimate) -> dict[str, object]:
    """What a promise says of an answer."""
    total = found.total_seconds
    return {
        "status": found.verdict.status,
        "peak_bytes": found.memory.peak_bytes.expected,
        "host_bytes": found.memory.host_bytes,
        "total_seconds": None if total is None else total.expected,
        "decode_tokens_per_second": None if total is not None else found.unloaded_speed.expected,
        "output_tokens_per_second": found.speed.expected if found.scenario.has_load else None,
    }


def differences(name: str, promise: object, settings: Ask) -> Iterator[str]:
    """Yield what a promise says otherwise than the answer to its own question."""
    try:
        found = _figures(bare_answer(settings))
    except LlmfeasError as error:
        yield f"{name}: {dict(settings)} is refused: {error.message}"
        return
    for key, value in found.items():
        said = promise.get(key, value) if isinstance(promise, Mapping) else getattr(promise, key, value)
        if said != value:
            yield f"{name}: {key} is {said}, asked alone {value}, for {dict(settings)}"


def _meant(ask: Ask, task: str) -> dict[str, object]:
    """The settings of a question that mean something to a task, without the format."""
    return {name: value for name, value in ask.items() if task in BY_NAME[name].tasks and name != "quant"}


def _as_taken(asked: Ask) -> Ask:
    """A rung's question, if need be without layout and engine, which give way where its task refuses them."""
    try:
        bare_answer(asked)
    except LlmfeasError:
        return {name: value for name, value in asked.items() if name not in REFUSED}
    return asked


def _ladder(ask: Ask) -> Iterator[str]:
    found = answer(ask, remedies=False, uses=False)
    own, served = found.scenario, []
    for rung in found.ladder:
        asked = {**_meant(ask, rung.task), "task": rung.task}
        if rung.task == "inference":
            served.append((rung.quant, rung.peak_bytes))
            asked["quant"] = rung.quant
        if rung.adapters is not None:
            asked |= {"adapters": rung.adapters}
        if (rung.task, rung.quant, rung.adapters) == (own.task, own.quant, own.adapters):
            figures = _figures(found)
            if (rung.status, rung.peak_bytes) != (figures["status"], figures["peak_bytes"]):
                yield f"the answer's own rung is {rung.status}, {rung.peak_bytes}; it is {figures}"
            continue
        asked = _as_taken(asked)
        yield from differences(f"rung {rung.label}", rung, asked)
    if not any(rung.task == own.task for rung in found.ladder):
        yield f"no rung for the task that was asked for, {own.task}"


SPLIT = 0.01
"""What buffers on both sides add where layers lie on the host, as they do once a format lets some of them fit."""


def _bits(ask: Ask) -> Iterator[str]:
    """Another engine's format is shown where the one at hand has none of a width: those are not compared, nor where
    the narrower one alone leaves the tables of a vocabulary as they are, most of a small model.
    """
    rungs = [rung for rung in answer(ask, remedies=False, uses=False).ladder if rung.task == "inference"]
    for wide, narrow in itertools.pairwise(rungs):
        needed, allowed = ((rung.peak_bytes or 0.0) + rung.host_bytes for rung in (narrow, wide))
        room = 1 + SPLIT if narrow.host_bytes != wide.host_bytes else 1.0
        if _native_tables(narrow) > _native_tables(wide):
            continue
        if needed > room * allowed and _server(ask, narrow) == _server(ask, wide):
            yield f"{narrow.label} ({narrow.quant}) needs {needed}, {wide.label} ({wide.quant}) {allowed}"


def _native_tables(rung: Rung) -> int:
    """How many of head and embedding the format of a rung leaves in the type of the model."""
    form = catalog().tables.quantization.formats[rung.quant]
    return (form.head, form.embedding).count(NATIVE)


def _server(ask: Ask, rung: Rung) -> tuple[str, str | None]:
    """The engine of a rung, and the format of its cache, which fp8 weights change on some devices."""
    asked = {**_meant(ask, "inference"), "task": "inference", "quant": rung.quant}
    scenario = bare_answer(_as_taken(asked)).scenario
    return scenario.engine, scenario.kv_dtype


def _remedies(ask: Ask) -> Iterator[str]:
    found = answer(ask, ladder=False, uses=False)
    for remedy in found.remedies:
        yield from differences("a remedy", remedy, {**ask, **remedy.changes})
        if remedy.status not in FEASIBLE:
            yield f"a remedy is {remedy.status}"


def _plan(ask: Ask) -> Iterator[str]:
    found, remedies = plan(ask, catalog()), answer(ask, ladder=False, uses=False).remedies
    ways = [way.remedy for way in found.ways]
    if remedies and [each.changes for each in ways[: len(remedies)]] != [each.changes for each in remedies]:
        yield f"the plan begins with {[way.changes for way in ways]}, remedies are {[r.changes for r in remedies]}"
    for way in ways:
        yield from differences("a way", way, {**ask, **way.changes})
    if not ways and found.nearest is None:
        yield "a plan without ways names nothing that comes nearest"


def _uses(ask: Ask) -> Iterator[str]:
    silent = {name: value for name, value in ask.items() if name != "task"}
    try:
        found = answer(silent, ladder=False, remedies=False)
    except LlmfeasError:
        return
    for use in found.uses if isinstance(found.uses, tuple) else ():
        said = {**_meant(silent, use.task), **use.changes}
        if "quant" in silent and use.task in BY_NAME["quant"].tasks:
            said = {"quant": silent["quant"], **said}
        try:
            bare_answer(said)
        except LlmfeasError:
            said = {name: value for name, value in said.items() if name not in OF_A_USE}
        promise = {**_shown(use), "status": use.verdict.status}
        yield from differences(f"use {use.label}", promise, said)


def _shown(use: object) -> dict[str, object]:
    names = ("peak_bytes", "total_seconds", "decode_tokens_per_second")
    return {name: getattr(use, name) for name in names}


def _sizes(ask: Ask) -> Iterator[str]:
    found = answer(ask, remedies=False, uses=False)
    for size in found.memory_sizes if isinstance(found.memory_sizes, tuple) else ():
        yield from differences("a memory size", size, {**ask, "memory": size.memory_bytes})


def _compare(ask: Ask) -> Iterator[str]:
    rest = {name: value for name, value in ask.items() if name not in ("model", "device")}
    (row,) = comparison(rest, [str(ask["model"])], [str(ask["device"])], catalog()).rows
    yield from differences("a row of compare", _figures(row.estimate), ask)


def _sweep(ask: Ask) -> Iterator[str]:
    """As a line of NDJSON, as people pipe it."""
    line = ScenarioLine((json.dumps({"id": 7, **ask}) + "\n").encode(), 1)
    answered = json.loads(answers_of([line], SweepOptions("ndjson", frozenset())).text)
    if answered != {"id": 7, **bare_answer(ask).to_dict()}:
        yield f"a line of a sweep answers otherwise: {answered.get('error') or answered.get('result')}"


def _check(ask: Ask) -> Iterator[str]:
    """What the answer is, expected of it in a file."""
    found = _figures(bare_answer(ask))
    peak = f"{float(str(found['peak_bytes'])) / GIB:.9g} GiB +- 0.001 %"
    block = {"id": "asked", **ask, "expect": {"status": found["status"], "peak_gib": peak}}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "expected.yaml")
        path.write_text(json.dumps(block), encoding="utf-8")
        result = findings([str(path)], catalog())
    yield from (f"check: {each.expectation}, found {each.found}" for each in result.expectations if not each.ok)


def _replay(ask: Ask) -> Iterator[str]:
    found = bare_answer(ask)
    stored = json.loads(json.dumps(inputs(found.scenario)))
    yield from differences("the JSON's inputs", _figures(found), stored)


def _said(ask: Ask) -> Iterator[str]:
    """One setting as the answer has it, said by a person; and all of them.

    A prompt beside a context says how long the answer is: the rest. It is not said alone there.
    """
    found = bare_answer(ask)
    chosen = {name: each["value"] for name, each in inputs(found.scenario).items() if each["value"] is not None}
    more = {name: value for name, value in chosen.items() if name not in ask}
    for name, value in more.items():
        if not (name == "prompt" and "context" in ask and "output" in more):
            yield from _said_otherwise(f"--{name} {value} said", found, {**ask, name: value})
    yield from _said_otherwise("all said", found, {**ask, **more})


def _said_otherwise(name: str, found: Estimate, settings: Ask) -> Iterator[str]:
    """Yield the parts of an answer that differ; who offers a price that was said, nobody knows."""
    try:
        said = bare_answer(settings)
    except LlmfeasError as error:
        yield f"{name}: refused: {error.message}, for {settings}"
        return
    ours, theirs = (dict(each.to_dict()["result"]) for each in (found, said))
    for result in (ours, theirs):
        result["cost"] = {key: value for key, value in (result["cost"] or {}).items() if key != "price"}
    differ = [part for part in ours if ours[part] != theirs[part]]
    if differ:
        yield f"{name}: {differ} differ, for {settings}"


def _solve(question: str) -> Callable[[Ask], Iterator[str]]:
    def faults(ask: Ask) -> Iterator[str]:
        asked = dict(ask)
        for name in SEARCHED[question]:
            if name != "engine":
                asked.pop(name, None)
        try:
            found = solved(question, asked, catalog())
        except LlmfeasError:
            return
        names = SEARCHED[question]
        if found.at is not None:
            known = {"micro_batch": 1} if question in ("max-context", "max-rank", "min-memory") else {}
            known = known if ask.get("task", "pretrain") != "inference" else {}
            if "rate" in ask:  # a load is searched over layouts, which the answer names
                layout = found.answer.get("layout")
                known |= {name: layout[name] for name in ("tp", "pp")} if isinstance(layout, Mapping) else {}
                known |= {"quant": found.answer["quant"]} if "quant" in found.answer else {}
            settings = {**known, **asked, **{name: found.answer[name] for name in names if name in found.answer}}
            yield from differences(f"solve {question}", _figures(found.at), settings)
            if found.at.verdict.status not in FEASIBLE:
                yield f"solve {question}: its answer is {found.at.verdict.status} for {settings}"
            beyond = found.beyond or {}
            if beyond.get("status") in FEASIBLE and not str(beyond.get("because")).startswith(("only ", "the experts")):
                yield f"solve {question}: one step beyond is {beyond}"

    return faults


SEARCHED: Mapping[str, Sequence[str]] = {
    "max-batch": ("micro_batch", "global_batch", "concurrency"),
    "max-context": ("seq_len", "context", "prompt"),
    "max-rank": ("lora_rank",),
    "min-memory": ("memory",),
    "min-devices": ("num_devices", "engine"),
}
"""Questions asked backwards, with the settings that they find."""


def _launch(ask: Ask) -> Iterator[str]:
    """No launcher of the engine takes the layout that was chosen by itself, though one takes the job in another that
    works.

    They write public code alone: what pre-trains on a framework's own is divided as that divides it.
    """
    found = bare_answer(ask)
    scenario = found.scenario
    if (
        found.verdict.status not in FEASIBLE
        or runs_fused(scenario)
        or any(scenario.was_given(name) for name in (*LAYOUT, "engine"))
    ):
        return
    changed: list[str] = []
    for launcher in (LAUNCHERS[name] for name in scenario.engine_record.launchers if name in LAUNCHERS):
        if scenario.task not in launcher.tasks:
            continue
        objection = launcher.refused(scenario)
        if objection is None:
            return
        if objection.setting in LAYOUT and _is_written({**ask, objection.setting: objection.instead}, launcher):
            changed.append(f"launch {launcher.id}: {objection}")
    yield from changed


def _is_written(ask: Ask, launcher: Launcher) -> bool:
    """Whether a launcher writes an answer that works."""
    try:
        found = bare_answer(ask)
    except LlmfeasError:
        return False
    return found.verdict.status in FEASIBLE and launcher.refused(found.scenario) is None


AGREEMENTS: Sequence[Agreement] = (
    Agreement(
        name="a rung",
        text="each rung of the ladder is the answer to the same question with another task or format",
        faults=_ladder,
    ),
    Agreement(
        name="fewer bits",
        text="no rung of inference of fewer bits needs more memory, device and host together, but where its format "
        "alone leaves head or embedding in 16 bits; QLoRA may need more than LoRA, since more sequences fit at once, "
        "and peft holds in fp32 what it does not quantize",
        faults=_bits,
    ),
    Agreement(name="a remedy", text="each remedy gives what it promises, as it promises it", faults=_remedies),
    Agreement(
        name="a way",
        text="a plan begins with the remedies of the estimate, and each way keeps its promise",
        faults=_plan,
    ),
    Agreement(name="a use", text="each use is the answer to its options", faults=_uses),
    Agreement(name="a size", text="each memory size is the answer with that memory", faults=_sizes),
    Agreement(name="a row", text="a row of compare is the estimate", faults=_compare),
    Agreement(name="a line", text="a line of a sweep is the estimate", faults=_sweep),
    Agreement(name="an expectation", text="a file that expects of a question what its answer is holds", faults=_check),
    Agreement(name="a replay", text="the inputs of an answer, asked again, give it again", faults=_replay),
    Agreement(
        name="a value",
        text="a value that an answer chose gives the same answer where a person says it, each alone and all together, "
        "but a prompt alone beside a context, which says that the answer fills the rest",
        faults=_said,
    ),
    Agreement(name="a launch", text="what was settled by itself its engine's launcher writes as it is", faults=_launch),
    *(
        Agreement(
            name=f"solve {question}",
            text=f"the answer of solve {question} works as it says, one step beyond does not",
            faults=_solve(question),
            tasks=("lora", "qlora") if question == "max-rank" else TASKS,
        )
        for question in SEARCHED
    ),
)


def broken(agreement: Agreement, ask: Ask) -> list[str]:
    """What of a question's answers does not agree; nothing where the question is refused."""
    try:
        bare_answer(ask)
    except LlmfeasError:
        return []
    return [f"{fault}; asked {dict(ask)}" for fault in agreement.faults(ask)]


MANY = ("tp", "pp", "cp", "ep", "zero", "interleave", "disaggregate")
"""What is asked of several devices only."""


def asked(seed: int, tasks: Sequence[str] = TASKS) -> dict[str, object]:
    """Draw a question as people ask it: few settings, now and then a limit, a count or an engine."""
    draw, known = random.Random(seed), catalog()
    kind = draw.random()
    offered, peek = kind < 0.1, known.devices.peek
    cards = [name for name in known.devices if peek(name, "backend") != "cpu"]
    task = draw.choice(list(tasks))
    ask: dict[str, object] = {
        "model": draw.choice(list(known.models)),
        "device": draw.choice(list(known.offers) if offered else list(known.devices) if kind < 0.2 else cards),
        "task": task,
    }
    if not offered and draw.random() < 0.4:
        ask["num_devices"] = draw.choice((2, 3, 4, 8, 8, 16, 64, 256))
    if task in TAUGHT:
        family = known.models.peek(str(ask["model"]), "family")
        ask["teacher"] = draw.choice([name for name in known.models if known.models.peek(name, "family") == family])
    more = _of_inference(task) if task == "inference" else _of_training(task)
    picked = {name: draw.choice(values) for name, values in more.items() if values and draw.random() < 0.12}
    if "critic" in picked and task in GROUPED:
        picked["loss"] = "ppo"
    if "num_devices" not in ask and not offered:
        picked = {name: value for name, value in picked.items() if name not in MANY}
    return {**ask, **{name: value for name, value in picked.items() if task in BY_NAME[name].tasks}}


def _engines(work: str, task: str) -> Sequence[object]:
    """Engines that do a task, so that few questions are refused."""
    engines = (each for each in catalog().engines.values() if work in each.does)
    return tuple(each.id for each in engines if task not in GUIDED or task in each.objectives)


def _of_inference(task: str) -> Mapping[str, Sequence[object]]:
    return {
        "context": (1024, 8192, 32768),
        "prompt": (100, 2000),
        "output": (64, 1000),
        "images": (2,),
        "requests": (100,),
        "ttft": ("2s",),
        "engine": _engines("serving", task),
        "quant": ("none", "q4_k_m", "q8_0", "fp8", "awq-int4", "mxfp4", "int8", "nf4"),
        "concurrency": (4, 16, 64),
        "kv_dtype": ("fp8", "fp16"),
        "gpu_layers": (0, 10),
        "host_memory": ("16GiB", "128GiB"),
        "memory": ("12GiB", "64GiB"),
        "draft": ("mtp", "eagle", "qwen3-0.6b"),
        "rate": (0.5, 5),
        "tp": (2,),
        "pp": (2,),
        "disaggregate": ("1:1",),
    }


def _of_training(task: str) -> Mapping[str, Sequence[object]]:
    return {
        "loss": tuple(name for name, each in OBJECTIVES.items() if each.task == task),
        "adapters": tuple(METHODS),
        "reference": ("loaded", "precomputed", "none"),
        "reward_model": ("llama-3.2-1b", "function"),
        "critic": ("llama-3.2-1b",),
        "group_size": (4,),
        "colocate": ("false",),
        "seq_len": (512, 4096, 16384),
        "micro_batch": (1, 4),
        "global_batch": (64, 512),
        "engine": _engines("training", task),
        "optimizer": ("adamw-8bit", "adafactor", "sgd", "muon"),
        "checkpointing": ("none", "full"),
        "precision": ("fp32", "bf16-mixed", "bf16", "fp16-mixed"),
        "quant": ("nf4", "int8", "mxfp4"),
        "zero": (0, 1, 2, 3),
        "offload": ("optimizer", "activations", "all"),
        "memory": ("12GiB", "64GiB"),
        "host_memory": ("16GiB", "128GiB"),
        "tokens": ("1M", "2T"),
        "deadline": ("2h", "60d"),
        "budget": (20, 5000),
        "tp": (2,),
        "pp": (2, 4),
        "cp": (2,),
        "ep": (2,),
        "lora_rank": (64,),
        "lora_targets": ("attention",),
    }
