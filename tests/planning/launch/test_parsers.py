"""The engines' own parsers read what is written, where they are installed: pip install 'llmfeas[launch]'.

Axolotl and SGLang are no part of that, since they bring what runs on GPUs alone: pip install --no-deps axolotl pillow;
SGLang's parser asks for torch and a dozen small packages beside. Without them test_documented.py checks the same names
and types against stored tables.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from launches import every_launch

from llmfeas.cli import main
from llmfeas.planning.answer import bare_answer
from llmfeas.planning.launch import LAUNCHERS
from llmfeas.planning.launch.verify import verified


def installed(module: str) -> Any:
    """Import an engine, or skip the test and say what is missing; where the engines must be there, fail."""
    os.environ.setdefault("DS_ACCELERATOR", "cpu")
    apart = {"axolotl": "--no-deps axolotl pillow", "sglang": "sglang", "vllm": "vllm"}
    if os.environ.get("LLMFEAS_ENGINES") and module.split(".")[0] not in apart:
        return importlib.import_module(module)
    what = apart.get(module.split(".")[0], "'llmfeas[launch]'")
    reason = f"{module.split('.')[0]} is not installed: pip install {what}"
    pytest.importorskip(module.split(".")[0], reason=reason, exc_type=ImportError)
    return importlib.import_module(module)


@pytest.mark.parametrize(
    "engine",
    [
        *("accelerate", "axolotl", "deepspeed", "mlx-lm", "sentence-transformers", "sglang", "torchrun-fsdp", "trl"),
        "vllm",
    ],
)
def test_an_engine_reads_what_is_written_for_it(engine: str) -> None:
    """Each different recipe once."""
    installed(MODULES[engine])
    seen = set()
    for asked, launch in every_launch(engine):
        key = json.dumps([[file.text for file in launch.files], launch.command])
        if key in seen or "context_parallel_size" in key:  # Axolotl then wants ring-flash-attn, which needs a GPU
            continue
        seen.add(key)
        assert verified(LAUNCHERS[engine], launch), asked


MODULES = {
    "accelerate": "accelerate",
    "axolotl": "axolotl.utils.schemas.config",
    "deepspeed": "deepspeed",
    "mlx-lm": "mlx_lm",
    "sentence-transformers": "sentence_transformers",
    "sglang": "sglang.srt.server_args",
    "torchrun-fsdp": "torch",
    "trl": "trl",
    "vllm": "vllm",
}


TOKENIZER = {"<unk>": 0, "<eos>": 1, **{letter: index for index, letter in enumerate("abcdefgh", start=2)}}


SIZES = {"tokens": 256, "seq_len": 32, "micro_batch": 2, "global_batch": 4}


def tiny_model(tmp_path: Path) -> Path:
    """A model of two layers with its tokenizer, and beside it texts in `data`."""
    transformers, tokenizers = installed("transformers"), installed("tokenizers")
    installed("datasets")
    installed("peft")
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(TOKENIZER, unk_token="<unk>"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    folder = tmp_path / "model"
    transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<eos>").save_pretrained(folder)
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = transformers.LlamaConfig(vocab_size=16, max_position_embeddings=64, **sizes)
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    (tmp_path / "data").mkdir()
    text = json.dumps({"text": "a b c d e f g h " * 8})
    for name in ("train", "valid"):
        (tmp_path / "data" / f"{name}.jsonl").write_text(f"{text}\n" * 16)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "written"),
    [
        ("accelerate", "output/model.safetensors"),
        ("deepspeed", "output/model.safetensors"),
        ("mlx-lm", "adapters/adapters.safetensors"),
        ("torchrun-fsdp", "output/model.safetensors"),
        ("trl", "output/model.safetensors"),
    ],
)
def test_a_recipe_trains_with_no_edit_but_its_data(
    engine: str, written: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two steps on a CPU by the script that `launch -o` writes."""
    installed(MODULES[engine])
    model, folder = tiny_model(tmp_path), tmp_path / "run"
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    options = [word for name, value in SIZES.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    ask = ["-m", str(model), "-d", "ryzen-9-7950x", "-t", "finetune", "--precision", "fp32", *options, "-q"]
    assert main(["launch", "--engine", engine, *ask, "-o", str(folder)]) == 0
    for path in folder.iterdir():
        path.write_text(path.read_text().replace("DATASET", str(tmp_path / "data")))
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path))  # DeepSpeed compiles its Adam; no lock of another run
    code, said = ended(["sh", str(folder / "run.sh")], tmp_path / "said.txt", limit=900)
    assert code == 0, said[-2000:]
    assert (folder / written).is_file()


