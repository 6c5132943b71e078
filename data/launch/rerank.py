"""Train a model that scores a query and a text together as recipe.json says: python rerank.py recipe.json.

Under any launcher. Needs sentence-transformers, accelerate and datasets; peft for LoRA, bitsandbytes for quantized
weights.
"""

import json
import sys
from pathlib import Path

from datasets import load_dataset
from sentence_transformers import CrossEncoder, CrossEncoderTrainer, CrossEncoderTrainingArguments
from sentence_transformers.cross_encoder import losses


def model_of(recipe):
    """Load the model, with its adapters; of one that writes, the logits of the tokens for no and yes are the score."""
    options = dict(recipe["model"]["options"])
    if recipe["quantization"] is not None:
        from transformers import BitsAndBytesConfig

        options["quantization_config"] = BitsAndBytesConfig(**recipe["quantization"])
    model = CrossEncoder(recipe["model"]["name"], num_labels=1, model_kwargs=options)
    model.max_seq_length = recipe["data"]["seq_len"]
    if recipe["tokens"]:
        score, ids = model[-1], model.tokenizer.convert_tokens_to_ids(recipe["tokens"])
        score.true_token_id, score.false_token_id = ids[-1], ids[0] if len(ids) > 1 else None
    if recipe["lora"] is not None:
        import peft

        transformer = model[0]
        transformer.model = peft.get_peft_model(transformer.model, peft.LoraConfig(**recipe["lora"]))
    return model


def main(path):
    """Train and save."""
    recipe = json.loads(Path(path).read_text(encoding="utf-8"))
    arguments = CrossEncoderTrainingArguments(**recipe["training"])
    data, model = recipe["data"], model_of(recipe)
    examples = load_dataset(data["dataset"], split=data["split"]).select_columns(data["columns"])
    loss = getattr(losses, recipe["loss"].pop("class"))(model, **recipe["loss"])
    trainer = CrossEncoderTrainer(model=model, args=arguments, train_dataset=examples, loss=loss)
    trainer.train()
    trainer.save_model()
    trainer.accelerator.end_training()  # closes the process group, as PyTorch asks


if __name__ == "__main__":
    main(sys.argv[-1])
