"""Tokens that are learned before the text of a frozen model, encoded or not."""

from __future__ import annotations

from ..adapters import AdapterKind
from ..autograd.graph import Parameter, Tensor
from ..autograd.products import embedding, linear
from ..autograd.rules import made
from .build import Tape, tape_of
from .context import Context
from .mixers.attention import Attention

ENCODER_PRODUCTS = 3
"""Products, with biases, that virtual tokens come from (peft's PromptEncoder: an MLP)."""


def learned_shapes(kind: AdapterKind, tokens: int, tape: Tape) -> list[tuple[int, ...]]:
    """The shapes of what is learned: a row for each of so many tokens, as wide as the stream, with the products behind
    it; or as wide as the keys and values of all layers.
    """
    if kind.virtual == "cache":
        attentions = [(getattr(each, "attention", each), repeat) for each, repeat in tape.operators]
        widths = (repeat * each.cached_values(1) for each, repeat in attentions if isinstance(each, Attention))
        return [(tokens, sum(widths))]
    width = tape.embedding.hidden
    encoder: list[tuple[int, ...]] = [(width, width), (width,)] * ENCODER_PRODUCTS if kind.encoded else []
    return [(tokens, width), *encoder] if kind.virtual else []


def learned(context: Context) -> list[Parameter]:
    """Make the rows of tokens before the text, then the matrices and biases that they go through."""
    recipe = context.recipe
    if not recipe.adapters or recipe.kind.virtual != "input":
        return []
    shapes = learned_shapes(recipe.kind, recipe.virtual_tokens, tape_of(context.setup))
    return [context.adapter(*shape) for shape in shapes]


def behind(context: Context, learned: list[Parameter], embedded: Tensor) -> Tensor:
    """The rows of tokens for each sequence, encoded, and the text behind them in one tensor; `embedded` counts both.

    With checkpointing the text needs a gradient too, and stays until the step ends.
    """
    recorder, (rows, *encoder) = context.recorder, learned
    tokens = embedding(recorder, rows, recorder.new(context.sizes.b * rows.shape[0], 8))
    for weight, bias in zip(encoder[::2], encoder[1::2], strict=True):
        tokens = linear(recorder, tokens, weight, bias)
    if recorder.recording and context.recipe.checkpointing in ("full", "selective"):
        embedded.node = context.input_leaf(embedded)
    return recorder.new(embedded.n, embedded.width, recorder.open(made, (tokens, embedded)))
