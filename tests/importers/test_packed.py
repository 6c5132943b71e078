"""Quantized checkpoints: logical weights behind packed integers, in the tensor names of each tool."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import safetensors_files

from llmfeas.importers.model_file import model_from_file
from llmfeas.workload.parameters import parameters

CASES = json.loads((Path(__file__).parents[1] / "data" / "checkpoints.json").read_text())["cases"]
Tensors = dict[str, tuple[list[int], str]]


def awq(name: str, outputs: int, inputs: int) -> Tensors:
    base = name.removesuffix(".weight")
    return {
        f"{base}.qweight": ([inputs, outputs // 8], "I32"),
        f"{base}.qzeros": ([inputs // 32, outputs // 8], "I32"),
        f"{base}.scales": ([inputs // 32, outputs], "F16"),
    }


def gptq(bits: int) -> Callable[[str, int, int], Tensors]:
    def packed(name: str, outputs: int, inputs: int) -> Tensors:
        base = name.removesuffix(".weight")
        return {
            f"{base}.qweight": ([inputs * bits // 32, outputs], "I32"),
            f"{base}.qzeros": ([inputs // 32, outputs * bits // 32], "I32"),
            f"{base}.scales": ([inputs // 32, outputs], "F16"),
            f"{base}.g_idx": ([inputs], "I32"),
        }

    return packed


def nf4(name: str, outputs: int, inputs: int) -> Tensors:
    return {
        name: ([outputs * inputs // 2, 1], "U8"),
        f"{name}.absmax": ([outputs * inputs // 64], "U8"),
        f"{name}.quant_map": ([16], "F32"),
        f"{name}.nested_absmax": ([max(1, outputs * inputs // 64 // 256)], "F32"),
        f"{name}.nested_quant_map": ([256], "F32"),
        f"{name}.quant_state.bitsandbytes__nf4": ([82], "U8"),
    }


def int8(name: str, outputs: int, inputs: int) -> Tensors:
    return {name: ([outputs, inputs], "I8"), name.replace("weight", "SCB"): ([outputs], "F32")}


def fp8(name: str, outputs: int, inputs: int) -> Tensors:
    return {name: ([outputs, inputs], "F8_E4M3"), f"{name}_scale_inv": ([1, 1], "F32")}


def mlx(name: str, outputs: int, inputs: int) -> Tensors:
    base = name.removesuffix(".weight")
    if inputs % 64:
        return {name: ([outputs, inputs], "BF16")}
    return {
        name: ([outputs, inputs // 8], "U32"),
        f"{base}.scales": ([outputs, inputs // 64], "F16"),
        f"{base}.biases": ([outputs, inputs // 64], "F16"),
    }


def compressed(name: str, outputs: int, inputs: int) -> Tensors:
    return {
        f"{name}_packed": ([outputs, inputs // 8], "I32"),
        f"{name}_scale": ([outputs, inputs // 32], "BF16"),
        f"{name}_shape": ([2], "I64"),
    }


PACKERS: dict[str, tuple[Callable[[str, int, int], Tensors], str, dict[str, object]]] = {
    "awq": (awq, "awq-int4", {"quant_method": "awq", "bits": 4}),
    "gptq": (gptq(4), "gptq-int4", {"quant_method": "gptq", "bits": 4}),
    "gptq-8": (gptq(8), "gptq-int8", {"quant_method": "gptq", "bits": 8}),
    "nf4": (nf4, "nf4", {"quant_method": "bitsandbytes", "load_in_4bit": True}),
    "int8": (int8, "int8", {"quant_method": "bitsandbytes", "load_in_8bit": True}),
    "fp8": (fp8, "fp8", {"quant_method": "fp8"}),
    "mlx": (mlx, "mlx-4bit", {"group_size": 64, "bits": 4}),
    "compressed": (compressed, "gptq-int4", {"quant_method": "compressed-tensors"}),
}


def quantized(tensors: dict[str, list[int]], pack: Callable[[str, int, int], Tensors]) -> Tensors:
    """Pack the projections of every layer; embeddings, head and norms stay as they are."""
    packed: Tensors = {}
    for name, shape in tensors.items():
        projection = ".layers." in name and len(shape) == 2
        packed |= pack(name, *shape) if projection else {name: (shape, "BF16")}
    return packed


@pytest.mark.parametrize("configured", [True, False])
@pytest.mark.parametrize("tool", sorted(PACKERS))
def test_packed_weights_are_counted_as_what_they_stand_for(tmp_path: Path, tool: str, configured: bool) -> None:
    pack, label, config = PACKERS[tool]
    case = CASES["llama"]
    tensors = quantized(case["tensors"], pack)
    path = safetensors_files.write(tmp_path / "model.safetensors", tensors)
    if configured:
        text = {"model_type": "llama", **case["config"], "quantization_config": config}
        (tmp_path / "config.json").write_text(json.dumps(text))
    model = model_from_file(path)
    assert model.parameters == case["parameters"] == parameters(model.model).total
    assert model.stored is not None
    assert (model.stored.label, model.stored.quant) == (label, label)
    assert model.model.published_quant == label
    header, data = safetensors_files.header(tensors)
    assert model.stored.total == data == sum(count for _, count in model.stored.by_type)
    assert model.stored.file_bytes == data + len(header)


def test_mxfp4_experts(tmp_path: Path) -> None:
    tensors: Tensors = {}
    for name, shape in CASES["gpt_oss"]["tensors"].items():
        if name.endswith(("experts.gate_up_proj", "experts.down_proj")):
            experts, inputs, outputs = shape
            tensors[f"{name}_blocks"] = ([experts, outputs, inputs // 32, 16], "U8")
            tensors[f"{name}_scales"] = ([experts, outputs, inputs // 32], "U8")
        else:
            tensors[name] = (shape, "BF16")
    model = model_from_file(safetensors_files.write(tmp_path / "model.safetensors", tensors))
    assert model.parameters == CASES["gpt_oss"]["parameters"]
    assert model.stored is not None
    assert (model.stored.label, model.stored.quant) == ("mxfp4", "mxfp4")
    assert model.stored.routed[0] > 0


def test_a_scale_without_a_weight_is_not_swallowed(tmp_path: Path) -> None:
    tensors: Tensors = {name: (shape, "BF16") for name, shape in CASES["llama"]["tensors"].items()}
    tensors["model.layers.0.self_attn.k_scale"] = ([1], "F32")
    model = model_from_file(safetensors_files.write(tmp_path / "model.safetensors", tensors))
    assert model.parameters == CASES["llama"]["parameters"] + 1
    assert model.buffers == 1
