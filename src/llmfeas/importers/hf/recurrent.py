"""Readers of layers that keep a state of fixed size that is neither a state space's nor a delta rule's:
RecurrentGemma, RWKV 4 and 7, xLSTM."""

from __future__ import annotations

from ...catalog.parts import GatedRecurrence, LinearAttention, SideWeights, TimeMixing, Window
from ..config_file import Config
from .parts import Parts, headless, reader


@reader
def griffin(config: Config, parts: Parts) -> Parts:
    """Read RecurrentGemma, whose blocks repeat; its feed-forward is half as wide as it says.

    Raises:
        DataError: a kind of block that is not known, or channels that blocks do not divide.
    """
    kinds = config.words("block_types", 10_000) or ("recurrent", "recurrent", "attention")
    if not set(kinds) <= {"recurrent", "attention"}:
        raise config.wrong("block_types", "names others than recurrent and attention")
    layers, heads = parts["layers"], parts["heads"]
    recurrent = [kinds[index % len(kinds)] == "recurrent" for index in range(layers)]
    width = config.optional_count("lru_width") or parts["hidden"]
    if width % heads:
        raise config.wrong("lru_width", f"is {width}, which {heads} blocks do not divide")
    return {
        "ffn": parts["ffn"] // 2,
        "gated_recurrence": GatedRecurrence(width=width, blocks=heads, conv_kernel=config.count("conv1d_width", "few")),
        "window": Window(size=config.count("attention_window_size", "tokens")),
        "mixer": ["gated_recurrence" if each else "attention" for each in recurrent],
        "windowed": [not each for each in recurrent],
    }


@reader
def rwkv4(config: Config, parts: Parts) -> Parts:
    """Read RWKV 4: a decay and a bonus a channel, mixtures of each token with the one before, a gate behind the
    feed-forward."""
    hidden, layers = parts["hidden"], parts["layers"]
    width = config.optional_count("attention_hidden_size") or hidden
    side = SideWeights(matrices=((hidden, hidden),), vectors=2 * width + 5 * hidden)
    first = SideWeights(matrices=side.matrices, vectors=side.vectors + 2 * hidden)
    return {
        "ffn": parts["ffn"] or 4 * hidden,
        "time_mixing": TimeMixing(width=width),
        "mixer": ["time_mixing"] * layers,
        "beside": [first, *[side] * (layers - 1)],
        **headless(hidden),
    }


def _rank(config: Config, key: str, factor: float, hidden: int) -> int:
    return config.optional_count(key) or max(32, round(factor * hidden**0.5 / 32) * 32)


@reader
def rwkv7(config: Config, parts: Parts) -> Parts:
    """Read RWKV 7: low-rank products for decays, steps, gates and (but in the first layer) values.

    Raises:
        DataError: values wider than the stream, or attention in some layers.
    """
    hidden, layers = parts["hidden"], parts["layers"]
    if config.raw("attn") is not None:
        raise config.wrong("attn", "names layers with attention, which are not read yet")
    given = config.raw("value_dim")
    if given is not None and given not in (hidden, [hidden] * layers):
        raise config.wrong("value_dim", "is not hidden_size, which is not supported")
    keys = ("decay_low_rank_dim", "a_low_rank_dim", "gate_low_rank_dim", "v_low_rank_dim")
    decay, step, gate, value = (
        _rank(config, key, factor, hidden) for key, factor in zip(keys, (2.5, 2.5, 5, 1.7), strict=True)
    )
    pairs = [pair for rank in (decay, step, gate) for pair in ((hidden, rank), (rank, hidden))]
    vectors = (6 + 3 + 2 + 2 + 1) * hidden
    later = SideWeights(matrices=(*pairs, (hidden, value), (value, hidden)), vectors=vectors + hidden)
    norms = (2 if config.raw("norm_bias") is not False else 1) * hidden if config.raw("norm_first") is not False else 0
    first = SideWeights(matrices=tuple(pairs), vectors=vectors + norms)
    ratio = config.number("hidden_ratio", 4.0) or 4.0
    head_dim = config.optional_count("head_dim") or hidden // config.count("num_heads", "heads")
    return {
        "ffn": parts["ffn"] or -(-int(hidden * ratio) // 32) * 32,
        "time_mixing": TimeMixing(width=hidden, head_dim=head_dim),
        "mixer": ["time_mixing"] * layers,
        "beside": [first, *[later] * (layers - 1)],
        **headless(hidden),
    }


@reader
def xlstm(config: Config, parts: Parts) -> Parts:
    """Read xLSTM: a matrix of state a head, with gates in and out of it; the feed-forward is a share of the stream."""
    hidden, layers, heads = parts["hidden"], parts["layers"], config.count("num_heads", "heads")
    grain = config.count("ffn_round_up_to_multiple_of", "rows")
    keys, values, width = (
        -(-int(hidden * (config.number(key, usual) or usual)) // step) * step
        for key, usual, step in (
            ("qk_dim_factor", 0.5, 64),
            ("v_dim_factor", 1.0, 64),
            ("ffn_proj_factor", 2.667, grain),
        )
    )
    if keys % heads or values % heads:
        raise config.wrong("num_heads", f"is {heads}, which does not divide keys of {keys} and values of {values}")
    return {
        "ffn": width,
        "linear_attention": LinearAttention(
            key_heads=heads,
            value_heads=heads,
            key_head_dim=keys // heads,
            value_head_dim=values // heads,
            conv_kernel=1,
            lightning=True,
        ),
        "mixer": ["linear_attention"] * layers,
        "beside": [SideWeights(matrices=((hidden, heads), (hidden, heads)), vectors=2 * heads)] * layers,
        **headless(hidden),
    }
