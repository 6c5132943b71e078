"""Models with random weights for `steps.py`: on the device, quantized, with adapters, and a tokenizer for them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj", "kv_a_proj_with_mqa", "kv_b_proj"]
READS_AND_WRITES = ("t5", "whisper", "bart")
"""Types that are asked by the class of sequences to sequences."""
Scenario = dict[str, Any]


def on_a_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


def device() -> str:
    """The GPU, else the processor."""
    return "cuda" if on_a_gpu() else "cpu"


def configuration(scenario: Scenario) -> Any:
    import transformers

    name = scenario["model"]
    path = HERE.parent / name if name.endswith(".json") else HERE / "configs" / f"{name}.json"
    fields = json.loads(path.read_text(encoding="utf-8"))
    config = transformers.AutoConfig.for_model(fields.pop("model_type"), **fields)
    config.use_cache = scenario["task"] == "inference"
    config.bos_token_id, config.eos_token_id, config.pad_token_id = 1, 2, 0
    return config


def adapts(scenario: Scenario) -> bool:
    return scenario["task"] in ("lora", "qlora") or scenario.get("adapters") in ("lora", "qlora")


def in_four_bits(scenario: Scenario) -> bool:
    return "qlora" in (scenario["task"], scenario.get("adapters")) or scenario.get("quant") == "nf4"


def model_class(scenario: Scenario, config: Any) -> Any:
    """The automatic class for what is trained: a number or a class for a text, or its next tokens."""
    import transformers

    if config.model_type == "whisper":
        return transformers.AutoModelForSpeechSeq2Seq
    if config.model_type in READS_AND_WRITES:
        return transformers.AutoModelForSeq2SeqLM
    if scenario["task"] == "embed" or scenario["engine"] == "sentence-transformers":
        return transformers.AutoModel
    if scenario["task"] == "reward" or config.model_type in ("bert", "modernbert"):
        config.num_labels = 1 if scenario["task"] == "reward" else 2
        return transformers.AutoModelForSequenceClassification
    return transformers.AutoModelForCausalLM


def built(scenario: Scenario) -> Any:
    """The model on the device with random weights, matrices but the head in NF4 where asked for."""
    import torch
    from accelerate import init_empty_weights
    from transformers.initialization import no_init_weights

    narrow = scenario["precision"] == "bf16" or adapts(scenario)
    config = configuration(scenario)
    attention = "eager" if config.model_type in ("gpt_oss", "mamba") else "sdpa"
    options = {"dtype": torch.bfloat16 if narrow else torch.float32, "attn_implementation": attention}
    with torch.device(device()), no_init_weights(), init_empty_weights(include_buffers=False):
        model = model_class(scenario, config).from_config(config, **options)
    if config.tie_word_embeddings:
        model.tie_weights()
    if in_four_bits(scenario):
        quantize(model)
    materialize(model)
    if scenario.get("transformers") == "4" and hasattr(config, "num_experts"):
        model.set_experts_implementation("eager")
    if in_four_bits(scenario) and scenario["engine"] == "pytorch-kbit":
        import peft

        return peft.prepare_model_for_kbit_training(model, use_gradient_checkpointing=False)
    return model


def parameters_by_module(model: Any) -> Iterator[tuple[Any, str, Any]]:
    for module in model.modules():
        for name, weight in list(module._parameters.items()):
            if weight is not None:
                yield module, name, weight


def materialize(model: Any) -> None:
    """Give each weight that is nowhere yet its room: matrices random, scales of norms ones, biases zero."""
    import torch

    made: dict[int, Any] = {}
    for module, name, weight in parameters_by_module(model):
        if not weight.is_meta:
            continue
        if id(weight) not in made:
            fresh = torch.empty(weight.shape, dtype=weight.dtype, device=device())
            if weight.dim() > 1 and name != "bias":
                fresh.normal_(0.0, 0.02)
            else:
                fresh.fill_(float(name in ("weight", "D", "dt_bias", "A_log")))
            made[id(weight)] = torch.nn.Parameter(fresh, requires_grad=weight.requires_grad)
        module._parameters[name] = made[id(weight)]


def quantize(model: Any) -> None:
    """Matrices but the head in NF4 with scales of scales, as transformers loads them; one after the other."""
    import bitsandbytes
    import torch

    format_ = {"compress_statistics": True, "quant_type": "nf4"}
    for module in list(model.modules()):
        for name, linear in list(module.named_children()):
            if type(linear) is torch.nn.Linear and name != "lm_head":
                sizes = linear.in_features, linear.out_features, linear.bias is not None
                packed = bitsandbytes.nn.Linear4bit(*sizes, compute_dtype=torch.bfloat16, device="meta", **format_)
                values = torch.empty(linear.weight.shape, dtype=torch.bfloat16, device=device()).normal_(0.0, 0.02)
                packed.weight = bitsandbytes.nn.Params4bit(values, requires_grad=False, **format_).to(device())
                packed.bias = linear.bias
                setattr(module, name, packed)
    model.is_loaded_in_4bit = True


def adapters(scenario: Scenario, model: Any) -> Any:
    """How adapters are asked for in peft, of stacked experts too where all matrices get them."""
    from peft import LoraConfig

    options: dict[str, Any] = {"r": scenario["lora_rank"], "lora_alpha": 32, "task_type": "CAUSAL_LM"}
    options["use_dora"] = scenario.get("lora_kind") == "dora"
    stacks = [name for name, weight in model.named_parameters() if weight.dim() == 3 and "conv" not in name]
    if scenario["lora_targets"] == "attention" or stacks:
        options["target_modules"] = ATTENTION
        if scenario["lora_targets"] != "attention":
            options["target_parameters"] = sorted({".".join(name.split(".")[-3:]) for name in stacks})
    else:
        options["target_modules"] = "all-linear"
    return LoraConfig(**options)


def adapted(scenario: Scenario, model: Any) -> Any:
    from peft import get_peft_model

    model = get_peft_model(model, adapters(scenario, model))
    if scenario["checkpointing"] == "full":
        model.enable_input_require_grads()
    return model


def tokenizer(size: int) -> Any:
    """Its words are w3, w4 and so on."""
    import tokenizers
    import transformers

    words = {"<pad>": 0, "<s>": 1, "</s>": 2, **{f"w{index}": index for index in range(3, size)}}
    core = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="<pad>"))
    core.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=core, pad_token="<pad>", eos_token="</s>")


def words(rows: int, size: int, vocab: int) -> list[str]:
    """Texts of so many tokens."""
    import torch

    return [" ".join(f"w{token}" for token in row) for row in torch.randint(3, vocab, (rows, size)).tolist()]
