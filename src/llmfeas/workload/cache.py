"""The cache of keys and values, and what linear attention keeps in its place."""

from __future__ import annotations

from functools import lru_cache

from ..catalog.architecture import Architecture
from ..model.build import build


@lru_cache(maxsize=8192)
def kv_cache_bytes(architecture: Architecture, tokens: int, sequences: int = 1, bytes_per_value: float = 2.0) -> float:
    """The logical size in bytes of the cache behind `tokens` of each of `sequences`.

    Formula: full attention keeps 2 x kv_heads x head_dim values a token and layer, latent attention the latent and the
    rotated key, a windowed layer at most `window - 1` tokens and one 8-byte counter, linear attention the last inputs
    of its convolution and a 32-bit state; attention to an encoder its keys and values of the whole source. The keys of
    an indexer of sparse attention are not counted. Assumes a cache
    without padding or pages. Equal to transformers' DynamicCache (5.23), except that Falcon's grouped heads stand
    there once for each query head.
    """
    held = sum(
        repeat * ((operator.cached_values(tokens) + operator.source_values) * bytes_per_value + operator.state_bytes)
        for operator, repeat in build(architecture).operators
    )
    counters = sum(repeat * operator.counter_bytes for operator, repeat in build(architecture).operators)
    return sequences * held + counters
