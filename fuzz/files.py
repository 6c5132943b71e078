"""Files of models, catalogs and expectations: good ones, damaged in a few places."""

from __future__ import annotations

import functools
import json
import random
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from . import hostile
from .holds import answered, faults
from .words import DEVICES, question

TESTS = Path(__file__).parents[1] / "tests"
sys.path.insert(0, str(TESTS / "importers"))
import gguf_files  # noqa: E402 - the writers of the tests
import safetensors_files  # noqa: E402

EXTREMES = (0, 1, 2, 7, 8, 9, 12, 31, 32, 255, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**53, 2**63 - 1, 2**63, 2**64 - 1)
GGUF, _ = gguf_files.header(*gguf_files.llama(layers=1, vocab=256))
CASES = json.loads((TESTS / "data" / "checkpoints.json").read_text("utf-8"))["cases"]
TENSORS_OF = [case["tensors"] for case in CASES.values()]
SAFETENSORS, _ = safetensors_files.header(
    {name: (shape, "BF16") for name, shape in CASES["mixtral"]["tensors"].items()}
)
ENDS = (["-t", "inference"], ["-t", "pretrain"], ["-t", "qlora"], ["-t", "inference", "--explain"])
FORMATS = ("json", "json", "json", "table", "csv", "markdown", "ndjson")


def damaged(raw: bytes, seed: int) -> bytes:
    """Change a few places of a good header: bytes, whole numbers, a cut, a repeated or missing piece."""
    chance = random.Random(seed)
    data = bytearray(raw)
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(data)) if data else 0
        match chance.randrange(6):
            case 0:
                data[place : place + 1] = bytes([chance.randrange(256)])
            case 1:
                data[place : place + 8] = struct.pack("<Q", chance.choice(EXTREMES))
            case 2:
                data[place : place + 4] = struct.pack("<I", chance.choice(EXTREMES) % 2**32)
            case 3:
                del data[place:]
            case 4:
                data[place:place] = data[place : place + chance.randint(1, 64)]
            case _:
                del data[place : place + chance.randint(1, 64)]
    return bytes(data)


def misshapen(seed: int) -> bytes:
    """The header of a small model in which a few tensors have other shapes or names, are lost or doubled."""
    chance = random.Random(seed)
    tensors = {name: (list(shape), "BF16") for name, shape in chance.choice(TENSORS_OF).items()}
    for _ in range(chance.randint(1, 3)):
        name = chance.choice(list(tensors))
        shape, kind = tensors[name]
        match chance.randrange(6):
            case 0:
                del tensors[name]
            case 1:
                tensors[name] = ([chance.choice([0, 1, 2, 3, 64, side, 2 * side]) for side in shape], kind)
            case 2:
                tensors[name] = (shape[: chance.randrange(len(shape) + 1)], kind)
            case 3:
                tensors[name] = ([*shape, chance.choice([1, 2])], kind)
            case 4:
                tensors[chance.choice(list(tensors)).replace("0", "5")] = (shape, kind)
            case _:
                tensors[f"{name}{chance.choice(['_scale', '.scales', '_blocks', '_packed', '.absmax'])}"] = (
                    shape,
                    "U8",
                )
        if not tensors:
            break
    return safetensors_files.header(tensors)[0]


def asked_of(path: Path, chance: Random) -> Iterator[str]:
    """What does not hold of an answer about a model file; most often a bare one, without ladder and remedies."""
    device, end = chance.choice(DEVICES), chance.choice(ENDS)
    match chance.randrange(10):
        case 0:
            yield from faults(answered(["models", "show", str(path), "-f", chance.choice(FORMATS)]))
        case 1 | 2 | 3:
            line = json.dumps({"model": str(path), "device": device, "task": end[1]}).encode()
            yield from faults(answered(["sweep", "-", "-f", "ndjson"], line))
        case 4 | 5 | 6:
            line = ["compare", "-m", str(path), "-d", device, *end[:2], "-f", chance.choice(FORMATS)]
            yield from faults(answered(line))
        case _:
            line = ["estimate", "-m", str(path), "-d", device, *end, "-f", chance.choice(FORMATS)]
            yield from faults(answered(line))


