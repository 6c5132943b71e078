"""The recipe: task, engine, precision, quantization, optimizer, checkpointing, attention, adapters."""

from __future__ import annotations

from collections.abc import Iterator

from ..adapters import OF_ADAPTERS, VIRTUAL_TOKENS
from ..catalog.architecture import Model
from ..catalog.backend import support
from ..catalog.device import Device, is_mixed
from ..catalog.engine import Engine
from ..catalog.quantization import Quantization, StoredWeights
from ..catalog.store import Catalog
from ..errors import UsageError
from ..model.head import masked_head
from ..objectives import OBJECTIVES, Objective, losses_of
from ..record import replace
from ..workload.kernels import stacks_experts
from .adapters import check_adapters, settle_base, settle_layers
from .draft import Draft
from .formats import FEWER, bits

TWICE, AS_FAST = 1.99, 0.99
"""Twice and once, between figures that were rounded to four digits."""
LLAMA_CPP = "llama.cpp"
"""Whose names of formats most of its kin use."""
QLORA_QUANTS = ("nf4", "nf4-single", "gptq-int4", "awq-int4", "int8")
OWN_BASES = ("nvfp4",)
"""Formats of a frozen base that an engine has kernels of its own for."""


def settle_objective(draft: Draft, model: Model) -> Model:
    """Settle `loss`, `adapters` and `reference` of a task with an objective; the model as it trains.

    Raises:
        UsageError: a loss of another task, a model that writes no answers, or an encoder-decoder.
    """
    losses = losses_of(draft.values["task"])
    if not losses:
        return _as_pretrained(draft, model)
    if not model.architecture.writes and not OBJECTIVES[losses[0]].scores:
        task = draft.values["task"]
        problem = f"{model.name} reads texts and writes none: --task {task} has no answers to learn from"
        raise UsageError("writes-nothing", problem, "use --task finetune or lora")
    if model.architecture.source is not None:
        task = draft.values["task"]
        problem = f"{model.name} is an encoder-decoder: no trainer of --task {task} is known that takes one"
        raise UsageError("no-trainer", problem, "use --task finetune or lora")
    loss = draft.settle("loss", losses[0])
    if loss not in losses:
        raise UsageError(
            "contradiction",
            f"--loss {loss} belongs to --task {OBJECTIVES[loss].task}, not to --task {draft.values['task']}",
            f"use one of {', '.join(losses)}",
            losses,
        )
    asked = "qlora" if draft.given.get("quant", "none") != "none" else "none"
    if asked == "none" and any(draft.was_said(name) for name in OF_ADAPTERS):
        asked = "lora"
    adapters = draft.settle("adapters", asked, "derived" if asked != "none" else "default")
    if OBJECTIVES[loss].reference:
        draft.settle("reference", OBJECTIVES[loss].default_reference)
    elif draft.was_given("reference"):
        draft.warn("option-unused", f"--loss {loss} needs no model to compare with: --reference was ignored")
    if adapters == "none" and any(draft.was_said(name) for name in OF_ADAPTERS):
        draft.warn("option-unused", "--adapters none trains all weights: what is said of adapters was ignored")
    return _as_trained(draft, model, OBJECTIVES[loss])


def _as_pretrained(draft: Draft, model: Model) -> Model:
    """The model with what predicts masked tokens, where it is an encoder in pre-training: what stands beside its layers
    runs, or what its file leaves out is added."""
    a = model.architecture
    if draft.values["task"] != "pretrain" or not a.encoder:
        return model
    beside = a.beside
    if a.masked and beside is not None:
        held = sum(weight.elements for weight in masked_head(a).weights)
        beside = replace(beside, vectors=beside.vectors - held)
    whole = replace(model, architecture=replace(a, masked=False, predicts=True, head_bias=True, beside=beside))
    draft.override("model", whole, draft.origins["model"])
    return whole


def _as_trained(draft: Draft, model: Model, objective: Objective) -> Model:
    """The model without its projection to the vocabulary, where numbers or vectors come out."""
    a = model.architecture
    if not objective.scores or a.encoder:
        return model
    if objective.last_token and a.scores_by_tokens:
        scored = replace(model, architecture=replace(a, last_token=True))
    else:
        scored = replace(model, architecture=replace(a, scores=True, tied=False))
    draft.override("model", scored, draft.origins["model"])
    return scored


