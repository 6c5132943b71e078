"""What accelerate, DeepSpeed and torchrun start: one program for Hugging Face's Trainer, and its recipe as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from ...catalog.device import is_mixed
from ...catalog.store import data_directory
from ...scenario import Scenario
from ...workload.kernels import runs_compiled, runs_patched
from ...workload.parameters import bare_layers
from ..expressed.trainers import LOW_RANK, OPTIMIZERS, divided_by_fsdp
from ..repositories import model_name
from .launcher import File
from .names import ALPHA_PER_RANK, DATASET, learning_rate, steps, training_notes
from .text import as_json

MASKED = 0.15
"""Share of the tokens that are masked (Devlin 2018)."""
PROGRAM = "train.py"
RECIPE = "recipe.json"

ATTENTION = {"flash": "sdpa", "eager": "eager"}
SINK_KERNELS = {"cuda": "kernels-community/vllm-flash-attn3", "rocm": "kernels-community/aiter-flash-attn"}
"""Fused attention with sinks (transformers 5.24, models/gpt_oss: _compatible_flash_implementations)."""
ATTENTION_NAMES = (
    "q_proj", "k_proj", "v_proj", "o_proj", "out_proj", "qkv_proj", "query_key_value", "dense", "c_attn", "c_proj",
    "Wqkv", "q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj",
)  # fmt: skip
"""The attention's matrices under the names that public code gives them in models that write on."""
OTHER_NAMES = ("query", "key", "value", "q_lin", "k_lin", "v_lin", "out_lin", "q", "k", "v", "o", "Wo")
"""The same in encoders and encoder-decoders."""
ATTENTION_MATRICES = rf".*(?:attn|[aA]ttention)(?:\.self|\.output)?\.(?:{'|'.join((*ATTENTION_NAMES, *OTHER_NAMES))})"
"""Both, as PEFT matches names."""
LINEAR_NAMES = (
    *ATTENTION_NAMES, *OTHER_NAMES, "gate_proj", "up_proj", "down_proj", "gate_up_proj", "fc1", "fc2", "c_fc",
    "dense_h_to_4h", "dense_4h_to_h", "fc_in", "fc_out", "in_proj", "x_proj", "dt_proj",
)  # fmt: skip
"""These and the feed-forward's."""
ALSO_ELSEWHERE = {"dense": "attention.dense", "c_proj": "attn.c_proj"}
"""Names that a feed-forward has too, with that of the module around the attention's."""


@lru_cache(maxsize=1)
def program() -> File:
    """The training program."""
    return File(PROGRAM, (data_directory() / "launch" / PROGRAM).read_text(encoding="utf-8"))


def weights_dtype(scenario: Scenario) -> str:
    """Name the type in which weights are loaded: 16 bits for pure formats and under adapters, else fp32."""
    if scenario.base_dtype is not None:
        return {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}[scenario.base_dtype]
    sixteen = {"bf16": "bfloat16", "fp16": "float16"}.get(scenario.precision.removesuffix("-mixed"))
    pure = not is_mixed(scenario.precision)
    return sixteen if sixteen and (pure or scenario.trains_adapters) else "float32"


LORA_KINDS: Mapping[str, Mapping[str, object]] = {
    "lora": {},
    "rslora": {"use_rslora": True},
    "dora": {"use_dora": True},
}
"""Fields of peft's LoraConfig, and of those who pass them on."""


def auto_class(scenario: Scenario) -> str:
    """Transformers' class that loads the model for what it trains to do."""
    architecture = scenario.model.architecture
    if architecture.encoder:
        return "AutoModelForMaskedLM" if architecture.predicts else "AutoModelForSequenceClassification"
    if architecture.source is not None:
        return "AutoModelForSeq2SeqLM"
    beside_towers = "AutoModelForMultimodalLM" if scenario.transformers == "5" else "AutoModelForImageTextToText"
    return beside_towers if architecture.tower_parameters else "AutoModelForCausalLM"


TASK_TYPES: Mapping[str, str | None] = {
    "AutoModelForMaskedLM": None,
    "AutoModelForSequenceClassification": "SEQ_CLS",
    "AutoModelForSeq2SeqLM": "SEQ_2_SEQ_LM",
}
"""Peft's word for what such a model does, where it is not to write on."""


def _task_type(scenario: Scenario) -> str | None:
    return TASK_TYPES.get(auto_class(scenario), "CAUSAL_LM")


