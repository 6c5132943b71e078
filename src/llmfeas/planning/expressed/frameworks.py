"""What frameworks for pre-training can express: Megatron-LM and MaxText, which know some architectures alone."""

from __future__ import annotations

from ...catalog.architecture import Architecture
from ...catalog.device import NARROW
from ...catalog.store import built_in
from ...model.build import build
from ...scenario import UNGUIDED, Scenario
from ...workload.stages import stages
from .expressible import Expressible, Objection

MEGATRON_OPTIMIZERS = {
    "adamw": "adam",
    "adamw-bf16": "adam",
    "sgd": "sgd",
    "sgd-momentum": "sgd",
    "lion": "lion",
    "muon": "muon",
}
EMERGING = ("lion", "muon")


def missing_option(architecture: Architecture) -> str | None:
    """What Megatron-LM's GPT has no option for; None where it can be built."""
    experts = architecture.experts
    strange = next((operator.title for operator, _ in build(architecture).operators if operator.title), "")
    features = {
        "a learned soft cap of scores": architecture.softcap,
        "a gate on the attention's output": architecture.output_gate,
        "attention and feed-forward side by side": architecture.parallel_block,
        "several attention blocks a layer": architecture.attention_blocks > 1,
        strange: bool(strange),
        "attention windows": architecture.window is not None,
        "sink logits": architecture.sinks,
        f"{architecture.positions} positions": architecture.positions not in ("rope", "learned"),
        "layers without rotation": architecture.no_rope_every is not None,
        "an embedding of another width": architecture.embedding_dim not in (None, architecture.hidden),
        "a norm after the embedding": architecture.embedding_norm,
        "norms without weights": architecture.norm == "layer-plain",
        f"{architecture.norms_per_layer} norms a layer": architecture.norms_per_layer != 2,
        "norms behind the blocks": architecture.norm_position != "pre",
        "norms over all heads": architecture.qk_norm == "full",
        f"{'gated ' if architecture.gated else ''}{architecture.activation}": not _known_activation(architecture),
        "biases in some matrices only": architecture.out_bias != architecture.mlp_bias or architecture.head_bias,
        "identity experts or a dense part beside them": experts is not None
        and bool(experts.zero or experts.parallel_dense or experts.bias),
    }
    return next((name for name, present in features.items() if present), None)


def _known_activation(architecture: Architecture) -> bool:
    return architecture.activation == "silu" if architecture.gated else architecture.activation.startswith("gelu")


def chunks(scenario: Scenario) -> list[int]:
    """Count the layers of each chunk of the pipeline, in the order in which a token passes: those that are estimated.

    A rank's layers are dealt to its chunks; what does not divide is left out beside the embedding and the head.
    """
    dealt: list[list[int]] = []
    for stage in stages(scenario.model.architecture.layers, scenario.pp):
        each, left = divmod(stage.layers, scenario.interleave)
        more = [False] * (scenario.interleave - left) + [True] * left
        dealt.append([each + int(one) for one in (reversed(more) if stage.heads and not stage.embeds else more)])
    return [rank[turn] for turn in range(scenario.interleave) for rank in dealt]


def _megatron(scenario: Scenario) -> Objection | None:
    """Object to architectures and combinations that Megatron-LM does not know."""
    architecture = scenario.model.architecture
    missing = missing_option(architecture)
    if missing is not None:
        return Objection("model", f"Megatron-LM's GPT has no option for {missing}")
    if 0 in chunks(scenario)[1:-1]:
        return Objection("interleave", "a chunk would hold nothing", instead=1)
    if scenario.interleave > 1 and scenario.pp == 1:
        return Objection("interleave", "chunks belong to a pipeline (--pp 2 or more)", instead=1)
    if scenario.optimizer in EMERGING and scenario.zero >= 2:
        return Objection("zero", f"its {scenario.optimizer} goes with --zero 0 or 1", instead=1)
    if scenario.optimizer == "adamw-bf16" and scenario.zero != 1:
        return Objection("zero", "its optimizer with moments in 16 bits goes with --zero 1", instead=1)
    if scenario.offload == "optimizer" and (scenario.optimizer != "adamw" or scenario.zero >= 2):
        return Objection("offload", "it moves AdamW's states to the host, with --zero 0 or 1")
    if scenario.zero >= 2 and scenario.pp > 1:
        return Objection("zero", "its FSDP has no pipeline", instead=1)
    return None


