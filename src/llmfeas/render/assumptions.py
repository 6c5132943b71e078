"""What was asked and what was assumed: the context line below the title, and the settings that nobody gave."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from ..adapters import ADAPTERS
from ..objectives import OBJECTIVES
from ..text import printable
from ..units import digits, format_bytes, format_count
from .report import Column, Json, Phrase, Table, Topic, glued, lines_of
from .words import TASKS, copies_of, grouped, setting

SHOWN_ABOVE = ("task", "tokens", "seq_len", "micro_batch", "precision", "quant", "optimizer", "attention", "engine")
"""Settings whose value stands in the context line, training and inference together."""


READING = {"texts": "embedding", "pairs": "reranking"}
"""What a model does that writes nothing, by what it is served with."""


def context(inputs: Json, parameters: Json, *, reads: str | None = None) -> tuple[str, ...]:
    """What is done, in few words each: task, batch, recipe, engine; `reads`: what a model is served with that writes
    nothing (texts, pairs)."""

    def value(name: str) -> Any:
        return inputs.get(name, {}).get("value")

    serves = value("task") == "inference"
    parts = (
        _training(value, parameters["total"]) if not serves else _reading(value, reads) if reads else _inference(value)
    )
    layout = [f"{name} {value(name)}" for name in ("tp", "pp", "ep", "cp") if (value(name) or 1) > 1]
    if serves and (copies := copies_of(inputs)) > 1 and not value("disaggregate"):
        shared = (value("ep") or 1) > 1  # one set of experts stands between them
        layout.append(f"dp {copies}" if shared else f"{copies} copies")
    if value("zero"):
        layout.insert(0, f"ZeRO {value('zero')}")
    if (value("offload") or "none") != "none":
        layout.append(f"{value('offload')} offloaded")
    task = TASKS.get(value("task"), str(value("task"))) if reads is None else READING[reads]
    return tuple(glued(grouped(printable(part, 80))) for part in (task, *parts, *layout, str(value("engine"))))


def _adapters(value: Any) -> str:
    """Name the adapters: a rank and its matrices, or what they are without one."""
    kind = ADAPTERS.get(value("lora_kind") or "lora", ADAPTERS["lora"])
    if kind.virtual:
        return f"{value('virtual_tokens')} learned tokens ({value('lora_kind')})"
    if kind.scales:
        return f"{value('lora_kind')}, {value('lora_targets')}"
    return f"rank {value('lora_rank')}, {value('lora_targets')}"


def _writer(value: Any) -> str:
    if value("rollout_engine") == "transformers":
        return "by its own generate"
    if value("colocate") != "true":
        return "on as many devices beside"
    return "by a server that sleeps between" if value("sleep") == "true" else "on the same devices"


def _training(value: Any, total: float) -> Iterator[str]:
    several = _sequences(value)
    of = {1: "sequences", 2: "pairs"}.get(several, "examples")
    yield f"{value('micro_batch')} x {f'{several} x ' if several > 1 else ''}{value('seq_len')} tokens a device"
    if value("global_batch") and value("global_batch") != value("micro_batch"):
        yield f"{value('global_batch')} {of} a step"
    if value("loss"):
        yield f"{value('loss')} loss"
    if value("response_length"):
        several = value("group_size") or 1
        longest = value("longest_response") or 0
        more = f", the longest {longest}," if longest > value("response_length") else ""
        yield f"{several} answer{'s' * (several > 1)} of {value('response_length')} tokens{more} a prompt"
        yield f"written {_writer(value)}"
    if value("loss"):
        yield from ("reference computed before",) if value("reference") == "precomputed" else ()
        yield from (
            f"{what.replace('_', ' ')} {value(what)}" for what in ("teacher", "reward_model", "critic") if value(what)
        )
    yield str(value("precision"))
    if (value("quant") or "none") != "none":
        yield f"{value('quant')} weights"
    if value("lora_rank") and (value("adapters") or value("task")) in ("lora", "qlora"):
        yield _adapters(value)
        if value("lora_layers"):
            yield f"adapters on the last {value('lora_layers')} layers"
        if value("lora_dropout"):
            yield f"adapter dropout {value('lora_dropout'):g}"
    yield str(value("optimizer"))
    yield f"{value('attention')} attention"
    if (value("checkpointing") or "none") != "none":
        yield f"{value('checkpointing')} checkpointing"
    if value("examples"):
        yield _examples(value)
    elif value("data_size"):
        yield _text(value)
    elif value("tokens"):
        each = value("tokens") / total
        yield f"{format_count(value('tokens'))} tokens" + (f" ({digits(each)} a parameter)" if each >= 1 else "")


def _sequences(value: Any) -> int:
    """Sequences of an example."""
    return OBJECTIVES[value("loss")].sequences if value("loss") else 1


def _epochs(value: Any) -> str:
    return f" x {digits(value('epochs'))} epochs" if value("epochs") != 1 else ""


def _examples(value: Any) -> str:
    each = min(value("example_tokens"), value("seq_len"))
    several, answers = _sequences(value), value("group_size") or 1
    what = {1: "examples", 2: "pairs x 2"}.get(several, f"examples x {several}")
    if answers > 1:
        what = f"prompts x {answers} answers"
    counted = f"{format_count(value('examples'))} {what} x {each} tokens{_epochs(value)}"
    return f"{counted} = {format_count(value('tokens'))} tokens"


def _text(value: Any) -> str:
    each = f"{value('bytes_per_token'):g} bytes a token{_epochs(value)}"
    return f"{format_bytes(value('data_size'))} of text at {each} = {format_count(value('tokens'))} tokens"


def _weights(value: Any) -> str:
    quant = value("quant") or "none"
    return f"{value('precision') if quant == 'none' else quant} weights"


def _inference(value: Any) -> Iterator[str]:
    yield _weights(value)
    if value("context"):
        yield f"room for {value('context')} tokens ({value('kv_dtype')})"
    if value("prompt"):
        apart = value("context") and value("prompt") > value("context")  # only an encoder has room of its own
        yield f"an encoder that reads {value('prompt')} positions" if apart else f"prompt of {value('prompt')} tokens"
    if value("rate") or value("requests") or (value("prompt") and (value("concurrency") or 1) > 1):
        yield f"answers of {value('output')} tokens"
    if value("disaggregate"):
        yield "prompts and answers apart, {} and {} devices".format(*value("disaggregate").split(":"))
    if value("draft"):
        yield f"{value('spec_tokens')} tokens drafted by {value('draft')}"
    if value("rate"):
        yield f"{digits(value('rate'))} requests/s"
    if value("requests"):
        yield f"{value('requests')} requests"
    if (value("concurrency") or 1) > 1:
        yield f"{value('concurrency')} requests at once"


def _reading(value: Any, things: str) -> Iterator[str]:
    """What a model is asked that writes nothing."""
    yield _weights(value)
    many = value("concurrency") or 1
    length = value("prompt") or value("context")
    yield f"{many} {things} of {length} tokens at once" if many > 1 else f"a {things[:-1]} of {length} tokens"


def _assumed(inputs: Json) -> list[tuple[str, Any, str]]:
    return [
        (name, entry["value"], entry["origin"])
        for name, entry in inputs.items()
        if entry["origin"] != "given" and entry["value"] is not None
    ]


JUDGED = {"unmeasured-speed": "speed", "unmeasured-memory": "memory"}
"""Warnings that say whose range is only judgement."""


MUCH = 0.1
"""From this share on what is used of a machine's main memory makes one ask how much there is."""