CONFIGS: Mapping[str, str] = {
    "ia3": "IA3Config",
    "prompt": "PromptTuningConfig",
    "p-tuning": "PromptEncoderConfig",
    "prefix": "PrefixTuningConfig",
}
"""Classes of peft's other configurations."""
KEYS_AND_VALUES = ("k_proj", "v_proj", "qkv_proj", "query_key_value", "c_attn")
INNER = ("down_proj", "fc2", "dense_4h_to_h", "mlp.c_proj")
"""What IA3 multiplies, in each family's words; peft's own list for some has queries in place of keys."""


def lora_targets(scenario: Scenario) -> str:
    """Name the matrices that get adapters, as PEFT takes it: of some layers by a pattern, for which it wants names."""
    if bare_layers(scenario):
        adapted = "|".join(map(str, range(bare_layers(scenario), scenario.model.architecture.own_layers)))
        everything = rf"[\w.]+\.(?:{'|'.join(LINEAR_NAMES)})"
        names = everything if scenario.lora_targets == "all-linear" else ATTENTION_MATRICES.removeprefix(".*")
        inside = "" if scenario.lora_targets == "all-linear" else r"[\w.]*"
        return rf".*\.(?:layers|layer|h|blocks|block)\.(?:{adapted})\.{inside}{names}"
    return "all-linear" if scenario.lora_targets == "all-linear" else ATTENTION_MATRICES


def lora(scenario: Scenario) -> dict[str, object] | None:
    """The arguments of PEFT's configuration, and its class unless it is LoraConfig; None where all weights train."""
    kind = scenario.adapter_kind
    if kind is None:
        return None
    if kind.virtual:
        tokens = {"task_type": _task_type(scenario), "num_virtual_tokens": scenario.virtual_tokens}
        return {"class": CONFIGS[scenario.lora_kind], **tokens}
    if kind.scales:
        inner = list(INNER) if scenario.lora_targets == "all-linear" else []
        return {
            "class": CONFIGS[scenario.lora_kind],
            "task_type": _task_type(scenario),
            "target_modules": [*KEYS_AND_VALUES, *inner],
            "feedforward_modules": inner,
        }
    return low_rank_pairs(scenario, _task_type(scenario))


def low_rank_pairs(scenario: Scenario, task: str | None) -> dict[str, object]:
    """The arguments of LoraConfig for what a model does in peft's words."""
    return {
        "task_type": task,
        "r": scenario.lora_rank,
        "lora_alpha": ALPHA_PER_RANK * scenario.lora_rank,
        "lora_dropout": scenario.lora_dropout,
        **LORA_KINDS[scenario.lora_kind],
        "target_modules": lora_targets(scenario),
    }


FOUR_BITS = ("nf4", "nf4-single")
"""With 8-bit scales, and with those in fp32 that bitsandbytes makes by itself."""


def quantization(scenario: Scenario) -> dict[str, object] | None:
    """The arguments of BitsAndBytesConfig; None where weights are not quantized, or come quantized.

    4-bit weights are packed into elements of the 16-bit type, so that they can be divided like others.
    """
    if scenario.quant == "int8":
        return {"load_in_8bit": True}
    if scenario.quant in FOUR_BITS:
        return {
            "load_in_4bit": True,
            "bnb_4bit_quant_type": "nf4",
            "bnb_4bit_use_double_quant": scenario.quant == "nf4",
            "bnb_4bit_compute_dtype": weights_dtype(scenario),
            "bnb_4bit_quant_storage": weights_dtype(scenario),
        }
    return None


def optimizer(scenario: Scenario) -> str:
    """Name the optimizer; bitsandbytes' 8-bit states cannot be divided by FSDP, torchao's can."""
    if scenario.optimizer == "adamw-8bit" and divided_by_fsdp(scenario):
        return "adamw_torch_8bit"
    return OPTIMIZERS.get(scenario.optimizer, "adamw_torch")


RECOMPUTES = {"5": "activation_checkpointing", "4": "gradient_checkpointing"}
"""Trainer's word for recomputing activations, by its release."""


def left_to_fsdp(scenario: Scenario) -> dict[str, object]:
    """The arguments by which Trainer leaves recomputation to FSDP."""
    word = RECOMPUTES[scenario.transformers]
    return {word: False, f"{word}_kwargs": None}


