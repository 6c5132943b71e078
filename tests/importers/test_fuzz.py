"""Damaged and random files: understood or refused with a DataError, never anything else."""

from __future__ import annotations

import json
import struct
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuzz.files import GGUF, SAFETENSORS, damaged, misshapen
from llmfeas.errors import DataError
from llmfeas.importers.model_file import model_from_file

WORDS = st.sampled_from(
    [
        "",
        "a",
        "model.embed_tokens.weight",
        "model.layers.0.self_attn.q_proj.weight",
        "model.layers.99999.mlp.gate.weight",
    ]
)


def understood_or_refused(raw: bytes, ending: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"fuzz{ending}"
        path.write_bytes(raw)
        try:
            model_from_file(path)
        except DataError as error:
            assert path.name in error.message
            assert len(error.message) < 5000


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_misshapen_models(seed: int) -> None:
    understood_or_refused(misshapen(seed), ".safetensors")


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_damaged_gguf(seed: int) -> None:
    understood_or_refused(damaged(GGUF, seed), ".gguf")


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32))
def test_damaged_safetensors(seed: int) -> None:
    understood_or_refused(damaged(SAFETENSORS, seed), ".safetensors")


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=300), st.sampled_from([1, 2, 3]), st.sampled_from("<>"))
def test_random_bytes_after_the_magic(raw: bytes, version: int, order: str) -> None:
    understood_or_refused(b"GGUF" + struct.pack(order + "I", version) + raw, ".gguf")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
TENSORS = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(["F32", "BF16", "U8", "I32", "F8_E4M3", "X"]) | VALUES,
        "shape": st.lists(st.integers(-1, 2**64) | st.integers(0, 8), max_size=4) | VALUES,
        "data_offsets": st.tuples(st.integers(0, 64), st.integers(0, 64)).map(list) | VALUES,
    }
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(WORDS | st.text(max_size=12), TENSORS | VALUES, max_size=5))
def test_odd_safetensors_headers(content: dict[str, object]) -> None:
    raw = json.dumps(content).encode()
    understood_or_refused(struct.pack("<Q", len(raw)) + raw + bytes(64), ".safetensors")