CODES = {
    "fused": "Training runs a framework's fused kernels; public code holds more in memory.",
    "own": "Training runs the engine's own code; its memory is counted as that of the model's public code.",
    "patched": "Training runs the model's public code with a library's kernels in it.",
    "compiled": "Training runs the model's public code, compiled with its loss.",
    "public": "Training runs the model's public code; fused kernels would hold less in memory.",
}
"""Whose code a training is taken to run."""


def assumptions(
    inputs: Json, warnings: Iterable[Json] = (), memory: str = "fits", code: str | None = None, on_host: float = 0.0
) -> Topic:
    """What nobody gave, and what ranges mean; `--explain` shows each value with its origin.

    `memory`: what the verdict says of it; `code`: whose a training runs; `on_host`: bytes in main memory of a machine.
    """
    names = [name.replace("_", "-") for name, _, _ in _assumed(inputs) if name in SHOWN_ABOVE]
    listed = f"{', '.join(glued(name) for name in names)}, as above" if names else "nothing that is shown above"
    codes = {warning["code"] for warning in warnings}
    text = f"{listed}; --explain tells why. {_meaning(codes)}"
    sure = memory == "fits" and "may-spill" not in codes
    host = "may-spill" in codes
    said = [CODES[code]] if code in CODES else []
    sentences = (
        *said,
        *_left_free(inputs),
        *_beside(inputs, on_host),
        *_chosen_to_fit(inputs, sure=sure, host=host),
        text,
    )
    return Topic(label="Assumed", paragraphs=lines_of(sentences, "dim"))


OF_FIGURES = {
    "adapters-in-fp32",
    "calibrated",
    "experts-in-16-bits",
    "experts-in-fp32",
    "memory-approximate",
    "recurrence-written-out",
    "selective-stays",
    "states-stay",
    "unmeasured-memory",
    "unmeasured-speed",
}
"""Notes on figures of a task, of use where these are shown."""