@functools.cache
def configs() -> list[Any]:
    """Published configurations, one of each kind."""
    found = []
    for path in sorted((TESTS / "data").rglob("*.json")):
        data = json.loads(path.read_text("utf-8"))
        many = data.values() if isinstance(data, dict) else data if isinstance(data, list) else []
        for one in (data, *many):
            if isinstance(one, dict) and "model_type" in one:
                found.append(one)
    return list({one["model_type"]: one for one in found}.values())


def config(chance: Random, folder: Path) -> Iterator[str]:
    """A configuration with a few fields changed."""
    path = folder / "config.json"
    path.write_text(hostile.dumped(hostile.mutated(chance.choice(configs()), chance, 3)), "utf-8", "surrogatepass")
    yield from asked_of(path if chance.random() < 0.5 else folder, chance)


def gguf(chance: Random, folder: Path) -> Iterator[str]:
    """A GGUF file, damaged in its bytes, or whole with hostile metadata."""
    if chance.random() < 0.7:
        raw = damaged(GGUF, chance.randrange(2**32))
    else:
        metadata, tensors = gguf_files.llama(layers=1, vocab=256)
        key = chance.choice(list(metadata))
        changed = chance.choice(
            (hostile.text(chance).encode("utf-8", "surrogatepass"), chance.choice(EXTREMES) % 2**32)
        )
        replaced = {**metadata, key: 0}
        raw = gguf_files.header(replaced if isinstance(changed, bytes) else {**metadata, key: changed}, tensors)[0]
        if isinstance(changed, bytes):
            text = gguf_files.text(key)
            old = text + gguf_files.entry(0)
            raw = raw.replace(old, text + struct.pack("<I", 8) + gguf_files.text(changed))
    path = folder / "model.gguf"
    path.write_bytes(raw)
    yield from asked_of(path, chance)


def safetensors(chance: Random, folder: Path) -> Iterator[str]:
    """A safetensors file, damaged or misshapen, or an index of shards with hostile names."""
    if chance.random() < 0.2:
        names = {name: hostile.text(chance) for name in list(CASES["mixtral"]["tensors"])[: chance.randint(1, 9)]}
        path = folder / "model.safetensors.index.json"
        index = hostile.mutated({"metadata": {"total_size": 5}, "weight_map": names}, chance)
        path.write_text(hostile.dumped(index), "utf-8", "surrogatepass")
    else:
        seed = chance.randrange(2**32)
        path = folder / "model.safetensors"
        path.write_bytes(damaged(SAFETENSORS, seed) if chance.random() < 0.5 else misshapen(seed))
    yield from asked_of(path, chance)


OVERLAY_CHECKS = (["catalog", "check"], *([["catalog", "check", "llmfeas.yaml"]] * 4))
OVERLAY_ENDS = (
    ["estimate", "-m", "gpt2", "-d", "rtx-4090", "--json"],
    ["estimate", "-m", "mine", "-d", "mine", "-t", "inference"],
    ["estimate", "-m", "gpt2", "-d", "rtx-409"],
    ["estimate", "-m", "gpt22", "-d", "mine", "--json"],
    ["compare", "-m", "gpt2", "-d", "rtx-4090", "-d", "mine"],
    ["plan", "-m", "gpt2", "-d", "mine"],
    ["devices", "list", "-f", "csv"],
    ["models", "list", "-f", "ndjson"],
    ["devices", "show", "mine"],
    ["devices", "show", "mine", "--yaml"],
    ["offers", "list"],
    ["backends", "list"],
    ["catalog", "path"],
)