def ended(command: list[str], log: Path, limit: float) -> tuple[int, str]:
    """Run a command with all that it starts, and end all of it with the limit; its exit code and what it said."""
    with log.open("w") as stream:
        process = subprocess.Popen(command, stdout=stream, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            code = process.wait()
    return code, log.read_text(errors="replace")


@pytest.mark.slow
@pytest.mark.parametrize("task", ["pretrain", "finetune", "lora"])
def test_the_program_trains_a_tiny_model(task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tiny_model(tmp_path)
    from launches import launched

    request = {"model": str(folder), "device": "ryzen-9-7950x", "task": task, "precision": "fp32", "dropout": 0.05}
    for file in launched("torchrun-fsdp", **request, **SIZES, checkpointing="full").files:
        (tmp_path / file.name).write_text(file.text.replace('"DATASET"', json.dumps(str(tmp_path / "data"))))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    spec = importlib.util.spec_from_file_location("train", tmp_path / "train.py")
    assert spec is not None
    assert spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    program.main("recipe.json")
    state = json.loads((tmp_path / "output" / "checkpoint-2" / "trainer_state.json").read_text())
    assert state["global_step"] == 2
    saved = "adapter_model.safetensors" if task == "lora" else "model.safetensors"
    assert (tmp_path / "output" / saved).is_file()


WORDS = {
    "<unk>": 0,
    "<eos>": 1,
    "[PAD]": 2,
    "[MASK]": 3,
    "[CLS]": 4,
    "[SEP]": 5,
    **{letter: 6 + at for at, letter in enumerate("abcdefgh")},
}


def tiny_reader(kind: str, tmp_path: Path) -> Path:
    """An encoder or encoder-decoder of two layers with its tokenizer, and beside it texts, labels, targets, pairs."""
    transformers, tokenizers = installed("transformers"), installed("tokenizers")
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(WORDS, unk_token="<unk>"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    special = {"pad_token": "[PAD]", "mask_token": "[MASK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    folder = tmp_path / "model"
    transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<eos>", **special).save_pretrained(folder)
    if kind == "bert":
        sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
        config = transformers.BertConfig(vocab_size=16, max_position_embeddings=64, **sizes)
        transformers.BertModel(config).save_pretrained(folder)
    else:
        config = transformers.T5Config(
            vocab_size=16, d_model=32, d_kv=16, d_ff=64, num_layers=2, num_heads=2, decoder_start_token_id=2
        )
        transformers.T5ForConditionalGeneration(config).save_pretrained(folder)
    (tmp_path / "data").mkdir()
    row = {"text": "a b c d e f g h " * 8, "label": 1, "target": "h g f"}
    rows = ({**row, "anchor": f"a {letter}", "positive": f"{letter} b"} for letter in "abcdefgh" * 2)
    (tmp_path / "data" / "train.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in rows))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "engine", "task", "written"),
    [
        ("bert", "torchrun-fsdp", "pretrain", "output/model.safetensors"),
        ("bert", "torchrun-fsdp", "finetune", "output/model.safetensors"),
        ("bert", "torchrun-fsdp", "lora", "output/adapter_model.safetensors"),
        ("t5", "torchrun-fsdp", "finetune", "output/model.safetensors"),
        ("t5", "torchrun-fsdp", "lora", "output/adapter_model.safetensors"),
        ("bert", "sentence-transformers", "inference", "vectors.npy"),
        ("bert", "sentence-transformers", "embed", "output/model.safetensors"),
    ],
)
def test_what_is_no_decoder_reads_and_trains(
    kind: str, engine: str, task: str, written: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the script that `launch -o` writes, with no edit but its data; adapters are those that are counted."""
    installed(MODULES[engine])
    model, folder = tiny_reader(kind, tmp_path), tmp_path / "run"
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    ask: dict[str, object] = {"model": str(model), "device": "ryzen-9-7950x", "task": task, "precision": "fp32"}
    ask |= {"prompt": 32} if task == "inference" else SIZES
    ask |= {"lora_targets": "attention"} if task == "lora" else {}
    options = [word for name, value in ask.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    assert main(["launch", "--engine", engine, *options, "-q", "-o", str(folder)]) == 0
    for path in folder.iterdir():
        path.write_text(path.read_text().replace("DATASET", str(tmp_path / "data")))
    code, said = ended(["sh", str(folder / "run.sh")], tmp_path / "said.txt", limit=900)
    assert code == 0, said[-2000:]
    assert (folder / written).is_file()
    if task == "lora":
        saved = importlib.import_module("safetensors").safe_open(str(folder / written), "np")
        sizes = (saved.get_slice(name).get_shape() for name in list(saved.keys()) if "lora" in name)
        assert sum(math.prod(size) for size in sizes) == bare_answer(ask).parameters.trainable
