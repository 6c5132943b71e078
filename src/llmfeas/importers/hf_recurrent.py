"""Rows of model types whose layers keep a state of fixed size that is neither a state space's nor a delta rule's:
RecurrentGemma.

`defaults` are those of the configuration classes of transformers 5.23: a config.json may leave out what equals them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..catalog.parts import GatedRecurrence, Window
from .config_file import Config
from .hf_parts import ATTENTION_DROPOUT, QKV_BIASED, Family, Parts, sizes


def _griffin(config: Config, parts: Parts) -> Parts:
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


RECURRENT: Final[Mapping[str, Family]] = {
    "recurrent_gemma": Family(
        implementation="hf-recurrent-gemma",
        names={"activation": "hidden_activation"},
        defaults={
            **sizes(26, 2560, 10, None, 7680, 256000, 8192, tie_word_embeddings=True),
            "hidden_activation": "gelu_pytorch_tanh",
            "attention_window_size": 2048,
            "conv1d_width": 4,
        },
        fixed={"out_bias": True, "mlp_bias": True, "rope_fraction": 0.5},
        parts=(QKV_BIASED, _griffin, ATTENTION_DROPOUT),
    ),
}
