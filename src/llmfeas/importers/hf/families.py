"""The table of model types: how the configuration of each is read (data/families.yaml)."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, Final

from ...catalog.records import merged
from ...catalog.store import data_file, data_folder
from ...record import dataclass, field
from . import (  # noqa: F401 - importing them marks their readers
    beside,
    decoders,
    encoder,
    heads,
    hybrid,
    latent,
    looped,
    pairs,
    recurrent,
    remote,
)
from .parts import READERS, Reader

USUAL: Final = {
    "layers": "num_hidden_layers",
    "hidden": "hidden_size",
    "heads": "num_attention_heads",
    "kv_heads": "num_key_value_heads",
    "ffn": "intermediate_size",
    "vocab": "vocab_size",
    "context": "max_position_embeddings",
}
"""What nearly every class calls the sizes, in the order in which the table lists them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One configuration class of transformers: where its fields stand, what they default to, what the class fixes."""

    implementation: str
    defaults: Mapping[str, Any]
    names: Mapping[str, str]
    """Fields of layers, hidden, heads, kv_heads, head_dim, ffn, vocab, context, activation."""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    only: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    readers: tuple[Reader, ...] = ()
    encoder_decoder: bool = False


@functools.cache
def table() -> Mapping[str, Any]:
    """The file: `families` by model_type, and what is said of types beside."""
    return data_file(data_folder(), "families").data


def family(kind: str) -> Family | None:
    """The record of a model_type; None of one that is not known."""
    return _family(kind) if kind in table()["families"] else None


@functools.cache
def _family(kind: str) -> Family:
    written = _whole(table()["families"][kind])
    sizes = dict(zip(USUAL.values(), written["sizes"], strict=True)) if "sizes" in written else {}
    usual = {"tie_word_embeddings": False, **sizes, **({"hidden_act": "silu"} if sizes else {})}
    return Family(
        implementation=written["implementation"],
        defaults={**usual, **written.get("defaults", {})},
        names={**USUAL, "head_dim": "head_dim", "activation": "hidden_act", **written.get("names", {})},
        fixed=written.get("fixed", {}),
        only=written.get("only", {}),
        readers=tuple(_reader(each) for each in written.get("readers", ())),
        encoder_decoder=written.get("encoder_decoder", False),
    )


def _whole(written: Mapping[str, Any]) -> Mapping[str, Any]:
    """A record laid over the one that it is like."""
    like = written.get("like")
    if like is None:
        return written
    base = table()["families"].get(like) or table()["bases"][like]
    return merged(_whole(base), written)


def _reader(written: str | Mapping[str, Any]) -> Reader:
    """A reader by its name, with its arguments, or by that of a shorthand for both."""
    if isinstance(written, str):
        shorthand = table()["shorthands"].get(written)
        return READERS[written] if shorthand is None else _reader(shorthand)
    ((name, arguments),) = written.items()
    return functools.partial(READERS[name], **arguments)
