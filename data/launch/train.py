"""Train a language model as recipe.json says: python train.py recipe.json, under any launcher of PyTorch.

Needs torch, transformers, accelerate and datasets; peft for LoRA, bitsandbytes for quantized weights.
"""

import json
import sys
from itertools import chain
from pathlib import Path

from datasets import load_dataset
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    BitsAndBytesConfig,
    Trainer,
    TrainingArguments,
    default_data_collator,
)


def training_data(data, tokenizer):
    """Tokenize the texts, join them, and cut them into sequences of equal length."""
    field, length = data["text_field"], data["seq_len"]

    def cut(batch):
        texts = tokenizer([text + (tokenizer.eos_token or "") for text in batch[field]])["input_ids"]
        tokens = list(chain.from_iterable(texts))
        whole = len(tokens) // length * length
        sequences = [tokens[start : start + length] for start in range(0, whole, length)]
        return {"input_ids": sequences, "labels": [list(sequence) for sequence in sequences]}

    dataset = load_dataset(data["dataset"], split=data["split"], streaming=data["streaming"])
    columns = dataset.column_names or list(next(iter(dataset)))
    return dataset.map(cut, batched=True, remove_columns=columns)


def model_of(recipe):
    """Load the model, or build it with fresh weights, with its adapters."""
    model = recipe["model"]
    config = AutoConfig.from_pretrained(model["name"])
    if model["dropout"] is not None:
        for name in vars(config):
            if name.endswith(("dropout", "pdrop")) and isinstance(getattr(config, name), (int, float)):
                setattr(config, name, model["dropout"])
    config.use_cache = False
    if model["from_scratch"]:
        return AutoModelForCausalLM.from_config(config, **model["options"])
    quantization = recipe["quantization"]
    options = dict(model["options"])
    if quantization is not None:
        options["quantization_config"] = BitsAndBytesConfig(**quantization)
    found = AutoModelForCausalLM.from_pretrained(model["name"], config=config, **options)
    return found if recipe["lora"] is None else adapted(found, recipe["lora"])


def adapted(model, lora):
    """Freeze the model and put adapters on it."""
    import peft

    for parameter in model.parameters():
        parameter.requires_grad = False
    fields = dict(lora)
    return peft.get_peft_model(model, getattr(peft, fields.pop("class", "LoraConfig"))(**fields))


def main(path):
    """Train and save."""
    recipe = json.loads(Path(path).read_text(encoding="utf-8"))
    arguments = TrainingArguments(**recipe["training"])  # first: DeepSpeed divides the model as it is loaded
    tokenizer = AutoTokenizer.from_pretrained(recipe["model"]["name"])
    trainer = Trainer(
        model=model_of(recipe),
        args=arguments,
        train_dataset=training_data(recipe["data"], tokenizer),
        data_collator=default_data_collator,
    )
    trainer.train()
    trainer.save_model()
    trainer.accelerator.wait_for_everyone()
    trainer.accelerator.end_training()  # closes the process group, as PyTorch asks


if __name__ == "__main__":
    main(sys.argv[-1])
