"""Megatron-LM: the command line of pretrain_gpt.py under torchrun."""

from __future__ import annotations

import math
from itertools import groupby

from ...catalog.architecture import Architecture
from ...catalog.device import NARROW
from ...catalog.published import Router
from ...scenario import Scenario
from ..expressed.frameworks import MEGATRON, MEGATRON_OPTIMIZERS, chunks
from ..nodes import nodes_of
from ..repositories import repository
from . import torchrun_fsdp
from .launcher import Launch, Launcher
from .names import DATASET, LEARNING_RATES, sequences, training_notes
from .shell import Word, command, flags, nodes_note

CHECKPOINT = "CHECKPOINT"
STRATEGIES = {2: "optim_grads", 3: "optim_grads_params"}
Options = list[tuple[str, Word | bool | None]]


def shape(architecture: Architecture) -> Options:
    """The options of the architecture apart from attention and experts."""
    plain = not architecture.mlp_bias
    experts = architecture.experts
    return [
        ("--num-layers", architecture.layers),
        ("--hidden-size", architecture.hidden),
        ("--ffn-hidden-size", architecture.ffn or (experts.width if experts else architecture.hidden)),
        ("--swiglu", architecture.gated),
        ("--normalization", "RMSNorm" if architecture.norm == "rms" else "LayerNorm"),
        ("--disable-bias-linear", plain),
        ("--add-qkv-bias", plain and architecture.qkv_bias),
        ("--untie-embeddings-and-output-weights", not architecture.tied),
        ("--vocab-size", architecture.vocab),
        ("--make-vocab-size-divisible-by", 128),
    ]


def attention(scenario: Scenario) -> Options:
    """The options of attention and positions."""
    architecture = scenario.model.architecture
    mla, learned = architecture.mla, architecture.positions == "learned"
    options: Options = [
        ("--num-attention-heads", architecture.heads),
        ("--kv-channels", architecture.head_dim if mla is None else None),
        ("--group-query-attention", mla is None and architecture.kv_heads < architecture.heads),
        (
            "--num-query-groups",
            architecture.kv_heads if mla is None and architecture.kv_heads < architecture.heads else None,
        ),
        ("--qk-layernorm", architecture.qk_norm == "head" or mla is not None),
        ("--qk-l2-norm", architecture.qk_norm == "l2"),
        ("--position-embedding-type", "learned_absolute" if learned else "rope"),
        ("--rotary-base", _integer(scenario.model.rope_base) if not learned else None),
        ("--rotary-percent", architecture.rope_fraction if not learned and architecture.rope_fraction < 1 else None),
        ("--max-position-embeddings", architecture.learned_positions or max(scenario.model.context, scenario.seq_len)),
        ("--attention-backend", "flash" if scenario.attention == "flash" else "unfused"),
    ]
    if mla is not None:
        options += [
            ("--multi-latent-attention", True),
            ("--q-lora-rank", mla.q_lora_rank),
            ("--kv-lora-rank", mla.kv_lora_rank),
            ("--qk-head-dim", mla.nope_head_dim),
            ("--qk-pos-emb-head-dim", mla.rope_head_dim),
            ("--v-head-dim", mla.v_head_dim),
        ]
    return options


def _integer(base: float | None) -> int | None:
    return None if base is None else round(base)


def routing(router: Router | None) -> Options:
    """How experts are chosen and weighed, where the catalog or the model's file says it."""
    if router is None:
        return []
    sigmoid = router.scores == "sigmoid"
    return [
        ("--moe-router-score-function", "sigmoid" if sigmoid else None),
        ("--moe-router-pre-softmax", sigmoid),
        ("--moe-router-enable-expert-bias", router.balanced),
        ("--moe-router-num-groups", router.groups or None),
        ("--moe-router-group-topk", router.top_groups or None),
        ("--moe-router-topk-scaling-factor", router.scale if router.scale != 1 else None),
    ]


def experts(architecture: Architecture) -> Options:
    """The options of the experts; none for a dense model."""
    found = architecture.experts
    if found is None:
        return []
    pattern = [int(kind.feed_forward == "experts") for kind in architecture.layer_kinds]
    shared = found.shared * (found.shared_width or found.width)
    return [
        ("--num-experts", found.count),
        ("--moe-router-topk", found.top_k),
        ("--moe-ffn-hidden-size", found.width),
        ("--moe-shared-expert-intermediate-size", shared or None),
        ("--moe-shared-expert-gate", found.shared_gate),
        ("--moe-layer-freq", None if all(pattern) else f"[{','.join(map(str, pattern))}]"),
        ("--moe-token-dispatcher-type", "alltoall"),
        ("--moe-grouped-gemm", True),
    ]


def pipeline(scenario: Scenario) -> str:
    """Write an uneven pipeline: E the embedding, t a layer, L head and loss, a bar behind each chunk but the last.

    Source: Megatron-LM, core/transformer/pipeline_parallel_layer_layout.py.
    """
    written = [f"t*{count}" if count > 1 else "t" * count for count in chunks(scenario)]
    written[0] = f"E{written[0]}"
    runs = [(text, len(list(run))) for text, run in groupby(written[:-1])]
    return "".join(f"({text}|)*{times}" if times > 1 else f"{text}|" for text, times in runs) + f"{written[-1]}L"