MEGATRON = Expressible(
    id="megatron",
    tasks=("pretrain", "finetune"),
    backends=frozenset({"cuda", "rocm"}),
    choices={
        "precision": ("fp32", "bf16-mixed", "fp16-mixed", *NARROW),
        "optimizer": tuple(MEGATRON_OPTIMIZERS),
        "offload": ("none", "optimizer"),
    },
    splits=frozenset({"num_devices", "tp", "pp", "interleave", "ep", "cp"}),
    objection=_megatron,
)

MAXTEXT_OPTIMIZERS = {"adamw": "adamw", "sgd": "sgd", "muon": "muon"}
MAXTEXT_REMAT = {"none": "minimal", "full": "full"}


def known_model(scenario: Scenario) -> str | None:
    """Name MaxText's own configuration of a catalog's model (data/launch/maxtext.yaml)."""
    if scenario.model_path is not None:
        return None
    return built_in().raw("launch/maxtext")["models"].get(scenario.model.id)  # type: ignore[no-any-return]


def is_plain(architecture: Architecture) -> bool:
    """Whether a model is built like Llama or Mixtral."""
    experts = architecture.experts
    like_mixtral = experts is None or (
        not (experts.shared or experts.zero or experts.parallel_dense or experts.bias or experts.router_bias)
        and all(kind.feed_forward == "experts" for kind in architecture.layer_kinds)
    )
    reference = Architecture(
        layers=architecture.layers,
        hidden=architecture.hidden,
        heads=architecture.heads,
        kv_heads=architecture.kv_heads,
        head_dim=architecture.head_dim,
        vocab=architecture.vocab,
        ffn=architecture.ffn,
        tied=architecture.tied,
        experts=experts,
        implementation=architecture.implementation,
    )
    return like_mixtral and reference == architecture


def _maxtext(scenario: Scenario) -> Objection | None:
    """Object to architectures and combinations that MaxText does not know."""
    architecture = scenario.model.architecture
    if known_model(scenario) is None and not is_plain(architecture):
        return Objection("model", "MaxText has no configuration of it, and it is not built like Llama or Mixtral")
    if scenario.trains_adapters and architecture.experts is not None:
        return Objection("model", "names of experts differ between MaxText's decoders")
    if architecture.layers % (scenario.pp * scenario.interleave):
        return Objection("pp", f"{architecture.layers} layers do not divide into equal stages", instead=1)
    if scenario.pp > 1 and scenario.micro_steps % scenario.pp:
        return Objection("pp", f"{scenario.micro_steps} micro-batches a step are no multiple of the stages", instead=1)
    if scenario.num_devices % (scenario.tp * scenario.pp * scenario.cp * scenario.ep):
        return Objection("ep", "experts take devices of their own", instead=1)
    return None


MAXTEXT = Expressible(
    id="maxtext",
    tasks=UNGUIDED,
    backends=frozenset({"tpu", "cuda"}),
    choices={
        "precision": ("fp32", "bf16-mixed", "bf16", "fp8-mixed"),
        "optimizer": tuple(MAXTEXT_OPTIMIZERS),
        "checkpointing": tuple(MAXTEXT_REMAT),
        "quant": ("none", "nf4"),
        "lora_dropout": (0.0,),
        "lora_layers": (None,),
        "zero": (0, 1, 3),
        "offload": ("none", "optimizer", "all"),
    },
    splits=frozenset({"num_devices", "tp", "pp", "interleave", "ep", "cp"}),
    objection=_maxtext,
)

EXPRESSED = {each.id: each for each in (MEGATRON, MAXTEXT)}
