"""Train a language model as recipe.json says: python train.py recipe.json, under any launcher of PyTorch.

Needs torch, transformers, accelerate and datasets; peft for LoRA, bitsandbytes for quantized weights.
"""

import json
import sys
from itertools import chain
from pathlib import Path

import transformers
from datasets import load_dataset
from transformers import (
    AutoConfig,
    AutoTokenizer,
    BitsAndBytesConfig,
    DataCollatorForLanguageModeling,
    Trainer,
    TrainingArguments,
    default_data_collator,
)


def training_data(data, tokenizer):
    """Sequences of equal length: texts joined and cut, or, where each has a label or a target, filled up."""
    field, length = data["text_field"], data["seq_len"]
    filled = {"truncation": True, "padding": "max_length", "max_length": length}

    def cut(batch):
        texts = tokenizer([text + (tokenizer.eos_token or "") for text in batch[field]])["input_ids"]
        tokens = list(chain.from_iterable(texts))
        whole = len(tokens) // length * length
        sequences = [tokens[start : start + length] for start in range(0, whole, length)]
        return {"input_ids": sequences, "labels": [list(sequence) for sequence in sequences]}

    def labelled(batch):
        return {**tokenizer(batch[field], **filled), "labels": batch[data["label_field"]]}

    def paired(batch):
        targets = tokenizer(text_target=batch[data["target_field"]], **filled)["input_ids"]
        labels = [[token if token != tokenizer.pad_token_id else -100 for token in target] for target in targets]
        return {**tokenizer(batch[field], **filled), "labels": labels}

    make = labelled if data.get("label_field") else paired if data.get("target_field") else cut
    dataset = load_dataset(data["dataset"], split=data["split"], streaming=data["streaming"])
    columns = dataset.column_names or list(next(iter(dataset)))
    return dataset.map(make, batched=True, remove_columns=columns)


def model_of(recipe):
    """Load the model, or build it with fresh weights, with its adapters."""
    model = recipe["model"]
    kind = getattr(transformers, model["class"])
    config = AutoConfig.from_pretrained(model["name"])
    if model["dropout"] is not None:
        rates = ("dropout", "pdrop", "dropout_prob", "dropout_rate")
        for name in vars(config):
            if name.endswith(rates) and isinstance(getattr(config, name), (int, float)):
                setattr(config, name, model["dropout"])
    config.use_cache = False
    if model["from_scratch"]:
        return kind.from_config(config, **model["options"])
    quantization = recipe["quantization"]
    options = dict(model["options"])
    if quantization is not None:
        options["quantization_config"] = BitsAndBytesConfig(**quantization)
    found = kind.from_pretrained(model["name"], config=config, **options)
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
    collator = default_data_collator
    if recipe["data"].get("masked"):
        collator = DataCollatorForLanguageModeling(tokenizer, mlm_probability=recipe["data"]["masked"])
    trainer = Trainer(
        model=model_of(recipe),
        args=arguments,
        train_dataset=training_data(recipe["data"], tokenizer),
        data_collator=collator,
    )
    trainer.train()
    trainer.save_model()
    trainer.accelerator.wait_for_everyone()
    trainer.accelerator.end_training()  # closes the process group, as PyTorch asks


if __name__ == "__main__":
    main(sys.argv[-1])
