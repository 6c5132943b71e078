"""MaxText: a YAML on top of its base.yml."""

from __future__ import annotations

from ...catalog.architecture import Architecture
from ...scenario import Scenario
from ...workload.stages import stages
from ..expressed.frameworks import MAXTEXT, MAXTEXT_OPTIMIZERS, MAXTEXT_REMAT, known_model
from ..nodes import nodes_of
from ..repositories import repository
from .launcher import File, Launch, Launcher
from .names import ALPHA_PER_RANK, DATASET, LEARNING_RATES, steps, training_notes
from .shell import command
from .text import as_yaml

CONFIG = "maxtext.yml"
CHECKPOINT = "CHECKPOINT"
TRAINERS = {"pretrain": "pre_train.train", "finetune": "post_train.sft.train_sft"}
"""Modules of maxtext.trainers."""


def shape(architecture: Architecture) -> dict[str, object]:
    """The architecture in MaxText's words; decoders like Llama's and Mixtral's alone."""
    experts = architecture.experts
    settings: dict[str, object] = {
        "model_name": "default",
        "decoder_block": "mixtral" if experts else "llama2",
        "base_num_decoder_layers": architecture.layers,
        "base_emb_dim": architecture.hidden,
        "base_num_query_heads": architecture.heads,
        "base_num_kv_heads": architecture.kv_heads,
        "head_dim": architecture.head_dim,
        "base_mlp_dim": architecture.ffn or (experts.width if experts else architecture.hidden),
        "mlp_activations": ["silu", "linear"],
        "vocab_size": architecture.vocab,
        "logits_via_embedding": architecture.tied,
    }
    if experts is not None:
        settings |= {
            "num_experts": experts.count,
            "num_experts_per_tok": experts.top_k,
            "base_moe_mlp_dim": experts.width,
        }
    return settings


def layout(scenario: Scenario) -> dict[str, object]:
    """The mesh: ZeRO 3 divides weights (fsdp), 0 and 1 copy them (data); slices are joined by the network."""
    nodes = nodes_of(scenario)
    groups = scenario.num_devices // (scenario.tp * scenario.pp * scenario.cp * scenario.ep)
    inside = "fsdp" if scenario.zero == 3 else "data"
    mesh = {"data": 1, "fsdp": 1, "tensor": scenario.tp, "pipeline": scenario.pp}
    mesh |= {"context": scenario.cp, "expert": scenario.ep}
    mesh[inside] = groups
    settings: dict[str, object] = {f"ici_{axis}_parallelism": size for axis, size in mesh.items()}
    settings["dcn_data_parallelism"] = 1
    if nodes.several and scenario.device.backend != "tpu" and groups % nodes.count == 0:
        settings[f"ici_{inside}_parallelism"] = groups // nodes.count
        settings[f"dcn_{inside}_parallelism"] = nodes.count
    if scenario.zero == 1:
        settings["shard_optimizer_over_data"] = True
    if scenario.pp > 1:
        settings["num_pipeline_microbatches"] = scenario.micro_steps
        chunks = stages(scenario.model.architecture.layers, scenario.pp * scenario.interleave)
        settings["num_layers_per_pipeline_stage"] = chunks[0].layers
    return settings


def recipe(scenario: Scenario) -> dict[str, object]:
    """The step: batch, length, formats, optimizer, recomputation, dropout."""
    fp32 = scenario.precision == "fp32"
    pure = scenario.precision == "bf16"
    rate = scenario.model.architecture.dropout.residual if scenario.dropout is None else scenario.dropout
    piped = scenario.micro_steps if scenario.pp > 1 else 1
    return {
        "per_device_batch_size": scenario.micro_batch * scenario.dp * piped / scenario.num_devices,
        "gradient_accumulation_steps": scenario.micro_steps // piped,
        "max_target_length": scenario.seq_len,
        "steps": steps(scenario),
        "dtype": "float32" if fp32 else "bfloat16",
        "weight_dtype": "bfloat16" if pure else "float32",
        "grad_dtype": "bfloat16" if pure else "float32",
        "quantization": "fp8" if scenario.precision == "fp8-mixed" else "",
        "opt_type": MAXTEXT_OPTIMIZERS[scenario.optimizer],
        "learning_rate": LEARNING_RATES[scenario.method],
        "remat_policy": MAXTEXT_REMAT[scenario.checkpointing],
        "attention": "flash" if scenario.attention == "flash" else "dot_product",
        "enable_dropout": rate > 0,
        "dropout_rate": float(rate),
        "optimizer_memory_host_offload": scenario.states_on_host,
        "parameter_memory_host_offload": scenario.offload == "all",
    }


def adapters(scenario: Scenario) -> dict[str, object]:
    """The section lora; nothing where all weights train."""
    if not scenario.trains_adapters:
        return {}
    matrices = "self_attention/(query|key|value|out)"
    if scenario.lora_targets == "all-linear":
        matrices = f"({matrices}|mlp/(wi_0|wi_1|wo))"
    section: dict[str, object] = {
        "enable_lora": True,
        "lora_rank": scenario.lora_rank,
        "lora_alpha": float(ALPHA_PER_RANK * scenario.lora_rank),
        "lora_module_path": f"decoder/layers/.*{matrices}",
    }
    if scenario.quant == "nf4":
        section |= {"lora_weight_qtype": "nf4", "lora_tile_size": 64}
    return {"lora": section}


def config(scenario: Scenario) -> dict[str, object]:
    """MaxText's configuration."""
    own, repo = known_model(scenario), repository(scenario)
    pretrain = scenario.task == "pretrain"
    return {
        "base_config": "base.yml" if pretrain else "post_train/sft.yml",
        "run_name": f"{scenario.model.id}-{scenario.task}",
        "base_output_directory": "output",
        **({"model_name": own} if own else shape(scenario.model.architecture)),
        **({"tokenizer_type": "huggingface", "tokenizer_path": repo} if repo else {}),
        **({} if pretrain else {"load_parameters_path": CHECKPOINT}),
        "dataset_type": "hf",
        "hf_path": DATASET,
        "hardware": "tpu" if scenario.device.backend == "tpu" else "gpu",
        **recipe(scenario),
        **layout(scenario),
        **adapters(scenario),
    }


def write(scenario: Scenario) -> Launch:
    """Write MaxText's configuration."""
    trainer = TRAINERS.get(scenario.task, TRAINERS["finetune"])
    line = command(["python3", "-m", f"maxtext.trainers.{trainer}", CONFIG])
    notes = [*training_notes(scenario)]
    if scenario.checkpointing == "none":
        notes.append("MaxText always recomputes something: remat_policy minimal keeps every matrix product")
    if scenario.task != "pretrain":
        notes.append(f"convert the weights (maxtext.checkpoint_conversion.to_maxtext) and put them at {CHECKPOINT}")
    if nodes_of(scenario).several:
        notes.append("run the command on every host of the slice or cluster at the same time")
    return Launch((File(CONFIG, as_yaml(config(scenario))),), line, tuple(notes))


LAUNCHER = Launcher(
    expressed=MAXTEXT,
    name="MaxText",
    release="MaxText of August 2026 (commit e591f30)",
    install=("maxtext",),
    write=write,
)
