"""Score pairs of a query and a text as recipe.json says, a number a pair of scores.npy: python score.py recipe.json.

Needs sentence-transformers and datasets; bitsandbytes for quantized weights.
"""

import json
import sys
from pathlib import Path

import numpy
from datasets import load_dataset
from sentence_transformers import CrossEncoder


def model_of(recipe):
    """Load the model; of one that writes, the logits of the tokens for no and yes are the score."""
    options = dict(recipe["options"])
    if recipe["quantization"] is not None:
        from transformers import BitsAndBytesConfig

        options["quantization_config"] = BitsAndBytesConfig(**recipe["quantization"])
    model = CrossEncoder(recipe["name"], device=recipe["devices"][0], model_kwargs=options)
    model.max_seq_length = recipe["max_seq_length"]
    if recipe["tokens"]:
        score, ids = model[-1], model.tokenizer.convert_tokens_to_ids(recipe["tokens"])
        score.true_token_id, score.false_token_id = ids[-1], ids[0] if len(ids) > 1 else None
    return model


def main(path):
    """Read all pairs, and write their scores."""
    recipe = json.loads(Path(path).read_text(encoding="utf-8"))
    data, devices = recipe["data"], recipe["devices"]
    rows = load_dataset(data["dataset"], split=data["split"])
    pairs = list(zip(*(rows[name] for name in data["columns"]), strict=True))
    several = devices if len(devices) > 1 else None  # a process on each
    scores = model_of(recipe).predict(
        pairs, batch_size=recipe["batch_size"], device=several, show_progress_bar=not several
    )
    numpy.save(recipe["output"], scores)


if __name__ == "__main__":
    main(sys.argv[-1])