def settle_rollouts(draft: Draft, engine: Engine) -> None:
    """Settle who writes the answers that a model learns from: how many, how long, and where.

    Raises:
        UsageError: an answer that leaves no room for a prompt, a reference that would have to know the answers before.
    """
    loss = draft.values.get("loss")
    if loss is None or not OBJECTIVES[loss].rollouts:
        return
    if draft.values.get("reference") == "precomputed":
        raise UsageError(
            "contradiction",
            f"--reference precomputed contradicts --loss {loss}, whose answers are written while it trains",
            "use --reference loaded or none",
        )
    seq_len = draft.values["seq_len"]
    if OBJECTIVES[loss].group > 1:
        draft.settle("group_size", OBJECTIVES[loss].group)
    elif draft.was_given("group_size"):
        draft.warn("option-unused", f"--loss {loss} compares no answers of a group: --group-size was ignored")
    length = draft.settle("response_length", max(1, seq_len // 2), "derived")
    if length >= seq_len:
        raise UsageError(
            "contradiction",
            f"--response-length {length} leaves no room for a prompt in --seq-len {seq_len}",
            f"use --seq-len {length + 256}, the tokens of prompt and answer, or a shorter answer",
        )
    longest = draft.settle("longest_response", length, "derived")
    if longest < length:
        raise UsageError(
            "contradiction",
            f"--longest-response {longest} is shorter than --response-length {length}, the average of all answers",
            "leave out --longest-response where all answers are as long",
        )
    from .writer import settle_writer

    settle_writer(draft, engine)


def settle_precision(draft: Draft, model: Model, device: Device, engine: Engine) -> None:
    """Settle `precision`: the widest-spread one that the engine trains in and the device runs at full rate.

    Raises:
        UsageError: for a training-only precision in inference.
    """
    rates = device.tflop_per_s
    if draft.values["task"] == "inference":
        sixteen = "fp16" if model.dtype == "float16" or rates.bf16 is None else "bf16"
        precision = draft.settle("precision", sixteen, "device" if rates.bf16 is None else "model")
        if is_mixed(precision):
            raise UsageError(
                "contradiction",
                f"--precision {precision} is a training recipe and contradicts --task inference",
                "use bf16, fp16 or fp32; 8-bit weights are --quant fp8",
            )
        return
    # a frozen base in 16 bits is half as large: taken for adapters where fp16 is no slower, as mlx-lm does
    worth = AS_FAST if draft.trains_adapters else TWICE
    if rates.bf16 is not None:
        default = "bf16-mixed"
    elif rates.fp16_matrix_fp32 is not None or (rates.fp16 or 0.0) >= worth * (rates.fp32 or 0.0) > 0:
        default = "fp16-mixed"
    else:
        default = "fp32"
    wide = engine.training.wide_base and draft.trains_adapters
    narrow = default == "bf16-mixed" and (wide or not engine.training.autocast or _as_loaded(draft, engine))
    precision = draft.settle("precision", "bf16" if narrow else default, "derived" if narrow else "device")
    if precision.startswith("bf16") and rates.bf16 is None:
        draft.warn(
            "no-bf16",
            f"{device.name} has no bf16 units; {precision} runs emulated; it is built for {default}",
        )


def _as_loaded(draft: Draft, engine: Engine) -> bool:
    """Whether an engine trains the 16-bit weights that it loads, with no wider ones beside them."""
    divided = draft.values["num_devices"] > 1 and engine.training.zero > 0
    return engine.training.narrow_weights and not divided and not draft.trains_adapters


def settle_quant(draft: Draft, model: Model, engine: Engine, catalog: Catalog) -> None:
    """Settle `quant` by task.

    Raises:
        UsageError: where quantized weights contradict the task.
    """
    task, method = draft.values["task"], draft.method
    if task == "inference":
        quant = _served_format(draft, model, engine, catalog)
        if quant == "int8" and engine.speaks == LLAMA_CPP:
            draft.override("quant", "q8_0", "backend")
            draft.warn("int8-is-q8_0", "llama.cpp has no LLM.int8; its 8-bit format q8_0 was taken")
        _keep_published(draft, model, engine, catalog)
        _check_reading(draft, engine, catalog)
        return
    if method == "qlora":
        quant = draft.settle("quant", "nf4")
        if quant not in QLORA_QUANTS and not _has_base(engine, quant):
            able = ", ".join(each.id for each in catalog.engines.values() if _has_base(each, quant))
            more = f"; with such a base: --engine {able}" if able else ""
            raise UsageError(
                "contradiction",
                f"--quant {quant} contradicts --task qlora, whose frozen base is in {', '.join(QLORA_QUANTS)}",
                f"use --quant nf4, or --task lora for a 16-bit base{more}",
            )
        return
    quant = draft.settle("quant", "none")
    if quant != "none":
        raise UsageError(
            "contradiction",
            f"--quant {quant} contradicts --task {task}: quantized weights cannot be trained",
            "use --task qlora for adapters on a quantized base, or --task inference",
        )


def _has_base(engine: Engine, quant: str) -> bool:
    """Whether an engine trains adapters on a base in a format that it has kernels of its own for."""
    return quant in OWN_BASES and quant in engine.formats and "training" in engine.does


def _served_format(draft: Draft, model: Model, engine: Engine, catalog: Catalog) -> str:
    """Settle the format of a served model: what was asked for, else the published one as far as the engine runs it."""
    usable = _usable_format(draft, model, engine, catalog)
    published = usable == model.published_quant
    quant: str = draft.settle("quant", usable, "model" if published and usable != "none" else "default")
    if not published and not draft.was_given("quant"):
        taken = "one of its own formats was" if engine.serving.automatic else "16 bits were"
        text = f"the published {model.published_quant} weights do not run under {engine.id}: {taken} taken"
        draft.warn("engine-format", text)
    return quant


def _keep_published(draft: Draft, model: Model, engine: Engine, catalog: Catalog) -> None:
    """Take the published few bits where a wider GGUF was asked for: a file of that name holds them all the same."""
    asked, published = str(draft.values["quant"]), model.published_quant
    known = catalog.tables.quantization
    if published in ("none", asked) or engine.speaks != LLAMA_CPP or draft.values.get("stored") is not None:
        return
    if asked != "none" and known.format(asked, LLAMA_CPP).kind != "gguf":
        return
    if not known.format(published).kind != known.format(published, LLAMA_CPP).kind == "gguf":
        return
    from ..catalog.names.model_search import keeps_published

    if keeps_published(asked, model, catalog):
        named = "16 bits were" if asked == "none" else f"{asked} was"
        draft.override("quant", published, "model")
        text = f"{named} asked for, but a GGUF of {model.name} keeps {published} whatever its name says: that was taken"
        draft.warn("gguf-keeps-published", text)


def _usable_format(draft: Draft, model: Model, engine: Engine, catalog: Catalog) -> str:
    """The published format; where the engine does not run it, its people's best one of as few bits at a desk, else 16.

    A file stays as it is.
    """
    published = model.published_quant
    form = catalog.tables.quantization.format(published, engine.speaks)
    if published == "none" or not engine.formats or engine.reads(form) or draft.values.get("stored") is not None:
        return published
    usual, formats = engine.serving.usual, catalog.tables.quantization
    if not engine.serving.automatic or not usual:
        return "none"
    most = bits(formats, published) / FEWER
    return next((each for each in usual if bits(formats, each) <= most), usual[-1])


def settle_formats(draft: Draft, model: Model, engine: Engine, catalog: Catalog) -> None:
    """Settle `quant`, and `transformers`, whose releases differ in what has it.

    Raises:
        UsageError: where quantized weights contradict the task.
    """
    settle_quant(draft, model, engine, catalog)
    settle_release(draft, model, engine, catalog)


def settle_release(draft: Draft, model: Model, engine: Engine, catalog: Catalog) -> None:
    """Settle `transformers`: today's release, or the one that has the experts in the format asked for."""
    known = catalog.tables.implementations
    serves = draft.values["task"] == "inference"
    runs = engine.serving.memory.public_code if serves else engine.training.runs_public_code(known)
    if draft.was_given("transformers") and not runs:
        if draft.origin_of_given("transformers") == "given":
            draft.warn("option-unused", f"{engine.name} does not run transformers' code: --transformers was ignored")
        draft.override("transformers", "5", "default")
        return
    form = catalog.tables.quantization.format(str(draft.values["quant"]), engine.speaks)
    packs = not serves and engine.training.packs_stacks
    older = runs and form.skips_stacks and not packs and stacks_experts(known, model.architecture)
    draft.settle("transformers", "4" if older else "5", "derived" if older else "default")


def _check_reading(draft: Draft, engine: Engine, catalog: Catalog) -> None:
    """Refuse a format that the engine does not run, and say what is special about one that it does.

    Nothing is known of an engine without a list; a file whose format has no name of its own is not refused.

    Raises:
        UsageError: naming the engines that run the format, and the formats that the engine runs.
    """
    quant, formats = str(draft.values["quant"]), catalog.tables.quantization
    form = formats.format(quant, engine.speaks)
    if form.notes:
        draft.warn("quant-notes", form.notes)
    stored: StoredWeights | None = draft.values.get("stored")
    nearest = stored is not None and stored.quant == quant != stored.label and stored.container != "gguf"
    if quant == "none" or not engine.formats or engine.reads(form) or nearest:
        return
    able = [each.id for each in catalog.engines.values() if "serving" in each.does and _runs(each, quant, formats)]
    # its kin need not be named
    able = [name for name in able if catalog.engines[name].speaks == name] or able
    if not able:
        return
    raise UsageError(
        "contradiction",
        f"--engine {engine.id} does not run {quant} weights",
        f"engines that do: {', '.join(able)}; formats of {engine.id}: {', '.join(readable(engine, formats))}",
        able,
    )


def _runs(engine: Engine, quant: str, formats: Quantization) -> bool:
    return engine.reads(formats.format(quant, engine.speaks))


def readable(engine: Engine, formats: Quantization) -> Iterator[str]:
    """Yield the formats that an engine runs: by id, or a kind with some of its formats."""
    for name in engine.formats:
        members = [form.id for key, form in formats.formats.items() if form.kind == name and key == form.id]
        some = [quant for quant in engine.serving.usual if quant in members] or members[:4]
        yield f"{name} ({', '.join(some)} ...)" if members else name


def settle_training_recipe(draft: Draft, model: Model, engine: Engine, catalog: Catalog) -> None:
    """Settle optimizer, checkpointing, dropout and adapters of a training task.

    Raises:
        UsageError: adapters that train nothing or of too high a rank, an optimizer that the engine has not.
    """
    adapters = draft.trains_adapters
    _settle_optimizer(draft, engine, catalog)
    loss = draft.values.get("loss")
    guided = loss is not None and OBJECTIVES[loss].spares
    own = engine.training.checkpointing
    if not adapters and engine.training.scheme.remakes_latents and model.architecture.mla is not None:
        own = "selective"
    default = "full" if guided or (adapters and own is None) else own or "none"
    draft.settle("checkpointing", default, "default" if own is None or guided else "backend")
    draft.settle("dropout", 0.0 if guided else None, "backend" if guided else "model")
    settle_base(draft, engine, catalog)
    draft.settle("lora_rank", 16)
    draft.settle("lora_targets", "all-linear")
    draft.settle("lora_kind", "lora")
    settle_layers(draft, model, engine)
    draft.settle("virtual_tokens", VIRTUAL_TOKENS)
    draft.settle("lora_dropout", 0.0)
    if adapters:
        check_adapters(draft, model, engine, catalog)


def _settle_optimizer(draft: Draft, engine: Engine, catalog: Catalog) -> None:
    """Settle `optimizer`: the engine's own where nobody says and the backend has it.

    Raises:
        UsageError: an optimizer that the engine has not; it names those that it has, and engines that have it.
    """
    own, device = engine.training.optimizer, draft.values["device"]
    missing = own != "adamw" and support(catalog.backends[device.backend], device, own).status == "unsupported"
    usual = own == "adamw" or missing
    optimizer = draft.settle("optimizer", "adamw" if usual else own, "default" if usual else "backend")
    if engine.optimizers and optimizer not in engine.optimizers:
        able = [
            each.id
            for each in catalog.engines.values()
            if "training" in each.does and each.launchers and not each.optimizers
        ]
        raise UsageError(
            "contradiction",
            f"--engine {engine.id} has no --optimizer {optimizer}",
            f"it has {', '.join(engine.optimizers)}; engines that take any: {', '.join(able)}",
            engine.optimizers,
        )


def settle_attention(draft: Draft, eager_reason: str) -> None:
    """Settle `attention`; `eager_reason` says why no fused kernel runs."""
    attention = draft.settle("attention", "eager" if eager_reason else "flash", "model" if eager_reason else "backend")
    if attention == "flash" and eager_reason:
        draft.override("attention", "eager", "model")
        draft.warn("eager-only", f"{eager_reason}; eager was taken")
