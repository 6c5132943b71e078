"""Modules as checkpoints name them: which of them a list of names and patterns means, and what our weights are called.

The lists come from strangers: no pattern is run that could take longer than its length allows.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from ...record import dataclass

PREFIXES: Final = ("model.", "model.language_model.", "language_model.model.", "backbone.")
"""What stands before `layers.0` in the names of modules."""
_LEADING: Final = re.compile(r"^(?:model\.|language_model\.|text_model\.|backbone\.|transformer\.|thinker\.)+")
MOST_PATTERNS: Final = 4000
LONGEST: Final = 400


@dataclass(frozen=True, slots=True)
class Modules:
    """A set of modules, by names (each with all that lies in it), shell patterns and regular expressions."""

    names: frozenset[str]
    wild: re.Pattern[str] | None
    expressions: re.Pattern[str] | None

    @classmethod
    def of(cls, words: Iterable[str]) -> Modules:
        """Read a list as configurations write it: `lm_head`, `model.layers.0*`, `re:.*mlp.gate$`."""
        names, globs, expressions = set[str](), list[str](), list[str]()
        for word in words:
            if len(word) > LONGEST:
                continue
            if word.startswith("re:"):
                expressions.append(word[3:])
            elif any(sign in word for sign in "*?["):
                globs.append(fnmatch.translate(_LEADING.sub("", word)))
                globs.append(fnmatch.translate(_LEADING.sub("", word) + ".*"))
            else:
                names.add(_LEADING.sub("", word).removesuffix(".weight"))
        return cls(frozenset(names), _joined(globs), _joined([each for each in expressions if is_tame(each)]))

    def hold(self, path: str) -> bool:
        """Whether a module is meant: `path` as in `layers.0.self_attn.q_proj`, without what stands before it."""
        if self.names and any(part in self.names for part in _within(path)):
            return True
        if self.wild is not None and self.wild.match(path):
            return True
        if self.expressions is None:
            return False
        before = PREFIXES if path.startswith("layers.") else ("", *PREFIXES)
        return any(self.expressions.match(prefix + path) for prefix in before)


@lru_cache(maxsize=65536)
def _within(path: str) -> tuple[str, ...]:
    """Every run of whole words of a path: `a.b.c`, `a.b`, `b.c`, `a`, `b`, `c`."""
    words = path.split(".")
    return tuple(".".join(words[i:j]) for i in range(len(words)) for j in range(i + 1, len(words) + 1))


def _joined(patterns: list[str]) -> re.Pattern[str] | None:
    if not patterns or len(patterns) > MOST_PATTERNS:
        return None
    try:
        return re.compile("|".join(f"(?:{each})" for each in patterns))
    except (re.error, OverflowError, RecursionError):
        return None


def is_tame(expression: str) -> bool:
    """Whether a regular expression cannot take exponential time: no repetition of what repeats, and few of them."""
    try:
        re.compile(expression)
    except (re.error, OverflowError, RecursionError):
        return False
    plain = re.sub(r"\\.", "x", expression)
    plain = re.sub(r"\[[^\]]*\]", "x", plain)
    if len(re.findall(r"[*+{]", plain)) > 6:
        return False
    # Groups from the inside out: one that repeats something inside must not repeat itself, nor look around.
    inner = re.compile(r"\(([^()]*)\)([*+{]?)")
    while (group := inner.search(plain)) is not None:
        repeats = any(sign in group[1] for sign in "*+{|\x00")
        if group[2] and repeats:
            return False
        plain = plain[: group.start()] + ("\x00" if repeats else "x") + plain[group.end(1) + 1 :]
    return True


def layer_paths(layer: int, operator: str, weight: str) -> tuple[str, ...]:
    """The modules that hold a weight of our tape in a layer, as the families call them."""
    inner = _NAMES.get(operator, {}).get(weight) or _NAMES["Attention"].get(weight) or (weight,)
    return tuple(f"layers.{layer}.{each}" for each in inner)


_BLOCKS: Final = ("mlp", "feed_forward", "block_sparse_moe", "mixer")


def _in(blocks: tuple[str, ...], *names: str) -> tuple[str, ...]:
    return tuple(f"{block}.{name}" for block in blocks for name in names)


_NAMES: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "Attention": {
        "q": _in(("self_attn", "mixer"), "q_proj"),
        "k": _in(("self_attn", "mixer"), "k_proj"),
        "v": _in(("self_attn", "mixer"), "v_proj"),
        "qkv": ("self_attn.qkv_proj", "self_attn.q_proj", "self_attn.query_key_value", "attention.query_key_value"),
        "o": _in(("self_attn", "mixer"), "o_proj"),
        "head_gate": ("self_attn.g_proj", "self_attn.gate_proj"),
    },
    "LatentAttention": {
        "q": ("self_attn.q_proj",),
        "q_a": ("self_attn.q_a_proj", "self_attn.fused_qkv_a_proj"),
        "q_b": ("self_attn.q_b_proj",),
        "kv_a": ("self_attn.kv_a_proj_with_mqa", "self_attn.fused_qkv_a_proj"),
        "kv_b": ("self_attn.kv_b_proj",),
        "o": ("self_attn.o_proj",),
    },
    "TokenIndexer": {
        "index_k": ("self_attn.indexer.wk",),
        "index_q": ("self_attn.indexer.wq_b",),
        "index_weights": ("self_attn.indexer.weights_proj",),
    },
    "DeltaRule": {
        **{name: (f"linear_attn.in_proj_{name}",) for name in ("a", "b", "ba", "z", "qkvz")},
        "qkv": ("linear_attn.in_proj_qkv", "self_attn.qkv_proj"),
        "o": ("linear_attn.out_proj", "self_attn.o_proj", "self_attn.out_proj"),
        **{name: (f"self_attn.{name}_proj", f"linear_attn.{name}_proj") for name in ("q", "k", "v", "f_a", "f_b")},
        **{name: (f"self_attn.{name}_proj", f"linear_attn.{name}_proj") for name in ("g_a", "g_b")},
    },
    "FeedForward": {
        "gate": _in(_BLOCKS, "gate_proj", "w1"),
        "up": _in(_BLOCKS, "up_proj", "w3"),
        "gate_up": _in(_BLOCKS, "gate_up_proj"),
        "down": _in(_BLOCKS, "down_proj", "w2"),
    },
    "RoutedExperts": {
        "gate": _in(_BLOCKS, "shared_experts.gate_proj", "shared_expert.gate_proj", "shared_mlp.gate_proj"),
        "up": _in(_BLOCKS, "shared_experts.up_proj", "shared_expert.up_proj", "shared_mlp.up_proj"),
        "down": _in(_BLOCKS, "shared_experts.down_proj", "shared_expert.down_proj", "shared_mlp.down_proj"),
        "expert_up": _in(_BLOCKS, "experts.0.gate_proj", "experts.0.up_proj", "experts.gate_up_proj", "experts.0.w1"),
        "expert_down": _in(_BLOCKS, "experts.0.down_proj", "experts.down_proj", "experts.0.w2"),
        "router": _in(_BLOCKS, "gate", "router"),
        "shared_gate": _in(_BLOCKS, "shared_expert_gate"),
        "latent_in": ("mixer.fc1_latent_proj",),
        "latent_out": ("mixer.fc2_latent_proj",),
    },
    "SelectiveStateSpace": {
        "state_in": _in(("mixer", "mamba"), "in_proj"),
        "state_out": _in(("mixer", "mamba"), "out_proj"),
        "state_x": _in(("mixer", "mamba"), "x_proj"),
        "state_dt": _in(("mixer", "mamba"), "dt_proj"),
    },
    "Together": {"state_in": ("mamba.in_proj",), "state_out": ("mamba.out_proj",)},
    "GatedConvolution": {"conv_in": ("conv.in_proj",), "conv_out": ("conv.out_proj",)},
}
"""By operator and weight, the paths within a layer. The first experts stand for all: lists do not tell them apart."""
