"""Write small GGUF files: headers as the specification lays them out, weights as a hole in the file."""

from __future__ import annotations

import struct
from pathlib import Path

from llmfeas.importers.weights.gguf import tensor_types

TYPE_NUMBERS = {name: number for number, (name, _, _) in tensor_types().items()}


def text(value: str | bytes, length: str = "<Q") -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack(length, len(raw)) + raw


def entry(value: object, length: str = "<Q") -> bytes:
    order = length[0]
    match value:
        case bool():
            return struct.pack(order + "I?", 7, value)
        case int():
            return struct.pack(order + "II", 4, value)
        case float():
            return struct.pack(order + "If", 6, value)
        case str():
            return struct.pack(order + "I", 8) + text(value, length)
        case [str(), *_]:
            body = b"".join(text(item, length) for item in value)
            return struct.pack(order + "II", 9, 8) + struct.pack(length, len(value)) + body
        case list():
            kind, code = (7, "?") if isinstance(value[0], bool) else (4, "I")
            body = struct.pack(f"{order}{len(value)}{code}", *value)
            return struct.pack(order + "II", 9, kind) + struct.pack(length, len(value)) + body
    raise TypeError(value)


def header(
    metadata: dict[str, object], tensors: dict[str, tuple[tuple[int, ...], str]], version: int = 3, order: str = "<"
) -> tuple[bytes, int]:
    """The header's bytes and the bytes of the weights; shapes are [outputs, inputs]."""
    length = order + ("I" if version == 1 else "Q")
    out = b"GGUF" + struct.pack(order + "I", version)
    out += struct.pack(length, len(tensors)) + struct.pack(length, len(metadata))
    out += b"".join(text(key, length) + entry(value, length) for key, value in metadata.items())
    offset = 0
    for name, (shape, kind) in tensors.items():
        number = TYPE_NUMBERS[kind]
        _, block, size = tensor_types()[number]
        elements = 1
        for side in shape:
            elements *= side
        sides = struct.pack(f"{order}{len(shape)}{length[1]}", *reversed(shape))
        out += text(name, length) + struct.pack(order + "I", len(shape)) + sides
        out += struct.pack(order + "IQ", number, offset)
        offset = -(-(offset + elements // block * size) // 32) * 32
    return out + bytes(-len(out) % 32), offset


def write(
    path: Path,
    metadata: dict[str, object],
    tensors: dict[str, tuple[tuple[int, ...], str]],
    version: int = 3,
    order: str = "<",
) -> Path:
    head, weights = header(metadata, tensors, version, order)
    with path.open("wb") as stream:
        stream.write(head)
        stream.truncate(len(head) + weights)
    return path


def llama(
    layers: int = 2,
    hidden: int = 256,
    kv: int = 128,
    ffn: int = 512,
    vocab: int = 1024,
    kind: str = "q4_k",
    **more: object,
) -> tuple[dict[str, object], dict[str, tuple[tuple[int, ...], str]]]:
    """Metadata and tensors of a small Llama in llama.cpp's names."""
    metadata: dict[str, object] = {
        "general.architecture": "llama",
        "general.name": "Tiny Llama",
        "general.file_type": 15,
        "llama.block_count": layers,
        "llama.context_length": 2048,
        "llama.embedding_length": hidden,
        "llama.feed_forward_length": ffn,
        "llama.attention.head_count": 4,
        "llama.attention.head_count_kv": 2,
        "llama.rope.dimension_count": 64,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "tokenizer.ggml.tokens": [f"t{index}" for index in range(vocab)],
        **more,
    }
    tensors: dict[str, tuple[tuple[int, ...], str]] = {
        "token_embd.weight": ((vocab, hidden), kind),
        "output_norm.weight": ((hidden,), "f32"),
        "output.weight": ((vocab, hidden), "q6_k" if kind == "q4_k" else kind),
    }
    for index in range(layers):
        shapes = {
            "attn_norm": (hidden,),
            "attn_q": (hidden, hidden),
            "attn_k": (kv, hidden),
            "attn_v": (kv, hidden),
            "attn_output": (hidden, hidden),
            "ffn_norm": (hidden,),
            "ffn_gate": (ffn, hidden),
            "ffn_up": (ffn, hidden),
            "ffn_down": (hidden, ffn),
        }
        for role, shape in shapes.items():
            tensors[f"blk.{index}.{role}.weight"] = (shape, kind if len(shape) > 1 else "f32")
    return metadata, tensors
