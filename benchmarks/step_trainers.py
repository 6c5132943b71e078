"""Trainers of public libraries for `steps.py`, by what trains: transformers, TRL, sentence-transformers."""

from __future__ import annotations

import itertools
import tempfile
import time
from typing import Any

from step_models import (
    READS_AND_WRITES,
    Scenario,
    adapted,
    adapters,
    adapts,
    built,
    configuration,
    device,
    on_a_gpu,
    tokenizer,
    words,
)

WARM, MOST, SECONDS = 3, 10, 4.0
"""Steps that do not count, steps that do at most, and the seconds after which no further one begins."""
OPTIMIZERS = {"adamw": "adamw_torch_fused", "adamw-foreach": "adamw_torch", "adamw-8bit": "adamw_bnb_8bit"}
SECONDS_OF_AUDIO_IN_FRAMES = 3000


class Clock:
    """The ends of optimizer steps, through a callback of the trainer, and the kernels of one step more."""

    def __init__(self, warm: int) -> None:
        self.ends: list[float] = []
        self.warm = warm
        self.profiler: Any = None
        self.kernels: dict[str, Any] = {}

    def callback(self) -> Any:
        import transformers

        clock = self

        class Ends(transformers.TrainerCallback):
            def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
                control.should_training_stop = clock.stop()
                return control

        return Ends()

    def stop(self) -> bool:
        """Note that a step ended; whether it was the last."""
        import torch

        cuda = torch.cuda.is_available()
        if cuda:
            torch.cuda.synchronize()
        if self.profiler is not None:
            self.profiler.__exit__(None, None, None)
            self.kernels = kernels_of(self.profiler)
            return True
        self.ends.append(time.perf_counter())
        counted = len(self.ends) - self.warm
        if counted < MOST and (counted < 3 or self.ends[-1] - self.ends[self.warm - 1] <= SECONDS):
            return False
        if not cuda:
            return True
        self.profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA])
        self.profiler.__enter__()
        return False

    def seconds(self) -> list[float]:
        counted = self.ends[self.warm - 1 :]
        return [after - before for before, after in itertools.pairwise(counted)]


def kernels_of(profiler: Any) -> dict[str, Any]:
    """How many kernels ran for how long in all, and which took longest."""
    found = sorted(profiler.key_averages(), key=lambda each: -each.self_device_time_total)
    ran = [each for each in found if each.self_device_time_total > 0]
    return {
        "kernels": sum(each.count for each in ran),
        "kernel_seconds": sum(each.self_device_time_total for each in ran) / 1e6,
        "longest": [[each.key[:60], each.count, round(each.self_device_time_total / 1e3, 2)] for each in ran[:6]],
    }


