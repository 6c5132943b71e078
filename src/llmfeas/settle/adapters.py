"""Adapters: on which layers they are, and which an engine and a model can have."""

from __future__ import annotations

from ..adapters import ADAPTERS, AdapterKind
from ..catalog.architecture import Model
from ..catalog.device import FULL_PRECISION, is_mixed
from ..catalog.engine import Engine
from ..catalog.store import Catalog
from ..errors import UsageError
from ..options import ALL_LAYERS
from ..text import printable
from ..workload.parameters import adapted_shapes, parameters
from .draft import Draft


def settle_layers(draft: Draft, model: Model, engine: Engine) -> None:
    """Settle `lora_layers`: as many last layers as get adapters, None for all of them.

    Raises:
        UsageError: more layers than there are, or some of those of an encoder and a decoder.
    """
    a, most, name = model.architecture, engine.training.adapted_layers, printable(model.name, 60)
    pairs = draft.trains_adapters and ADAPTERS[draft.values["lora_kind"]].pairs
    own = most if pairs and most is not None and most < a.own_layers and a.source is None else None
    found = draft.settle("lora_layers", own, "default" if own is None else "backend")
    if not pairs:
        if draft.was_said("lora_layers") and draft.trains_adapters:
            kind = draft.values["lora_kind"]
            draft.warn("option-unused", f"--lora-kind {kind} has no layers to choose: --lora-layers was ignored")
        draft.override("lora_layers", None, "default")
        return
    if found is None or found == own:
        return
    said = draft.origins["lora_layers"]
    if said == "given" and a.own_layers < found < ALL_LAYERS:
        text = f"--lora-layers {found} is beyond the {a.own_layers} layers of {name}"
        raise UsageError("contradiction", text, "use --lora-layers all, or fewer")
    if found < a.own_layers and a.source is not None:
        text = f"--lora-layers is counted for one stack of layers, and {name} has an encoder and a decoder"
        raise UsageError("contradiction", text, "use --lora-layers all")
    whole = a.own_layers if own is not None else None
    draft.override("lora_layers", found if found < a.own_layers else whole, said)


def settle_base(draft: Draft, engine: Engine, catalog: Catalog) -> None:
    """Settle `base_dtype`: of a base that is not in few bits, 16 bits where there is autocast or nothing but them.

    Raises:
        UsageError: a format that the precision does not go with, or the engine does not hold a base in.
    """
    precision = draft.values["precision"]
    if draft.method != "lora":
        draft.settle("base_dtype", None)
        if draft.was_said("base_dtype") and draft.method == "qlora":
            draft.warn("option-unused", f"the base is in {draft.values['quant']}: --base-dtype was ignored")
        draft.override("base_dtype", None, "default")
        return
    mixed, full = is_mixed(precision), precision in FULL_PRECISION
    wide = full or (mixed and engine.training.wide_base)
    sixteen = "fp16" if precision.startswith("fp16") else "bf16"
    found = draft.settle("base_dtype", "fp32" if wide else sixteen, "backend" if wide and mixed else "default")
    if (found != "fp32" and full) or (found == "fp32" and not (full or mixed)):
        text = f"--base-dtype {found} contradicts --precision {precision}, which has no other type beside it"
        raise UsageError("contradiction", text, "use --precision bf16-mixed, or leave --base-dtype out")
    public = engine.training.runs_public_code(catalog.tables.implementations) or engine.training.wide_base
    if found == "fp32" and mixed and not public:
        text = f"--engine {engine.id} holds a frozen base in 16 bits beside adapters: --base-dtype fp32 is none of its"
        raise UsageError("contradiction", text, "use --engine pytorch, or leave --base-dtype out")


