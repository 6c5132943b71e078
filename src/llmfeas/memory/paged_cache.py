"""What a request takes of a server's pool: whole blocks of a layer, layers in groups of one size, states in pages."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

from ..catalog.architecture import Architecture
from ..catalog.serving_pool import ServingPool
from ..model.build import build
from ..model.layer import Layer
from ..model.operator import Operator
from ..record import dataclass

FEW_MORE = 1.5
"""Groups are as large as the most frequent kind of layer where that has less than so many times the layers of the
rarest, else as large as the rarest (vLLM, kv_cache_utils.py)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PagedCache:
    """What the blocks of a request depend on, on one rank."""

    pool: ServingPool
    architecture: Architecture
    block_tokens: int
    context: int
    pass_tokens: int
    """Tokens that are under way at once."""
    value: float
    """Bytes of a cached value."""
    tp: int


@lru_cache(maxsize=4096)
def request_bytes(p: PagedCache) -> tuple[float, ...]:
    """The bytes that one request of the whole context holds of a layer, by kind of layer, on one rank.

    Formula: ceil(tokens / block) blocks; a windowed layer ceil(min(window - 1 + a pass, context) / block) + 1, which
    may begin inside a block; a fixed state whole pages, as large as a block of a layer that attends; all times the
    padding that makes groups of layers alike. Sources: vLLM's kv_cache_interface.py and kv_cache_utils.py of 0.19 and
    0.33; SGLang's model_runner_kv_cache_mixin.py of 0.5.10.
    """
    tape = build(p.architecture)
    block = p.block_tokens * max(_token_bytes(p, layer) for layer, _ in tape.kinds)
    padded = _padding(p, [layer for layer, _ in tape.kinds], tape.layers)
    held = (sum(_operator_bytes(p, operator, block) for operator in layer.operators) for layer, _ in tape.kinds)
    return tuple(factor * each for factor, each in zip(padded, held, strict=True))


def _token_bytes(p: PagedCache, layer: Layer) -> float:
    """Bytes of one more token in a layer; 0 where it keeps a fixed state."""
    return sum(op.cached_values(1) * p.value / _ranks(p, op) for op in layer.operators if not op.state_bytes)


def _operator_bytes(p: PagedCache, operator: Operator, block_bytes: float) -> float:
    each = operator.cached_values(1) * p.value / _ranks(p, operator)
    if operator.state_bytes:
        state = (operator.cached_values(1) * p.value + operator.state_bytes) / p.tp
        return state if p.pool.state_share or not block_bytes else -(-state // block_bytes) * block_bytes
    return each * _tokens(p, operator) if each else 0.0


def _tokens(p: PagedCache, operator: Operator) -> int:
    """Tokens for which an operator has room."""
    block, window = p.block_tokens, p.architecture.window
    whole = -(-p.context // block) * block
    if operator.window is None or window is None or not window.in_cache:
        return whole
    if p.pool.window == "share":
        return int(p.pool.window_share * whole)
    if window.chunked:
        return -(-min(operator.window + p.pass_tokens, p.context) // block) * block
    return (-(-min(operator.window - 1 + p.pass_tokens, p.context) // block) + 1) * block


def _ranks(p: PagedCache, operator: Operator) -> int:
    return min(p.tp, operator.cache_parts)


def _padding(p: PagedCache, kinds: list[Layer], layers: tuple[int, ...]) -> list[float]:
    """By which factor each kind of layer is padded, so that groups of layers whose caches are alike have one size."""
    alike = [(any(op.state_bytes for op in layer.operators), layer.window) for layer in kinds]
    counts = Counter(alike[kind] for kind in layers)
    if len(counts) < 2 or p.pool.window == "share":
        return [1.0] * len(kinds)
    least, most = min(counts.values()), max(counts.values())
    size = most if most < FEW_MORE * least else least
    return [-(-counts[each] // size) * size / counts[each] for each in alike]