def training(scenario: Scenario) -> dict[str, object]:
    """The arguments of transformers' TrainingArguments that the recipe decides."""
    arguments: dict[str, object] = {
        "output_dir": "output",
        "max_steps": steps(scenario),
        "per_device_train_batch_size": scenario.micro_batch,
        "gradient_accumulation_steps": scenario.micro_steps,
        "learning_rate": learning_rate(scenario),
        "optim": optimizer(scenario),
        "bf16": scenario.precision == "bf16-mixed",
        "fp16": scenario.precision == "fp16-mixed",
        RECOMPUTES[scenario.transformers]: scenario.checkpointing == "full",
        "report_to": "none",
    }
    if scenario.precision == "tf32":
        arguments["tf32"] = True
    if runs_compiled(scenario):
        arguments["torch_compile"] = True
    if runs_patched(scenario):
        arguments["use_liger_kernel"] = True
    if scenario.optimizer in LOW_RANK:
        arguments["optim_target_modules"] = "all-linear"
    if scenario.optimizer == "adamw-schedule-free":
        arguments["lr_scheduler_type"] = "constant"
    if scenario.optimizer == "sgd-momentum":
        arguments["optim_args"] = "momentum=0.9"
    if scenario.checkpointing == "full":
        arguments[f"{RECOMPUTES[scenario.transformers]}_kwargs"] = {"use_reentrant": False}
    if scenario.device.backend == "cpu":
        arguments["use_cpu"] = True
    return arguments


PACKAGES = ("torch", "transformers{pin}", "accelerate", "datasets", "peft")
"""What the program on Trainer takes."""


def attention(scenario: Scenario) -> str:
    """Name the kernel of attention."""
    fused = scenario.attention == "flash" and scenario.model.architecture.sinks
    return SINK_KERNELS[scenario.device.backend] if fused else ATTENTION[scenario.attention]


def needs(scenario: Scenario) -> tuple[str, ...]:
    """What a recipe of Trainer takes beyond transformers."""
    in_bits = scenario.quant in (*FOUR_BITS, "int8") or (
        scenario.optimizer == "adamw-8bit" and not divided_by_fsdp(scenario)
    )
    return (
        *(("bitsandbytes",) if in_bits else ()),
        *(("torchao",) if scenario.optimizer == "adamw-8bit" and divided_by_fsdp(scenario) else ()),
        *(("liger-kernel",) if runs_patched(scenario) else ()),
        *(("kernels",) if attention(scenario) in SINK_KERNELS.values() else ()),
        *(("gptqmodel",) if scenario.quant in ("gptq-int4", "awq-int4") else ()),
    )


def fsdp(scenario: Scenario) -> dict[str, object]:
    """FSDP's settings under the names of TrainingArguments.fsdp_config."""
    return {
        "version": 2,
        "reshard_after_forward": scenario.zero >= 3,
        "auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
        "cpu_offload": scenario.offload == "all",
        "activation_checkpointing": scenario.checkpointing == "full",
        "state_dict_type": "FULL_STATE_DICT",
    }


def recipe(scenario: Scenario, arguments: Mapping[str, object], dtype: str | None = None) -> File:
    """Write the recipe that the program reads; `arguments` are TrainingArguments."""
    content = {
        "model": {
            "name": model_name(scenario),
            "class": auto_class(scenario),
            "from_scratch": scenario.task == "pretrain",
            "options": {
                "dtype": dtype or weights_dtype(scenario),
                "attn_implementation": attention(scenario),
            },
            "dropout": scenario.dropout,
        },
        "quantization": quantization(scenario),
        "lora": lora(scenario),
        "data": {
            "dataset": DATASET,
            "split": "train",
            "text_field": "text",
            "seq_len": scenario.seq_len,
            "streaming": scenario.task == "pretrain",
            **_learned(scenario),
        },
        "training": dict(arguments),
    }
    return File(RECIPE, as_json(content))


def _learned(scenario: Scenario) -> dict[str, object]:
    """What is learned from a text where it is not the next token."""
    kind = auto_class(scenario)
    if kind == "AutoModelForMaskedLM":
        return {"masked": MASKED}
    fields = {"AutoModelForSequenceClassification": "label_field", "AutoModelForSeq2SeqLM": "target_field"}
    return {fields[kind]: fields[kind].removesuffix("_field")} if kind in fields else {}


def notes(scenario: Scenario) -> tuple[str, ...]:
    """Say what the user has to fill in."""
    learned, base = _learned(scenario), scenario.quant
    quantized = (
        (f"name a version of the model whose weights are in {base}",) if base in ("gptq-int4", "awq-int4") else ()
    )
    fields = (f"beside 'text' the data needs a column '{name}'" for name in learned.values() if isinstance(name, str))
    return (*training_notes(scenario), *fields, *quantized)
