"""Count parameters of Hugging Face's causal classes on meta tensors (needs transformers) beside ours.

    PYTHONPATH=src python benchmarks/count_classes.py
    PYTHONPATH=src python benchmarks/count_classes.py tests/data/hf_classes.json

The first prints a table of every type that transformers has a causal class of, each with its default configuration,
and how many are right. The second counts the configurations of that file anew and prints the file: a new row is added
with any number of parameters, and then counted.

`towers`: equal but for encoders of images and sounds, which a causal class leaves out. `pair`: the class is one half of
an encoder-decoder, which is counted whole here. `alone`: encoders that cannot be counted are left out, and said so.
LongcatFlash differs: its class allocates two matrices for each identity expert, which no checkpoint holds.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from llmfeas.errors import DataError
from llmfeas.importers.hf.config import model_from_config
from llmfeas.importers.hf.pairs import PAIRS
from llmfeas.workload.parameters import parameters


def counted(config: Any) -> tuple[str, int]:
    """The class of a configuration and its unique parameters, on meta tensors."""
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    return type(model).__name__, sum(tensor.numel() for tensor in model.parameters())


def compared(kind: str, folder: Path) -> tuple[str, str]:
    """A word for how our count of a type's default configuration compares with its class's, and the figures."""
    try:
        config = AutoConfig.for_model(kind)
        name, theirs = counted(config)
    except Exception as error:  # many classes cannot be made of their own defaults
        return "class fails", f"{type(error).__name__}: {str(error)[:90]!r}"
    fields = {**json.loads(config.to_json_string()), "architectures": [name]}
    (folder / "config.json").write_text(json.dumps({"model_type": config.model_type, **fields}))
    try:
        model = model_from_config(folder)
    except DataError as error:
        return "refused", str(error).removeprefix(f"{folder / 'config.json'}: ")
    ours = parameters(model).total
    if ours == theirs:
        return "equal", str(theirs)
    if ours - theirs == model.architecture.tower_parameters:
        return "towers", f"{theirs} + {ours - theirs}"
    word = "pair" if config.model_type in PAIRS else "alone" if "without its encoders" in model.notes else "differs"
    return word, f"{ours}, the class {theirs} ({ours - theirs:+})"


def table() -> None:
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for kind in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
            word, rest = compared(kind, Path(folder))
            found[word] += 1
            print(f"{kind:32} {word:12} {rest}")
    print(", ".join(f"{word} {count}" for word, count in found.most_common()))


def again(path: Path) -> None:
    rows = []
    for row in json.loads(path.read_text())["rows"]:
        fields, number = json.loads(json.dumps(row["config"])), row["parameters"]
        try:
            number = counted(AutoConfig.for_model(fields.pop("model_type"), **fields))[1]
        except Exception as error:  # language models inside others: counted by their own class
            print(row["config"]["model_type"], "as it was:", str(error)[:80], file=sys.stderr)
        rows.append(json.dumps({"config": row["config"], "parameters": number}))
    source = f"AutoModelForCausalLM.from_config on meta tensors, transformers {transformers.__version__}"
    print(f'{{"source": {json.dumps(source)}, "rows": [\n' + ",\n".join(rows) + "\n]}")


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    again(Path(sys.argv[1])) if sys.argv[1:] else table()
