"""Quantized safetensors: what is stored, and the logical matrices behind packed integers, scales and zero points.

Sources: AutoAWQ and AutoGPTQ (`qweight`, `qzeros`, `scales`, `g_idx`), bitsandbytes (`absmax`, `quant_state`, `SCB`),
OpenAI gpt-oss (`_blocks`, `_scales`), DeepSeek-V3 (`weight_scale_inv`), compressed-tensors (`weight_packed`), NVIDIA
modelopt (`weight_scale_2`), MLX (`scales` and `biases` beside a packed `weight`): their checkpoints' tensor names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...record import dataclass
from ..tensors import StoredTensor

AUXILIARY = (
    ".scales", ".qzeros", ".g_idx", ".biases", ".SCB", ".weight_format", ".weight_scale", ".weight_scale_inv",
    ".weight_scale_2", ".weight_zero_point", ".weight_shape", ".weight_g_idx", ".weight_global_scale", ".input_scale",
    ".input_global_scale", ".output_scale", ".k_scale", ".v_scale", ".q_scale", "_weight_scale", "_weight_scale_2",
    "_input_scale", "_scales", "_scale", "_scale_inv", ".scale", ".pre_quant_scale",
    ".weight:scale", ".weight:zero_point", "._weight_scale", "._weight_zero_point", "._weight_per_tensor_scale",
    ".suh", ".svh", ".mcg", ".mul1",
    ".weight.absmax", ".weight.nested_absmax", ".weight.quant_map", ".weight.nested_quant_map",
    ".weight.quant_state.bitsandbytes__nf4", ".weight.quant_state.bitsandbytes__fp4",
)  # fmt: skip
"""Endings of tensors that belong to a packed weight and are no parameters."""
PACKED = (
    ".qweight", ".weight_packed", "_packed", "_blocks", ".weight", ".weight:qdata", "._weight_qdata", ".trellis",
)  # fmt: skip
NARROW = frozenset({"u8", "i8", "u32", "i32"})
FP8 = frozenset({"f8_e4m3", "f8_e5m2", "f8_e4m3fnuz", "f8_e5m2fnuz"})


@dataclass(frozen=True, slots=True)
class Unpacked:
    """Tensors in logical shapes; the bytes of scales and zero points are counted with their weight."""

    tensors: tuple[StoredTensor, ...]
    label: str
    """What is stored: `none`, `awq-int4`, `gptq-int4`, `nf4`, `fp8`, `mxfp4`, ..."""


def unpacked(tensors: Sequence[StoredTensor], config: Mapping[str, object]) -> Unpacked:
    """Find the logical weights behind the stored tensors, and name the format.

    `config` is the checkpoint's `quantization_config` (empty where there is none); it decides where tensors alone
    leave a choice. Shapes that are flattened on disk come out with one side of 1.
    """
    by_name = {tensor.name: tensor for tensor in tensors}
    owners: dict[str, str] = {}
    for name in by_name:
        owner = _owner(name, by_name)
        if owner is not None:
            owners[name] = owner
    extra: dict[str, dict[str, StoredTensor]] = {}
    for name, owner in owners.items():
        extra.setdefault(owner, {})[name] = by_name[name]
    elements: dict[str, int] = {}
    logical = []
    for tensor in tensors:
        if tensor.name in owners:
            continue
        weight, kind = _logical(tensor, extra.get(tensor.name, {}), config)
        logical.append(weight)
        if kind:
            elements[kind] = elements.get(kind, 0) + weight.elements
    label = max(elements, key=lambda kind: elements[kind]) if elements else "none"
    return Unpacked(tuple(logical), label)


def _owner(name: str, names: Mapping[str, StoredTensor]) -> str | None:
    """The packed weight to which an auxiliary tensor belongs, None for a tensor that stands for itself."""
    for ending in AUXILIARY:
        if name.endswith(ending):
            base = name.removesuffix(ending)
            for packed in PACKED:
                if base + packed in names and base + packed != name:
                    return base + packed
            if base in names:
                return base
    return None


def _logical(
    tensor: StoredTensor, extra: Mapping[str, StoredTensor], config: Mapping[str, object]
) -> tuple[StoredTensor, str]:
    """One weight in its logical shape with the name of its format, empty where it is not quantized."""
    total = tensor.bytes + sum(part.bytes for part in extra.values())
    endings = {name.removeprefix(tensor.name).rpartition(".")[2]: part for name, part in extra.items()}
    name, shape, kind = tensor.name, tensor.shape, ""
    if name.endswith(".qweight") and len(shape) == 2:
        shape, kind = _gptq_or_awq(shape, endings, config)
        name = name.removesuffix(".qweight") + ".weight"
    elif name.endswith("_blocks") and len(shape) >= 2:
        shape, kind = (*shape[:-2], shape[-2] * shape[-1] * 2), "mxfp4"
        name = name.removesuffix("_blocks")
    elif name.endswith("_packed") and len(shape) >= 2:
        shape, kind = _compressed(tensor, endings, config)
        name = name.removesuffix("_packed")
    elif name.endswith((".weight:qdata", "._weight_qdata")):
        shape, kind = _torchao(tensor, endings)
        name = name.removesuffix(":qdata").replace("._weight_qdata", ".weight")
    elif name.endswith(".trellis") and len(shape) == 3:
        # exl3: tiles of 16 x 16, each of 16 k 16-bit words for k bits a weight; rows are inputs.
        rows, columns, words = shape
        shape, kind = (columns * 16, rows * 16), f"exl3-{words // 16}bpw"
        name = name.removesuffix(".trellis") + ".weight"
    elif tensor.type in FP8:
        kind = "fp8"
    elif tensor.type in NARROW and extra:
        shape, kind = _narrow(tensor, endings, config)
    return StoredTensor(name, shape, tensor.type, total), kind


def _gptq_or_awq(
    shape: tuple[int, ...], extra: Mapping[str, StoredTensor], config: Mapping[str, object]
) -> tuple[tuple[int, ...], str]:
    """AWQ packs along the outputs, GPTQ along the inputs; the scales, one a group and output, tell which."""
    rows, columns = shape
    scales, zeros = extra.get("scales"), extra.get("qzeros")
    outputs = scales.shape[-1] if scales is not None and scales.shape else columns
    bits = _integer(config.get("bits")) or _integer(config.get("w_bit"))
    if not bits and zeros is not None and zeros.shape and outputs:
        bits = 32 * zeros.shape[-1] // outputs
    bits = bits if bits in (2, 3, 4, 8) else 4
    if outputs == columns:
        return (columns, rows * 32 // bits), f"gptq-int{bits}"
    return (columns * 32 // bits, rows), f"awq-int{bits}"


def _compressed(
    tensor: StoredTensor, extra: Mapping[str, StoredTensor], config: Mapping[str, object]
) -> tuple[tuple[int, ...], str]:
    *rows, columns = tensor.shape
    if tensor.type == "u8":
        return (*rows, columns * 2), _four_bits(columns * 2, extra)
    bits = _compressed_bits(config) or 4
    asymmetric = any(ending.endswith("zero_point") for ending in extra)
    label = "gptq-int8" if bits == 8 else "awq-int4" if asymmetric and bits == 4 else f"gptq-int{bits}"
    return (*rows, columns * 32 // bits), label


def _four_bits(columns: int, extra: Mapping[str, StoredTensor]) -> str:
    """Name a 4-bit float by its scales: one exponent for 32 (mxfp4), or an 8-bit float for 16 (nvfp4)."""
    scales = [part for part in extra.values() if len(part.shape) >= 2]
    exponents = any(part.type in ("u8", "f8_e8m0") or part.shape[-1] * 32 == columns for part in scales)
    return "mxfp4" if exponents else "nvfp4"


def _compressed_bits(config: Mapping[str, object]) -> int | None:
    groups = config.get("config_groups")
    for group in groups.values() if isinstance(groups, dict) else ():
        weights = group.get("weights") if isinstance(group, dict) else None
        bits = _integer(weights.get("num_bits")) if isinstance(weights, dict) else None
        if bits in (2, 4, 8):
            return bits
    return None


def _torchao(tensor: StoredTensor, extra: Mapping[str, StoredTensor]) -> tuple[tuple[int, ...], str]:
    """What torchao stores: data, and scales a row or a group; 4-bit integers lie two in a byte, or eight in 32 bits."""
    if tensor.type in FP8:
        return tensor.shape, "fp8"
    *rows, columns = tensor.shape
    held = {"u8": 2, "i32": 8}.get(tensor.type)
    if held is None:
        return tensor.shape, "w8a8-int8"
    scale = next((part for name, part in extra.items() if name.endswith("scale")), None)
    if tensor.type == "u8" and scale is not None and scale.type in FP8 | {"f8_e8m0"}:
        return (*rows, columns * 2), _four_bits(columns * 2, extra)
    return (*rows, columns * held), "awq-int4"


def _narrow(
    tensor: StoredTensor, extra: Mapping[str, StoredTensor], config: Mapping[str, object]
) -> tuple[tuple[int, ...], str]:
    if any(ending in extra for ending in ("absmax", "bitsandbytes__nf4", "bitsandbytes__fp4")):
        return (tensor.bytes * 2, 1), "nf4" if "nested_absmax" in extra else "nf4-single"
    if "SCB" in extra:
        return tensor.shape, "int8"
    scale = next((part for name, part in extra.items() if name in ("weight_scale", "scale", "_scale")), None)
    if tensor.type == "i8":
        packed = scale is not None and scale.type == "f8_e8m0" and scale.shape[-1:] == (tensor.shape[-1] // 16,)
        if packed:
            return (*tensor.shape[:-1], tensor.shape[-1] * 2), "mxfp4"
        return tensor.shape, "w8a8-int8"
    if tensor.type == "u8" and len(tensor.shape) >= 2:
        if scale is not None and len(scale.shape) >= 2 and scale.shape[-2] == 2 * tensor.shape[-2]:
            # Model Optimizer packs two outputs of 4-bit integers in a byte.
            return (*tensor.shape[:-2], tensor.shape[-2] * 2, tensor.shape[-1]), "gptq-int4"
        columns = tensor.shape[-1] * 2
        return (*tensor.shape[:-1], columns), _four_bits(columns, extra)
    scales = extra.get("scales")
    if tensor.type == "u32" and scales is not None and len(tensor.shape) >= 2:
        group = _integer(config.get("group_size")) or 64
        bits = _integer(config.get("bits")) or 32 * tensor.shape[-1] // max(1, scales.shape[-1] * group)
        bits = bits if bits in (2, 3, 4, 5, 6, 8) else 4
        if scales.shape and scales.shape[-1]:
            # Parts of other widths in one file: the width is a whole number of groups, of 32, 64 or 128.
            bits = _mlx_bits(tensor.shape[-1], scales.shape[-1], group, bits)
        return (*tensor.shape[:-1], tensor.shape[-1] * 32 // bits), f"mlx-{bits}bit"
    return tensor.shape, ""


def _mlx_bits(words: int, groups: int, group: int, bits: int) -> int:
    """Bits of a packed matrix: those of the configuration where its groups agree, else what groups of that size say."""
    if words * 32 == bits * groups * group:
        return bits
    found, rest = divmod(words * 32, groups * group)
    return found if not rest and found in (2, 3, 4, 5, 6, 8) else bits


def _integer(value: object) -> int | None:
    return value if type(value) is int and 0 < value < 64 * 1024 else None