@functools.cache
def entries() -> dict[str, list[Any]]:
    """Entries of the catalog as written."""
    import yaml

    found: dict[str, list[Any]] = {}
    data = TESTS.parent / "data"

    @functools.cache
    def read(name: str) -> Any:
        written = yaml.load((data / f"{name}.yaml").read_text("utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        return json.loads(json.dumps(written, default=str))

    for key, name in {
        "devices": "hardware", "models": "models", "offers": "offers", "backends": "backends", "engines": "engines"
    }.items():  # fmt: skip
        found[key] = read(name)[key]
    for name in ("efficiency", "runtime", "quantization", "implementations", "power", "changes"):
        found[name] = [read(name)]
    whole = read("hardware")
    found["generations"] = [whole["generations"]]
    found["families"] = [read("models")["families"]]
    return found


def overlay(chance: Random) -> Any:
    """A catalog of one's own with a few places changed."""
    mine = [
        {"id": "mine", "name": "Mine", "extends": "rtx-4090"},
        {"extends": "rtx-4090", chance.choice(("power_w", "bandwidth_gb_per_s", "memory_gib", "name")): 1000},
    ]
    document: dict[str, Any] = {"devices": mine, "models": [{"id": "mine", "name": "M", "extends": "llama-3-8b"}]}
    key = chance.choice(list(entries()))
    part = chance.choice(entries()[key])
    if key in ("devices", "models", "offers", "backends", "engines"):
        changed = hostile.mutated(part, chance)
        if isinstance(changed, dict) and key in ("devices", "models") and chance.random() < 0.7:
            changed = {**changed, "id": "mine"}
            document[key] = []
        document.setdefault(key, []).append(changed)
    else:
        holder, name = chance.choice(hostile._places(part))
        document[key] = hostile.mutated(_only(part, holder, name), chance)
    return hostile.mutated(document, chance) if chance.random() < 0.3 else document


def _only(whole: Any, holder: Any, name: Any) -> Any:
    """The part of a document that leads to one place in it."""
    if whole is holder:
        return {name: whole[name]} if isinstance(whole, dict) else whole
    for key, value in whole.items() if isinstance(whole, dict) else ():
        if isinstance(value, dict | list):
            found = _only(value, holder, name)
            if found is not None:
                return {key: found}
    return None


def overlays(chance: Random, folder: Path) -> Iterator[str]:
    """A catalog of a checkout, which loads by itself."""
    (folder / "llmfeas.yaml").write_text(hostile.dumped(overlay(chance)), "utf-8", "surrogatepass")
    for line in (chance.choice(OVERLAY_CHECKS), chance.choice(OVERLAY_ENDS)):
        yield from faults(answered(line))


EXPECTED = ("fits", "status", "peak_gib", "total", "usd", "mfu", "parameters", "decode_tokens_per_second", "step")
BOUNDS = (True, "feasible", {"max": 20}, {"max": "12h", "at": "worst"}, "124.4M +- 0.1 %", {"min": "15 %"}, {"min": 0})


def expectations(chance: Random, folder: Path) -> Iterator[str]:
    """A file of expectations with a few places changed, or two stored answers compared."""
    if chance.random() < 0.2:
        stored = sorted((TESTS / "data" / "estimates").glob("*.json"))
        old, new = (json.loads(chance.choice(stored).read_text("utf-8")) for _ in range(2))
        for name, document in (("a.json", hostile.mutated(old, chance)), ("b.json", new)):
            (folder / name).write_text(hostile.dumped(document), "utf-8", "surrogatepass")
        format = chance.choice(("table", "json", "markdown", "csv"))
        yield from faults(answered(["diff", str(folder / "a.json"), str(folder / "b.json"), "-f", format]))
        return
    blocks = [
        {
            "id": "one",
            **question(chance),
            "expect": {name: chance.choice(BOUNDS) for name in chance.sample(EXPECTED, chance.randint(1, 4))},
        }
    ]
    path = folder / "checks.yaml"
    path.write_text(hostile.dumped(hostile.mutated(blocks, chance, 3)), "utf-8", "surrogatepass")
    format = chance.choice(("table", "json", "junit", "github", "markdown", "csv"))
    yield from faults(answered(["check", str(path), "-f", format]))


def measurements(chance: Random, folder: Path) -> Iterator[str]:
    """Measurements of one's own, then an estimate by what they left."""
    number = chance.choice(("1", "50", "120", "2000", "10000", "1e300", "-5", "nan", hostile.argument(chance)))
    model, device = chance.choice((("gpt2", "rtx-4090"), ("llama-3-8b", "t4"), ("nothing", "t4"), ("gpt2", "x\x1b[1m")))
    row = f"model={model} device={device} task=inference decode={number}"
    yield from faults(answered(["backtest", "--add", row, *chance.choice(([], ["--calibrate"]))]))
    store = folder / "config" / "llmfeas" / "measured.yaml"
    if store.exists() and chance.random() < 0.5:
        data = bytearray(store.read_bytes())
        place = chance.randrange(len(data))
        data[place : place + 3] = hostile.text(chance).encode("utf-8", "surrogatepass")[:8]
        store.write_bytes(bytes(data))
    yield from faults(answered(["estimate", "-m", "gpt2", "-d", "rtx-4090", "-t", "inference", "--json"]))
