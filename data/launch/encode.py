"""Turn texts into vectors as recipe.json says, a row a text of vectors.npy: python encode.py recipe.json.

Needs sentence-transformers and datasets; bitsandbytes for quantized weights.
"""

import json
import sys
from pathlib import Path

import numpy
from datasets import load_dataset
from sentence_transformers import SentenceTransformer


def model_of(recipe):
    """Load the model."""
    options = dict(recipe["options"])
    if recipe["quantization"] is not None:
        from transformers import BitsAndBytesConfig

        options["quantization_config"] = BitsAndBytesConfig(**recipe["quantization"])
    model = SentenceTransformer(recipe["name"], device=recipe["devices"][0], model_kwargs=options)
    model.max_seq_length = recipe["max_seq_length"]
    return model


def main(path):
    """Read all texts, and write their vectors."""
    recipe = json.loads(Path(path).read_text(encoding="utf-8"))
    data, devices = recipe["data"], recipe["devices"]
    texts = list(load_dataset(data["dataset"], split=data["split"])[data["text_field"]])
    several = devices if len(devices) > 1 else None  # a process on each
    vectors = model_of(recipe).encode(
        texts, batch_size=recipe["batch_size"], device=several, show_progress_bar=not several
    )
    numpy.save(recipe["output"], vectors)


if __name__ == "__main__":
    main(sys.argv[-1])
