"""Time the steps of data/measurements/own_h200.yaml, or of another such file, on this machine's GPU.

`python benchmarks/steps.py FILE [ID...]` runs each row's scenario through the libraries that people use (transformers,
peft, trl, bitsandbytes, liger-kernel), each in a process of its own, and prints what it measured as JSON. Weights and
tokens are random: nothing is downloaded, and a step takes as long. Tied tables come untied unless a configuration ties
them.
"""

from __future__ import annotations

import itertools
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

WARM, MOST, SECONDS = 3, 10, 4.0
"""Steps that do not count, steps that do at most, and the seconds after which no further one begins."""
HERE = Path(__file__).parent
OPTIMIZERS = {"adamw": "adamw_torch_fused", "adamw-foreach": "adamw_torch", "adamw-8bit": "adamw_bnb_8bit"}
ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]
Scenario = dict[str, Any]


class Clock:
    """The ends of optimizer steps, through a callback of the trainer."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def callback(self) -> Any:
        import torch
        import transformers

        ends = self.ends

        class Ends(transformers.TrainerCallback):
            def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
                torch.cuda.synchronize()
                ends.append(time.perf_counter())
                counted = len(ends) - WARM
                if counted >= MOST or (counted >= 3 and ends[-1] - ends[WARM - 1] > SECONDS):
                    control.should_training_stop = True
                return control

        return Ends()

    def seconds(self) -> list[float]:
        counted = self.ends[WARM - 1 :]
        return [after - before for before, after in itertools.pairwise(counted)]


def configuration(scenario: Scenario) -> Any:
    import transformers

    name = scenario["model"]
    path = Path(name) if name.endswith(".json") else HERE / "configs" / f"{name}.json"
    fields = json.loads(path.read_text(encoding="utf-8"))
    config = transformers.AutoConfig.for_model(fields.pop("model_type"), **fields)
    config.use_cache = scenario["task"] == "inference"
    config.bos_token_id, config.eos_token_id, config.pad_token_id = 1, 2, 0
    return config


def built(scenario: Scenario) -> Any:
    """The model on the device with random weights; norms are ones, biases zero."""
    import torch
    import transformers
    from transformers.initialization import no_init_weights

    narrow = scenario["precision"] == "bf16" or adapts(scenario)
    dtype = torch.bfloat16 if narrow else torch.float32
    config = configuration(scenario)
    attention = "eager" if config.model_type == "gpt_oss" else "sdpa"
    with torch.device("cuda"), no_init_weights():
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=dtype, attn_implementation=attention)
    for name, weight in model.named_parameters():
        with torch.no_grad():
            if weight.dim() > 1 and not name.endswith("bias"):
                weight.normal_(0.0, 0.02)
            else:
                weight.fill_(float("norm" in name and not name.endswith("bias")))
    if config.tie_word_embeddings:
        model.tie_weights()
    if scenario.get("transformers") == "4" and hasattr(config, "num_experts"):
        model.set_experts_implementation("eager")
    return quantized(scenario, model) if scenario["task"] == "qlora" else model


def adapts(scenario: Scenario) -> bool:
    return scenario["task"] in ("lora", "qlora") or scenario.get("adapters") == "lora"


def quantized(scenario: Scenario, model: Any) -> Any:
    """The model with its matrices but the head in NF4 with scales of scales, as transformers loads it."""
    import bitsandbytes
    import peft
    import torch

    format_ = {"compress_statistics": True, "quant_type": "nf4"}
    for module in list(model.modules()):
        for name, linear in list(module.named_children()):
            if type(linear) is torch.nn.Linear and name != "lm_head":
                sizes = linear.in_features, linear.out_features, linear.bias is not None
                packed = bitsandbytes.nn.Linear4bit(*sizes, compute_dtype=torch.bfloat16, device="meta", **format_)
                weight = bitsandbytes.nn.Params4bit(linear.weight.data, requires_grad=False, **format_)
                packed.weight, packed.bias = weight.to("cuda"), linear.bias
                setattr(module, name, packed)
    model.is_loaded_in_4bit = True
    if scenario["engine"] == "pytorch-kbit":
        return peft.prepare_model_for_kbit_training(model, use_gradient_checkpointing=False)
    return model


def adapted(scenario: Scenario, model: Any) -> Any:
    """The model with adapters, of stacked experts too where all matrices get them."""
    from peft import LoraConfig, get_peft_model

    options: dict[str, Any] = {"r": scenario["lora_rank"], "lora_alpha": 32, "task_type": "CAUSAL_LM"}
    options["use_dora"] = scenario.get("lora_kind") == "dora"
    stacks = [name for name, weight in model.named_parameters() if weight.dim() == 3]
    if scenario["lora_targets"] == "attention" or stacks:
        options["target_modules"] = ATTENTION
        if scenario["lora_targets"] != "attention":
            options["target_parameters"] = sorted({".".join(name.split(".")[-3:]) for name in stacks})
    else:
        options["target_modules"] = "all-linear"
    model = get_peft_model(model, LoraConfig(**options))
    if scenario["checkpointing"] == "full":
        model.enable_input_require_grads()
    return model


def arguments(scenario: Scenario) -> dict[str, Any]:
    full = scenario["checkpointing"] == "full"
    return {
        "output_dir": "/tmp/steps",
        "per_device_train_batch_size": scenario["micro_batch"],
        "max_steps": 200,
        "bf16": scenario["precision"] == "bf16-mixed",
        "optim": OPTIMIZERS[scenario["optimizer"]],
        "gradient_checkpointing": full,
        "gradient_checkpointing_kwargs": {"use_reentrant": False} if full else None,
        "use_liger_kernel": scenario["engine"] == "pytorch-liger",
        "torch_compile": scenario["engine"] == "pytorch-compile",
        "save_strategy": "no",
        "report_to": [],
        "disable_tqdm": True,
        "logging_steps": 1000,
    }


def tokenizer(size: int) -> Any:
    """Its words are w3, w4 and so on."""
    import tokenizers
    import transformers

    words = {"<pad>": 0, "<s>": 1, "</s>": 2, **{f"w{index}": index for index in range(3, size)}}
    core = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="<pad>"))
    core.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=core, pad_token="<pad>", eos_token="</s>")


def trainer(scenario: Scenario, clock: Clock) -> Any:
    """transformers' own trainer, or TRL's where the engine or the task asks for it."""
    import torch
    import transformers

    model, length = built(scenario), scenario["seq_len"]
    vocab = model.config.vocab_size
    if scenario["task"] in ("lora", "qlora"):
        model = adapted(scenario, model)
    if scenario["engine"] != "trl":
        rows = torch.randint(3, vocab, (256, length))
        data: Any = [{"input_ids": row, "labels": row.clone(), "attention_mask": torch.ones_like(row)} for row in rows]
        options = transformers.TrainingArguments(**arguments(scenario))
        return transformers.Trainer(model=model, args=options, train_dataset=data, callbacks=[clock.callback()])
    import datasets
    import peft
    import trl

    common = {"processing_class": tokenizer(vocab), "callbacks": [clock.callback()]}
    if scenario["task"] != "dpo":
        data = datasets.Dataset.from_dict({"input_ids": torch.randint(3, vocab, (256, length)).tolist()})
        options = trl.SFTConfig(**arguments(scenario), max_length=length, dataset_kwargs={"skip_prepare_dataset": True})
        return trl.SFTTrainer(model=model, args=options, train_dataset=data, **common)
    half = length // 2
    sizes = {"prompt": half, "chosen": half - 1, "rejected": half - 1}
    texts = {
        name: [" ".join(f"w{token}" for token in row) for row in torch.randint(3, vocab, (96, size)).tolist()]
        for name, size in sizes.items()
    }
    options = trl.DPOConfig(**arguments(scenario), max_length=length)
    data = datasets.Dataset.from_dict(texts)
    if adapts(scenario):  # without them the model is its own reference
        pairs = peft.LoraConfig(
            r=scenario["lora_rank"], lora_alpha=32, task_type="CAUSAL_LM", target_modules="all-linear"
        )
        return trl.DPOTrainer(model=model, args=options, train_dataset=data, peft_config=pairs, **common)
    return trl.DPOTrainer(model=model, ref_model=built(scenario), args=options, train_dataset=data, **common)


def generated(scenario: Scenario) -> dict[str, float]:
    """Tokens a second of all sequences after the prompt, by the difference of a long and a short answer."""
    import torch

    model = built(scenario).eval()
    batch, new = scenario["concurrency"], scenario["output_tokens"]
    tokens = torch.randint(3, model.config.vocab_size, (batch, scenario["prompt"]), device="cuda")

    def seconds(count: int) -> float:
        torch.cuda.synchronize()
        start = time.perf_counter()
        model.generate(
            tokens,
            attention_mask=torch.ones_like(tokens),
            min_new_tokens=count,
            max_new_tokens=count,
            do_sample=False,
        )
        torch.cuda.synchronize()
        return time.perf_counter() - start

    seconds(8)
    torch.cuda.reset_peak_memory_stats()
    first = statistics.median(seconds(1) for _ in range(3))
    return {"decode_tokens_per_second": batch * (new - 1) / (min(seconds(new) for _ in range(2)) - first)}


def measured(scenario: Scenario) -> dict[str, Any]:
    import torch

    torch.manual_seed(0)
    if scenario["task"] == "inference":
        found: dict[str, Any] = generated(scenario)
    else:
        clock = Clock()
        made = trainer(scenario, clock)
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        made.train()
        found = {"step_seconds": statistics.median(clock.seconds()), "steps": clock.seconds()}
    return {**found, "peak_bytes": torch.cuda.max_memory_allocated(), "device": torch.cuda.get_device_name()}


def main() -> None:
    if sys.argv[1] == "--one":
        print(json.dumps(measured(json.loads(sys.argv[2]))))
        return
    from llmfeas.evidence.measurements import read_measurements, settings_of

    rows, _ = read_measurements([Path(sys.argv[1])])
    for row in rows:
        if len(sys.argv) > 2 and row.id not in sys.argv[2:]:
            continue
        command = [sys.executable, __file__, "--one", json.dumps(settings_of(row))]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        said = done.stdout.splitlines() or done.stderr.splitlines() or [""]
        print(row.id, said[-1], flush=True)


if __name__ == "__main__":
    main()