def layout(scenario: Scenario) -> Options:
    """The options that divide the model."""
    fsdp = scenario.zero >= 2
    moments = "bf16" if scenario.optimizer == "adamw-bf16" else None
    even = scenario.model.architecture.layers % (scenario.pp * scenario.interleave) == 0
    return [
        ("--tensor-model-parallel-size", scenario.tp),
        ("--sequence-parallel", scenario.tp > 1),
        ("--pipeline-model-parallel-size", scenario.pp),
        ("--pipeline-model-parallel-layout", None if even else pipeline(scenario)),
        ("--num-virtual-stages-per-pipeline-rank", scenario.interleave if even and scenario.interleave > 1 else None),
        ("--context-parallel-size", scenario.cp),
        ("--expert-model-parallel-size", scenario.ep if scenario.ep > 1 else None),
        ("--use-distributed-optimizer", scenario.zero >= 1 or scenario.offload == "optimizer"),
        ("--use-megatron-fsdp", fsdp),
        ("--data-parallel-sharding-strategy", STRATEGIES.get(scenario.zero)),
        ("--ckpt-format", "fsdp_dtensor" if fsdp else None),
        ("--optimizer-cpu-offload", scenario.offload == "optimizer"),
        ("--use-precision-aware-optimizer", scenario.offload == "optimizer" or moments is not None),
        ("--exp-avg-dtype", moments),
        ("--exp-avg-sq-dtype", moments),
    ]


def recipe(scenario: Scenario) -> Options:
    """The options of the step: batch, length, format, optimizer, recomputation, dropout."""
    rates = scenario.model.architecture.dropout
    full = scenario.checkpointing == "full"
    hidden = rates.residual if scenario.dropout is None else scenario.dropout
    scores = rates.attention if scenario.dropout is None else scenario.dropout
    return [
        ("--seq-length", scenario.seq_len),
        ("--micro-batch-size", scenario.micro_batch),
        ("--global-batch-size", sequences(scenario)),
        ("--train-samples", max(1, math.ceil((scenario.tokens or 0) / scenario.seq_len))),
        ("--bf16", scenario.precision in ("bf16-mixed", *NARROW)),
        ("--fp16", scenario.precision == "fp16-mixed"),
        ("--fp8-format", {"fp8-mixed": "hybrid", "mxfp8-mixed": "e4m3"}.get(scenario.precision)),
        ("--fp8-recipe", "mxfp8" if scenario.precision == "mxfp8-mixed" else None),
        ("--fp4-format", "e2m1" if scenario.precision == "nvfp4-mixed" else None),
        ("--fp4-recipe", "nvfp4" if scenario.precision == "nvfp4-mixed" else None),
        ("--optimizer", MEGATRON_OPTIMIZERS[scenario.optimizer]),
        ("--sgd-momentum", {"sgd": 0.0, "sgd-momentum": 0.9}.get(scenario.optimizer)),
        ("--lr", str(LEARNING_RATES[scenario.method])),
        ("--lr-decay-style", "cosine"),
        ("--recompute-granularity", scenario.checkpointing if scenario.checkpointing != "none" else None),
        ("--recompute-method", "uniform" if full else None),
        ("--recompute-num-layers", 1 if full else None),
        ("--hidden-dropout", float(hidden)),
        ("--attention-dropout", float(scores)),
    ]


def data(scenario: Scenario) -> Options:
    """The options of data, tokenizer and files."""
    repo = repository(scenario)
    return [
        ("--data-path", DATASET),
        ("--tokenizer-type", "HuggingFaceTokenizer" if repo else "NullTokenizer"),
        ("--tokenizer-model", repo),
        ("--pretrained-checkpoint", CHECKPOINT if scenario.method == "finetune" else None),
        ("--save", "output"),
        ("--save-interval", 1000),
    ]


def write(scenario: Scenario) -> Launch:
    """Write the command, which is run in a copy of the Megatron-LM repository."""
    nodes = nodes_of(scenario)
    architecture = scenario.model.architecture
    ordered = (scenario.tp > 1 or scenario.cp > 1) and scenario.zero < 2
    program: list[Word] = ["env", "CUDA_DEVICE_MAX_CONNECTIONS=1"] if ordered else []
    mixture = [*experts(architecture), *routing(scenario.model.router)]
    options = [*shape(architecture), *attention(scenario), *mixture, *recipe(scenario)]
    line = command(
        [*program, "torchrun"],
        *torchrun_fsdp.processes(nodes),
        ["pretrain_gpt.py"],
        *flags([*options, *layout(scenario), *data(scenario)]),
    )
    notes = ["run it in a copy of the Megatron-LM repository; data and checkpoints are in its own formats"]
    if architecture.positions == "rope" and scenario.model.rope_base is None:
        notes.append("add --rotary-base with the rope_theta of the model's config.json where that is not 10000")
    if architecture.experts is not None and scenario.model.router is None:
        notes.append(
            "Megatron weighs experts by a softmax where no --moe-router option says what the model's config.json does"
        )
    if scenario.method == "finetune":
        notes.append(f"convert the weights and put their folder in place of {CHECKPOINT}")
    return Launch((), line, (*notes, *training_notes(scenario), *nodes_note(nodes)))


LAUNCHER = Launcher(
    expressed=MEGATRON,
    name="Megatron-LM",
    release="Megatron-LM of August 2026 (commit d98e8a6), from NVIDIA/Megatron-LM with Transformer Engine",
    install=(),
    write=write,
)
