"""Rows of model types with parallel residual streams and tables of n-grams: Qwen4-Exp.

`defaults` are those of the configuration classes of transformers 5.23: a config.json may leave out what equals them.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isqrt
from typing import Final

from ..catalog.parts import Indexer, SideWeights
from . import hf_parts as read
from .config_file import Config
from .hf_moe import DELTA_RULE, GATED, SHARED_EXPERTS
from .hf_parts import ATTENTION_DROPOUT, BIASED, Family, Parts, sizes
from .hf_side import Matrices

_MOST_TABLES: Final = 256
"""Tables of n-grams that are sized by a prime each."""


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % divisor for divisor in range(2, isqrt(number) + 1))


def _primes(first: int, count: int) -> list[int]:
    """So many prime numbers, from `first` on."""
    found: list[int] = []
    while len(found) < count:
        if _is_prime(first):
            found.append(first)
        first += 1
    return found


def _ngram_layers(config: Config, parts: Parts) -> dict[int, SideWeights]:
    """Read layers (from 0) with hashed tables of n-grams: a prime number of rows for each head, projections to every
    stream, norms and a convolution.

    Raises:
        DataError: more tables than can be sized, or a width that they do not divide.
    """
    hidden, streams = parts["hidden"], config.count("hc_count", "few")
    layers = sorted(set(config.numbers("ple_layer_ids", 10_000) or ()))
    heads = (config.count("ngram_size", "few") - 1) * config.count("heads_per_ngram", "heads")
    width = config.optional_count("ple_embed_dim") or hidden
    if not layers:
        return {}
    if not 0 < heads * len(layers) <= _MOST_TABLES or width % heads:
        raise config.wrong("heads_per_ngram", f"makes {heads} tables of a width of {width} in {len(layers)} layers")
    grain = config.count("make_ngram_vocab_size_divisible_by", "rows")
    rows = _primes(config.count("ngram_vocab_size_base", "rows"), heads * len(layers))
    wide, kernel = streams * hidden, config.count("ple_conv_kernel_size", "few")
    return {
        layer - 1: SideWeights(
            matrices=((width, wide), (width, hidden)),
            vectors=(3 + kernel) * wide,
            table=(-(-sum(rows[place * heads : (place + 1) * heads]) // grain) * grain, width // heads),
        )
        for place, layer in enumerate(layers)
    }


def _connection(config: Config, hidden: int, *, last: bool = False) -> tuple[Matrices, int]:
    """A branch's way from all streams into one and back, beyond the norm of one stream that each branch has."""
    streams, rank = config.count("hc_count", "few"), config.count("hc_lowrank")
    wide = streams * hidden
    mixing = [(wide, rank), (rank, wide)]
    return (mixing if last else [*mixing, (wide, streams)]), wide - hidden


def _qwen4_layers(config: Config, parts: Parts) -> Parts:
    """Read Qwen4-Exp: a delta rule, or attention to blocks that an indexer picks; parallel streams around both."""
    hidden = parts["hidden"]
    names = {"linear_attention": "linear_attention", "indexed_attention": "attention", "full_attention": "attention"}
    found: Parts = dict(read.linear_attention_apart(config, parts))
    if config.raw("layer_types") is not None:
        found |= read.mixers(config, parts, "layer_types", names)
    matrices, vectors = _connection(config, hidden)
    plain = SideWeights(matrices=(*matrices, *matrices), vectors=2 * vectors)
    listed = _ngram_layers(config, parts)
    beside = [
        SideWeights(matrices=(*plain.matrices, *more.matrices), vectors=plain.vectors + more.vectors, table=more.table)
        if (more := listed.get(index)) is not None
        else plain
        for index in range(parts["layers"])
    ]
    last, more_vectors = _connection(config, hidden, last=True)
    return {
        **found,
        "indexer": Indexer(
            heads=config.count("indexer_n_heads", "heads"),
            head_dim=config.count("indexer_head_dim"),
            top_k=config.count("indexer_budget", "tokens"),
            block=config.count("indexer_compress_ratio", "tokens"),
        ),
        "beside": beside,
        "side": SideWeights(matrices=tuple(last), vectors=more_vectors),
    }


STREAMS: Final[Mapping[str, Family]] = {
    "qwen4_exp_text": Family(
        implementation="hf-streams",
        defaults=sizes(
            *(40, 2048, 16, 2, 0, 248320, 32768),
            **{**DELTA_RULE, "partial_rotary_factor": 1.0},
            num_experts=512,
            num_experts_per_tok=10,
            moe_intermediate_size=512,
            shared_expert_intermediate_size=512,
            hc_count=4,
            hc_lowrank=320,
            ngram_size=3,
            heads_per_ngram=8,
            ngram_vocab_size_base=20_000_000,
            make_ngram_vocab_size_divisible_by=128,
            ple_conv_kernel_size=4,
        ),
        fixed=GATED,
        parts=(BIASED, SHARED_EXPERTS, _qwen4_layers, read.rope_fraction, ATTENTION_DROPOUT),
    ),
}