def check_adapters(draft: Draft, model: Model, engine: Engine, catalog: Catalog) -> None:
    """Check adapters against the engine, the matrices and what they train.

    Raises:
        UsageError: adapters that the engine has not, that train nothing, or of too high a rank.
    """
    _check_kind(draft, model, engine, catalog)
    limit = min(model.architecture.hidden, model.architecture.q_width)
    rank = draft.values["lora_rank"]
    if rank > limit:
        text = f"--lora-rank {rank} is beyond the matrices of {printable(model.name, 60)}, which are {limit} wide"
        raise UsageError("rank-beyond-matrix", text, f"use {limit // 8} or less, or --task finetune: all weights")
    narrowest = min((min(shape) for shape in adapted_shapes(model.architecture)), default=rank)
    if rank > narrowest and draft.was_said("lora_rank") and ADAPTERS[draft.values["lora_kind"]].pairs:
        text = f"--lora-rank {rank} is beyond some matrices, which are {narrowest} wide: no low rank there"
        draft.warn("rank-beyond-some", text)
    targets = draft.values["lora_targets"]
    kind = draft.values["lora_kind"]
    if not parameters(model, rank, targets, kind=kind, virtual_tokens=1).trainable and not ADAPTERS[kind].pairs:
        text = f"--lora-kind {kind} trains nothing: {printable(model.name, 60)} has no keys and values of its own"
        raise UsageError("contradiction", text, "Use --lora-kind lora or prompt.")
    last, layers = draft.values["lora_layers"], model.architecture.own_layers
    if targets == "attention" and not parameters(model, rank, targets, bare_layers=layers - (last or layers)).trainable:
        anywhere = parameters(model, rank, targets).trainable
        where = f"what --lora-layers {last} leaves" if anywhere else printable(model.name, 60)
        text = f"--lora-targets attention trains nothing: {where} has no attention"
        raise UsageError("contradiction", text, "Use --lora-targets all-linear.")


def _check_kind(draft: Draft, model: Model, engine: Engine, catalog: Catalog) -> None:
    """Refuse adapters that the engine has not.

    Raises:
        UsageError: naming those that it has, and the engines that have them.
    """
    kind = draft.values["lora_kind"]
    if kind not in engine.adapters:
        able = [each.id for each in catalog.engines.values() if kind in each.adapters and each.launchers]
        raise UsageError(
            "contradiction",
            f"--engine {engine.id} has no --lora-kind {kind}",
            f"it has {', '.join(engine.adapters)}; engines that have it: {', '.join(able)}",
            engine.adapters,
        )
    _check_pairless(draft, model, ADAPTERS[kind])
    if kind == "dora" and model.architecture.experts is not None and draft.values["lora_targets"] == "all-linear":
        raise UsageError(
            "contradiction",
            "--lora-kind dora has no magnitudes for stacked experts",
            "use --lora-targets attention, or --lora-kind lora",
        )


def _check_pairless(draft: Draft, model: Model, kind: AdapterKind) -> None:
    """Check adapters without low-rank pairs, and name what has no meaning for them.

    Raises:
        UsageError: learned keys where there is none to learn, or beside checkpointing, which peft refuses.
    """
    name, a = draft.values["lora_kind"], model.architecture
    if kind.virtual == "cache" and (a.encoder or a.source is not None):
        text = f"--lora-kind {name} is counted for decoders alone, and {printable(model.name, 60)} has an encoder"
        raise UsageError("contradiction", text, "use --lora-kind prompt")
    if kind.virtual == "cache" and a.mla is not None:
        text = (
            f"--lora-kind {name} learns keys and values, and {printable(model.name, 60)} keeps latents in their place"
        )
        raise UsageError("contradiction", text, "use --lora-kind prompt")
    if kind.virtual == "cache" and draft.values["checkpointing"] != "none":
        if draft.was_said("checkpointing"):
            text = f"--lora-kind {name} contradicts --checkpointing {draft.values['checkpointing']}: peft refuses both"
            raise UsageError("contradiction", text, "use --checkpointing none, or --lora-kind prompt")
        draft.override("checkpointing", "none", "derived")
    if not kind.virtual and draft.was_said("virtual_tokens"):
        draft.warn("option-unused", f"--lora-kind {name} learns no tokens: --virtual-tokens was ignored")
    if not kind.pairs:
        for setting in ("lora_rank", "lora_dropout", *(("lora_targets",) if kind.virtual else ())):
            if draft.was_said(setting):
                flag = "--" + setting.replace("_", "-")
                draft.warn("option-unused", f"--lora-kind {name} has no low-rank pairs: {flag} was ignored")
        draft.override("lora_dropout", 0.0, "default")
