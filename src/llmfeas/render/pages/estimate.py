"""The report of one estimate: the answer first, then why, then what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...feasibility.verdict import HARMLESS, is_doubt
from ...text import printable
from ...units import (
    GIB,
    MIB,
    TIB,
    format_bytes,
    format_count,
    format_duration,
    format_energy,
    format_flop,
    format_mass,
    format_percent,
    format_usd,
)
from ..assumptions import assumptions, context, is_due, on_machine
from ..report import Bar, Heading, Json, Phrase, Report, Topic, glued, lines_of
from ..words import (
    COMPONENTS,
    LIMITS,
    MOMENTS,
    copies_of,
    figure,
    grouped,
    rate,
    sentence,
    verdict_words,
    ways_topic,
)
from .ladder import devices_of_machine, ladder_topic
from .load import load_topics
from .long_run import failure_topics
from .uses import uses_topic

BAR_UNITS = ((TIB, "TiB"), (GIB, "GiB"), (MIB, "MiB"))
SMALLEST_SHARE = 0.01
"""Components below this share of the peak are left out of the bars."""


def report(envelope: Json, model: str = "", device: str = "", *, ways: bool = True) -> Report:
    """What an envelope of `llmfeas estimate` says, with the ways to yes unless these stand elsewhere; `model` and
    `device` are names to show instead of ids."""
    inputs, result = envelope["inputs"], envelope["result"]
    model = printable(model or inputs["model"]["value"], 60)
    device = printable(device or inputs["device"]["value"], 60)
    unequal = result["memory"].get("parts")
    devices = glued(device if unequal else f"{inputs['num_devices']['value']} x {device}")
    title, verdict = f"{model}, {_size(result['parameters'])}, on {devices}", verdict_words(result["verdict"])
    asked = context(inputs, result["parameters"], reads=reads(result))
    uses = result.get("uses")
    in_full = not uses or _is_of_use(uses, inputs)
    sections = (
        *(_reasons(result["verdict"]) if in_full else ()),
        *(_figures(inputs, result) if in_full else ()),
        None if uses else ladder_topic(result["ladder"], inputs),
        _remedies(result["remedies"], result["verdict"]["memory"], other_tasks=not uses) if ways and in_full else None,
        ways_topic("To go faster", result.get("faster", [])) if ways else None,
        None if in_full else IN_FULL,
        _machine(result.get("memory_sizes"), told=not uses),
        _assumptions(envelope) if in_full else on_machine(inputs),
        _warnings([note for note in envelope["warnings"] if is_due(note["code"], uses or (), in_full)]),
    )
    blocks = tuple(section for section in sections if section is not None)
    if not uses:
        return Report(title=title, verdict=verdict, context=asked, blocks=blocks)
    task, *rest = asked
    detail = Heading(title=f"{task[:1].upper()}{task[1:]} in detail", verdict=verdict, context=tuple(rest))
    first = (uses_topic(uses, inputs["num_devices"]["value"]), *((detail,) if in_full else ()))
    return Report(title=title, blocks=(*first, *blocks))


def _assumptions(envelope: Json) -> Topic:
    inputs, result = envelope["inputs"], envelope["result"]
    memory = result["memory"]
    on_host = _on_host(inputs, memory)
    return assumptions(inputs, envelope["warnings"], result["verdict"]["memory"], memory.get("code"), on_host)


IN_FULL = Topic(
    label="In full", paragraphs=lines_of(("--task with one of these shows its figures, and what would make it work.",))
)
MACHINE = {"model", "device", "num_devices", "memory", "host_memory", "reserve"}
"""Settings that say what is asked about, not what is done with it."""


def _is_of_use(uses: Sequence[Json], inputs: Json) -> bool:
    """Whether figures of a task that nobody named are worth a screen: the machine does it in some way, or somebody
    said how."""
    works = (use["task"] for use in uses if use["verdict"]["status"] in ("feasible", "tight"))
    return inputs["task"]["value"] in works or any(
        entry["origin"] == "given" and name not in MACHINE for name, entry in inputs.items()
    )


def _figures(inputs: Json, result: Json) -> Iterator[Topic | None]:
    """Memory, computation, time, cost."""
    yield _memory(inputs, result["memory"])
    yield _room(inputs, result.get("serving"))
    yield _compute(result["flops"], inputs["task"]["value"])
    yield from _time(inputs, result)
    yield from failure_topics(result.get("long_run"))
    yield from load_topics(inputs, result)
    yield from _cost(result["cost"], inputs)


def _size(parameters: Json) -> str:
    total, active = parameters["total"], parameters["active"]
    size = glued(f"{format_count(total)} parameters")
    if active is None or active >= total:
        return size
    spread = {"low": parameters["active_min"], "expected": active, "high": parameters["active_max"]}
    return f"{size}, {figure(spread, format_count)}{glued(' active')}"


def _reasons(verdict: Json) -> Iterator[Topic]:
    """Why it does not work or only just, then what it lacks besides."""
    apart = True
    reasons = sorted(verdict["reasons"], key=lambda reason: is_doubt(reason["code"]))
    for label, harmless in (("Why", False), ("Limits", True)):
        found = [
            reason["message"]
            for reason in reasons
            if reason["code"] != "memory-fits" and (reason["code"] in HARMLESS) == harmless
        ]
        if found:
            yield Topic(label=label, paragraphs=lines_of(map(sentence, found)), apart=apart)
            apart = False


def _memory(inputs: Json, memory: Json) -> Topic:
    peak = memory["peak_bytes"]
    each = " on each device" if inputs["num_devices"]["value"] > 1 else ""
    usable, capacity = glued(format_bytes(memory["usable_bytes"])), glued(format_bytes(memory["capacity_bytes"]))
    of = f" of {capacity}" if capacity != usable else ""
    lines = [f"needs {figure(peak, format_bytes)}{each}, {usable} usable{of}"]
    if memory.get("parts"):
        lines = [_on_part(part) for part in memory["parts"]]
    if memory["host_bytes"]:
        lines.append(f"and {glued(format_bytes(_on_host(inputs, memory)))} of the computer's main memory")
    worst = " of the fullest device" if memory.get("parts") else ""
    lines.append(f"at the peak{worst}, {MOMENTS.get(memory['peak_moment'], memory['peak_moment'])}:")
    return Topic(label="Memory", paragraphs=lines_of(lines), bars=_components(memory))


def _on_host(inputs: Json, memory: Json) -> float:
    """Bytes in the main memory of one machine."""
    return float(memory["host_bytes"] or 0.0) * devices_of_machine(inputs)


def _on_part(part: Json) -> str:
    """What one of unequal devices holds."""
    usable = glued(format_bytes(part["usable_bytes"]))
    name = glued(printable(part["name"], 60))
    return f"needs {figure(part['peak_bytes'], format_bytes)} on {name}, {usable} usable"


def _room(inputs: Json, serving: Json | None) -> Topic | None:
    """What a server makes of its share of the device."""
    if serving is None:
        return None
    pool, tokens, at_once = (serving[name] for name in ("kv_pool_bytes", "kv_pool_tokens", "requests_at_once"))
    each = " on each device" if inputs["num_devices"]["value"] > 1 else ""
    copy = " a copy" if copies_of(inputs) > 1 else ""
    room = f"room for {figure(pool, format_bytes)}{each}, {glued(format_count(tokens['expected']) + ' tokens')}{copy}"
    context = glued(grouped(f"{inputs['context']['value']} tokens"))
    held = f"{_whole(at_once)} requests of {context} at once"
    text = f"{room}: {held}" if serving["starts"] else f"{room}: the server does not start"
    return Topic(label="Cache", paragraphs=((Phrase(text),),), apart=False)


def _whole(at_once: Json) -> str:
    """Whole requests, with their range."""
    low, expected, high = (int(at_once[name]) for name in ("low", "expected", "high"))
    return f"{expected}" if low == high else glued(f"{expected} ({low} – {high})")


def _components(memory: Json) -> tuple[Bar, ...]:
    sizes = [(name, memory["components"].get(name) or 0.0) for name in COMPONENTS]
    shown = [(name, size) for name, size in sizes if size > SMALLEST_SHARE * memory["peak_bytes"]["expected"]]
    if not shown:
        return ()
    largest = max(size for _, size in shown)
    unit, name_of_unit = next(each for each in BAR_UNITS if largest >= each[0] or each is BAR_UNITS[-1])
    decimals = 2 if largest < 10 * unit else 1 if largest < 100 * unit else 0
    return tuple(
        Bar(size / largest, COMPONENTS[name], f"{size / unit:.{decimals}f} {name_of_unit}")
        for name, size in sorted(shown, key=lambda pair: -pair[1])
    )


def _compute(flops: Json, task: str) -> Topic | None:
    if flops["model"] is None:
        return None
    rule = "6·N·D" if task != "inference" else "2·N·D"
    naive = glued(f"{format_flop(flops['rule_of_thumb'])} FLOP")
    text = f"{naive} by {rule}, {format_flop(flops['model'])} exactly"
    if flops["hardware"] and flops["hardware"] > 1.005 * flops["model"]:
        text += f", {format_flop(flops['hardware'])} executed"
    return Topic(label="Compute", paragraphs=((Phrase(text),),), apart=False)


def _condition(verdict: Json) -> str:
    if verdict["software"] == "unsupported":
        return ", if it were supported"
    return ", if it did fit" if verdict["memory"] == "exceeds" else ""


def _time(inputs: Json, result: Json) -> list[Topic]:
    time, condition = result["time"], _condition(result["verdict"])
    if things := reads(result):
        return [*_corpus(time, condition), _reading(inputs, time, things, condition)]
    if time.get("total_seconds"):
        share = f" at {_share_of_peak(time['mfu'])}" if time.get("mfu") else ""
        bound = _limited(inputs, time, "bound_by")
        speed = f"{rate(time['tokens_per_second'])}{share}{bound}"
        total = f"{figure(time['total_seconds'], format_duration)}{condition}"
        return [Topic(label="Time", paragraphs=((Phrase(total, "figure"),), (Phrase(speed),)), apart=False)]
    if time.get("decode_tokens_per_second"):
        first, *others = _speeds(inputs, time, condition, under_load=bool(result.get("load")))
        lines = ((Phrase(first, "figure"),), *((Phrase(line),) for line in others))
        return [Topic(label="Speed", paragraphs=lines, apart=False)]
    return []


def _corpus(time: Json, condition: str) -> Iterator[Topic]:
    """How long all texts take that are to be read, where somebody said how many."""
    if total := time.get("total_seconds"):
        text = f"{figure(total, format_duration)}{condition}"
        yield Topic(label="Time", paragraphs=((Phrase(text, "figure"),),), apart=False)


def _reading(inputs: Json, time: Json, things: str, condition: str) -> Topic:
    """The speed of a model that writes nothing: of all texts or pairs of a batch, and of one that is alone."""
    speed, length = time["prefill_tokens_per_second"], inputs["prompt"]["value"]
    texts = {end: value / length for end, value in speed.items()}
    read = f"reads {rate(speed)}{_limited(inputs, time, 'prefill_bound_by')}{condition}"
    alone = figure(time["time_to_first_token_seconds"], format_duration)
    each = f"{rate(texts, f'{things}/s')}; one alone is read in {alone}"
    return Topic(label="Speed", paragraphs=((Phrase(read, "figure"),), (Phrase(each),)), apart=False)


def _share_of_peak(mfu: Json) -> str:
    return figure(mfu, format_percent).replace("%", glued("% of peak"), 1)


def _limited(inputs: Json, time: Json, key: str) -> str:
    """What limits a speed; all that one device communicates with is its host."""
    bound = time.get(key)
    if not bound:
        return ""
    for setting, computed in (("n_cpu_moe", "experts"), ("gpu_layers", "layers")):
        if bound == "host" and inputs.get(setting, {}).get("value"):
            return f", limited by the {computed} that the processor computes"
    alone = bound == "communication" and inputs["num_devices"]["value"] == 1
    return f", limited by {'transfers from main memory' if alone else LIMITS.get(bound, bound)}"


def reads(result: Json) -> str | None:
    """What a model that writes nothing is served with (answers of before 0.3 do not say it); None where it writes."""
    written = result["time"].get("decode_tokens_per_second")
    return None if written is None or written["expected"] else str(result.get("reads", "texts"))


def _speeds(inputs: Json, time: Json, condition: str, *, under_load: bool) -> list[str]:
    """What it writes and reads; `under_load` the first token is said there, and what is written beside prompts."""
    written = _limited(inputs, time, "decode_bound_by")
    requests = inputs.get("concurrency", {}).get("value") or 1
    single = time.get("tokens_per_second_per_sequence") if requests > 1 else None
    alone = f" to all {requests} together, {rate(single)} to each" if single else ""
    alone += " while no prompt is read" if single and under_load else ""
    lines = [f"writes {rate(time['decode_tokens_per_second'])}{alone}{written}{condition}"]
    if time.get("prefill_tokens_per_second"):
        read = _limited(inputs, time, "prefill_bound_by")
        lines.append(f"reads prompts at {rate(time['prefill_tokens_per_second'])}{read}")
    if not under_load and time.get("time_to_first_token_seconds") and inputs.get("prompt", {}).get("value"):
        lines.append(f"first token after {figure(time['time_to_first_token_seconds'], format_duration)}")
    return lines


def _cost(cost: Json, inputs: Json) -> list[Topic]:
    sections = []
    usd, energy = _money(cost), _energy(cost)
    bought = cost.get("purchase")
    if usd:
        rent = "" if bought else _price(cost["price"], inputs["num_devices"]["value"])
        text = usd + rent + (_electricity(inputs) if energy else "")
        sections.append(Topic(label="Cost", paragraphs=((Phrase(text),),), apart=False))
    if bought:
        sections.append(Topic(label="Buying", paragraphs=((Phrase(_buying(cost)),),), apart=False))
    if energy:
        sections.append(Topic(label="Energy", paragraphs=((Phrase(energy + _emitted(cost)),),), apart=False))
    return sections


def _money(cost: Json) -> str:
    usd, per_million = cost["usd"], cost["usd_per_million_tokens"]
    if usd:
        return figure(usd, format_usd) if usd["expected"] else "free"
    if per_million is None:
        return ""
    return glued(f"{format_usd(per_million)} a million tokens") if per_million else "free"


def _price(price: Json | None, devices: int) -> str:
    if price is None:
        return ""
    hourly, given = price["usd_per_device_hour"], price["provider"] in (None, "given")
    rate = f" at {glued(f'{format_usd(hourly)} an hour')}{' a device' if devices > 1 else ''}" if hourly else ""
    dated = [price["as_of"] or "undated"] if hourly else []
    return rate if given else f"{rate} ({printable(', '.join([price['provider'], *dated]), 60)})"


def _buying(cost: Json) -> str:
    """Say what an hour of a bought device costs, and from when on buying is cheaper than the rent."""
    bought, rent = cost["purchase"], _price(cost["price"], 1)
    life = format_duration(bought["lifetime_seconds"])
    wear = glued(f"{format_usd(bought['usd_per_device_hour'])} an hour")
    power = bought["electricity_usd_per_device_hour"]
    running = "" if power is None else f" and {glued(f'{format_usd(power)} of electricity')}"
    text = f"{format_usd(bought['usd_per_device'])} a device over {glued(life)}: {wear} around the clock{running}; "
    share, hours = bought["break_even_share"], bought["break_even_hours"]
    if hours is None:
        return text + (
            "renting is never dearer than its electricity" if rent else "no rent is known to compare it with"
        )
    when = glued(f"{format_count(hours)} hours")
    if share > 1:
        return text + f"renting{rent} is cheaper: buying would pay after {when} of use, more than {glued(life)}"
    return text + f"cheaper than renting{rent} from {when} of use on, {format_percent(share)} of {glued(life)}"


def _electricity(inputs: Json) -> str:
    rate = inputs.get("electricity", {}).get("value")
    rented = inputs["price"]["value"] or inputs.get("purchase_price", {}).get("value")
    return f" {'with' if rented else 'for'} electricity at {glued(f'{format_usd(rate)} a kWh')}" if rate else ""


def _energy(cost: Json) -> str:
    if cost["energy_kwh"]:
        return figure(cost["energy_kwh"], format_energy)
    per_million = cost["energy_kwh_per_million_tokens"]
    return "" if per_million is None else glued(f"{format_energy(per_million)} a million tokens")


def _emitted(cost: Json) -> str:
    """The CO2 of the energy, where a region was named."""
    co2 = cost.get("co2")
    if not co2:
        return ""
    place = "the mean of the world" if co2["region"] == "world" else co2["region"]
    rate = glued(f"{co2['g_per_kwh']:.0f} g a kWh")
    grid = f"({rate}, {place}, {co2['as_of']})"
    if co2["kg"]:
        return f", {figure(co2['kg'], format_mass)} of CO2 {grid}"
    return f", {glued(format_mass(co2['kg_per_million_tokens']))} of CO2 {grid}"


def _machine(sizes: list[Json] | None, *, told: bool = True) -> Topic | None:
    """Which memory of a machine that is sold in several sizes was assumed; `told`: and from which on it works."""
    if not sizes:
        return None
    named = [f"{size['memory_bytes'] / GIB:g}" for size in sizes]
    assumed = next((name for name, size in zip(named, sizes, strict=True) if size["assumed"]), None)
    others = f"{', '.join(named[:-1])} and {named[-1]} GiB"
    text = f"{assumed} GiB of memory assumed; it is sold with {others}." if assumed else f"It is sold with {others}."
    works = [name for name, size in zip(named, sizes, strict=True) if size["status"] in ("feasible", "tight")]
    fits = f"It works from {works[0]} GiB on" if works else "None of them is enough"
    rest = f"{text} {fits}; --memory says which it is." if told else f"{text} --memory says which it is."
    return Topic(label="Machine", paragraphs=((Phrase(rest),),))


NOTHING_NEAR = "no one or two changes do; 'llmfeas plan' looks further"


def _remedies(remedies: list[Json], memory: str, *, other_tasks: bool = True) -> Topic | None:
    """The nearest ways, without those of other tasks where these have lines of their own."""
    if not remedies:
        return Topic(label="To make it work", paragraphs=((Phrase(NOTHING_NEAR),),)) if memory == "exceeds" else None
    shown = [remedy for remedy in remedies if other_tasks or "task" not in remedy["changes"]]
    return ways_topic("To make it work", shown)


def _warnings(warnings: list[Json]) -> Topic | None:
    if not warnings:
        return None
    return Topic(label="Note", paragraphs=lines_of((sentence(note["message"]) for note in warnings), "tight"))