def is_due(code: str, uses: Collection[Json], in_full: bool) -> bool:
    """Whether a note says something of what is on the screen."""
    return not (uses and code == "option-unused") and (in_full or code not in OF_FIGURES)


def on_machine(inputs: Json) -> Topic | None:
    """What nobody said of the machine."""
    sentences = tuple(_left_free(inputs))
    return Topic(label="Assumed", paragraphs=lines_of(sentences, "dim")) if sentences else None


def _left_free(inputs: Json) -> Iterator[str]:
    """Yield what memory a processor has beside it, and what of a card in one's own machine is left to others."""
    memory, reserve = inputs.get("memory", {}), inputs.get("reserve", {})
    if memory.get("origin") == "default":
        yield f"{glued(format_bytes(memory['value']))} of main memory (--memory)."
    if reserve.get("value") and reserve["origin"] != "given":
        size = glued(format_bytes(reserve["value"]))
        yield f"{size} of a card's memory belong to the screen and other programs (--reserve)."
    share = inputs.get("gpu_memory_utilization", {})
    if share.get("value") and share["origin"] == "derived":
        server = inputs["engine"]["value"]
        yield (
            f"{server} takes {share['value']:g} of the card: with its own default it would not start beside them "
            "(--gpu-memory-utilization)."
        )
    limit = inputs.get("wired_limit", {})
    if limit.get("value") and limit["origin"] != "given":
        size, whole = (glued(format_bytes(inputs[name]["value"])) for name in ("wired_limit", "memory"))
        yield f"macOS 26 and newer let the GPU have {size} of {whole} (--wired-limit)."


def _beside(inputs: Json, on_host: float) -> Iterator[str]:
    """Yield the main memory that a machine is taken to have, where a good part of it is used."""
    host, limit = inputs.get("host_memory", {}), inputs.get("wired_limit", {})
    if host.get("origin") == "default" and on_host > MUCH * host["value"] and not limit.get("value"):
        yield f"{glued(format_bytes(host['value']))} of main memory in the computer (--host-memory)."


def _chosen_to_fit(inputs: Json, *, sure: bool, host: bool) -> Iterator[str]:
    """Yield why weights are in a smaller format than the published one, and why some layers lie on the host.

    `host`: some may yet come to lie there.
    """
    quant, layers = inputs.get("quant", {}), inputs.get("gpu_layers", {})
    placed = layers.get("origin") == "derived" and layers.get("value") is not None
    experts = inputs.get("n_cpu_moe", {})
    moved = experts.get("value") if experts.get("origin") == "derived" else None
    if quant.get("origin") == "derived":
        weights = glued(str(quant["value"]) + " weights")
        if placed or moved or host:
            more = "more" if placed or moved else "some"
            what = "experts" if moved and not placed else "layers"
            where = f"with {more} {what} in main memory only"
            yield f"{weights}: the smallest usual format; larger ones fit {where} (--quant)."
        elif not sure:
            yield f"{weights}: the smallest usual format; larger ones do not fit (--quant)."
        else:
            from ..planning.expressed.servers import IN_CHECKPOINT

            own = "; a checkpoint of it must be had" if quant["value"] in IN_CHECKPOINT else ""
            yield f"{weights}: the best usual format that surely fits; as published they do not{own} (--quant)."
    if moved:
        whose = f"The experts of {moved} layer{'s' if moved > 1 else ''}"
        yield f"{glued(whose)} stay in main memory, no more than must for the rest to fit surely (--n-cpu-moe)."
    if placed:
        where = f"{layers['value']} layers on the device"
        yield f"{glued(where)}, as many as surely fit; the rest runs on the host (--gpu-layers)."


def _meaning(codes: Collection[str]) -> str:
    judged = [what for code, what in JUDGED.items() if code in codes]
    if len(judged) == len(JUDGED):
        return "Ranges are judgement."
    held = f"hold {glued('4 of 5')} real runs"
    if not judged:
        return f"Ranges {held}."
    (other,) = (what for what in JUDGED.values() if what not in judged)
    return f"The range of {other} is meant to {held}, that of {judged[0]} is judgement."


def settings(inputs: Json) -> Table:
    """Every setting that means something with its value and its origin."""
    rows = tuple(
        (Phrase(name.replace("_", "-")), Phrase(setting(name, entry["value"])), Phrase(str(entry["origin"]), "dim"))
        for name, entry in inputs.items()
        if entry["value"] is not None
    )
    columns = (Column(title="Setting"), Column(title="Value", prose=True), Column(title="From"))
    return Table(columns=columns, rows=rows)