def arguments(scenario: Scenario) -> dict[str, Any]:
    full = scenario["checkpointing"] == "full"
    return {
        "output_dir": "/tmp/steps",
        "per_device_train_batch_size": scenario["micro_batch"],
        "gradient_accumulation_steps": scenario["global_batch"] // scenario["micro_batch"],
        "max_steps": 200,
        "bf16": scenario["precision"] == "bf16-mixed",
        "use_cpu": not on_a_gpu(),
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


def trainer(scenario: Scenario, clock: Clock) -> Any:
    """The trainer of the task or the engine."""
    common = {"callbacks": [clock.callback()]}
    tasks = {"embed": of_embeddings, "dpo": of_pairs, "reward": of_rewards, "grpo": of_groups}
    if scenario["task"] in tasks:
        return tasks[scenario["task"]](scenario, common)
    return (of_texts if scenario["engine"] == "trl" else plain)(scenario, common)


def trained(scenario: Scenario) -> Any:
    model = built(scenario)
    return adapted(scenario, model) if scenario["task"] in ("lora", "qlora") else model


def plain(scenario: Scenario, common: dict[str, Any]) -> Any:
    """transformers' own trainer."""
    import transformers

    model = trained(scenario)
    options = transformers.TrainingArguments(**arguments(scenario))
    return transformers.Trainer(model=model, args=options, train_dataset=examples(scenario, model.config), **common)


def examples(scenario: Scenario, config: Any) -> Any:
    import torch

    length = scenario["seq_len"]
    rows = torch.randint(3, config.vocab_size, (256, length))
    if config.model_type == "whisper":
        sound = torch.randn(config.num_mel_bins, SECONDS_OF_AUDIO_IN_FRAMES)
        return [{"input_features": sound, "labels": row} for row in rows]
    if config.model_type in READS_AND_WRITES:
        return [{"input_ids": row, "labels": row.clone(), "attention_mask": torch.ones_like(row)} for row in rows]
    if config.model_type in ("bert", "modernbert"):
        return [{"input_ids": row, "labels": 1, "attention_mask": torch.ones_like(row)} for row in rows]
    return [{"input_ids": row, "labels": row.clone(), "attention_mask": torch.ones_like(row)} for row in rows]


def of_texts(scenario: Scenario, common: dict[str, Any]) -> Any:
    import datasets
    import torch
    import trl

    model, length = trained(scenario), scenario["seq_len"]
    vocab = model.config.vocab_size
    data = datasets.Dataset.from_dict({"input_ids": torch.randint(3, vocab, (256, length)).tolist()})
    options = trl.SFTConfig(**arguments(scenario), max_length=length, dataset_kwargs={"skip_prepare_dataset": True})
    return trl.SFTTrainer(model=model, args=options, train_dataset=data, processing_class=tokenizer(vocab), **common)


def with_adapters(scenario: Scenario, model: Any) -> dict[str, Any]:
    return {"peft_config": adapters(scenario, model)} if adapts(scenario) else {}


def of_pairs(scenario: Scenario, common: dict[str, Any]) -> Any:
    """With adapters the model without them is its own reference."""
    import datasets
    import trl

    model, length = built(scenario), scenario["seq_len"]
    vocab, half = model.config.vocab_size, length // 2
    sizes = {"prompt": half, "chosen": half - 1, "rejected": half - 1}
    data = datasets.Dataset.from_dict({name: words(96, size, vocab) for name, size in sizes.items()})
    options = trl.DPOConfig(**arguments(scenario), max_length=length)
    more = with_adapters(scenario, model) or {"ref_model": built(scenario)}
    more["processing_class"] = tokenizer(vocab)
    return trl.DPOTrainer(model=model, args=options, train_dataset=data, **more, **common)


def of_rewards(scenario: Scenario, common: dict[str, Any]) -> Any:
    import datasets
    import trl

    model, length = built(scenario), scenario["seq_len"]
    vocab = model.config.vocab_size
    data = datasets.Dataset.from_dict({name: words(96, length - 1, vocab) for name in ("chosen", "rejected")})
    options = trl.RewardConfig(**arguments(scenario), max_length=length)
    more = with_adapters(scenario, model)
    more["processing_class"] = tokenizer(vocab)
    return trl.RewardTrainer(model=model, args=options, train_dataset=data, **more, **common)


def of_groups(scenario: Scenario, common: dict[str, Any]) -> Any:
    """Answers written by transformers' `generate`, judged by chance."""
    import random

    import datasets
    import trl

    model, answer = built(scenario), scenario["response_length"]
    vocab = model.config.vocab_size
    data = datasets.Dataset.from_dict({"prompt": words(96, scenario["seq_len"] - answer, vocab)})
    options = trl.GRPOConfig(
        **arguments(scenario), num_generations=scenario["group_size"], max_completion_length=answer, use_vllm=False
    )
    judged = {"reward_funcs": lambda completions, **_: [random.random() for _ in completions]}
    more = {**with_adapters(scenario, model), **judged, "processing_class": tokenizer(vocab)}
    return trl.GRPOTrainer(model=model, args=options, train_dataset=data, **more, **common)


def reader(scenario: Scenario, length: int) -> tuple[Any, int]:
    """A model of sentence-transformers that makes a vector of a text, and how many words it knows."""
    import sentence_transformers as sentences
    from sentence_transformers.sentence_transformer import modules

    with tempfile.TemporaryDirectory() as folder:
        model, vocab = built(scenario), configuration(scenario).vocab_size
        model.save_pretrained(folder)
        tokenizer(vocab).save_pretrained(folder)
        del model
        encoder = modules.Transformer(folder, max_seq_length=length)
    pooled = modules.Pooling(encoder.get_embedding_dimension())
    return sentences.SentenceTransformer(modules=[encoder, pooled], device=device()), vocab


def of_embeddings(scenario: Scenario, common: dict[str, Any]) -> Any:
    """sentence-transformers on pairs of texts, each against all others of the batch."""
    import datasets
    import sentence_transformers as sentences
    from sentence_transformers.sentence_transformer import losses, training_args

    model, vocab = reader(scenario, scenario["seq_len"])
    data = datasets.Dataset.from_dict({name: words(512, scenario["seq_len"], vocab) for name in ("anchor", "positive")})
    options = training_args.SentenceTransformerTrainingArguments(**arguments(scenario))
    loss = losses.MultipleNegativesRankingLoss(model)
    return sentences.SentenceTransformerTrainer(model=model, args=options, train_dataset=data, loss=loss, **common)
