"""A prompt's way through the model without gradients: what is alive beside weights and cache at the fullest moment."""

from __future__ import annotations

from functools import lru_cache

from ..autograd.recorder import Recorder
from ..autograd.storage import (
    ACTIVATIONS,
    COMPONENT_BITS,
    LOGITS,
    SYMBOLIC,
    WEIGHTS,
    WORKSPACE,
    Polynomial,
    packed_fields,
)
from ..catalog.architecture import Architecture
from ..catalog.implementation import Implementation
from ..model.context import Context
from ..model.decoder import Decoder
from ..model.setup import Recipe, Setup
from .pattern import layer_kinds, repeated_pattern

_MASK = (1 << COMPONENT_BITS) - 1


@lru_cache(maxsize=4096)
def prefill_polynomials(
    architecture: Architecture, implementation: Implementation, *, value_bytes: int, eager: bool, windowed: bool
) -> tuple[Polynomial, ...]:
    """Every level that can be the fullest, in bytes beside weights and cache, over {1, b, s, bs, s², bs²}.

    Public eager code, the logits of the last token only. Keys and values are joined to the cache before attention
    uses them. `value_bytes`: type of weights and activations. `windowed`: the prompt reaches the attention window.
    """
    recipe = Recipe(weight_bytes=value_bytes, autocast=False, eager=eager, windowed=windowed)
    setup = Setup(architecture=architecture, implementation=implementation, recipe=recipe)
    prefix, period, end = repeated_pattern(layer_kinds(setup, gradients=False))
    recorder = Recorder(SYMBOLIC, autocast=False, recording=False)
    context = Context(recorder, setup, cache=[])
    model = Decoder(context, (*range(min(end, prefix + 2 * period)), *range(end, setup.depth)))
    ids = recorder.new(recorder.sizes.bs, 8)
    recorder.ledger.marks.clear()
    model.body(ids)
    recorder.ledger.mark()
    whole = packed_fields(recorder.ledger.level, WEIGHTS)
    found = {_beside(level, whole) for level, _, _ in recorder.ledger.marks}
    return tuple(one for one in found if not any(other != one and _covers(other, one) for other in found))


def _beside(level: int, whole: Polynomial) -> Polynomial:
    """A level without weights and cache, less the part of the cache that the layers to come still fill."""
    made = packed_fields(sum(level >> part & _MASK for part in (ACTIVATIONS, LOGITS, WORKSPACE)), 0)
    held = packed_fields(level, WEIGHTS)
    c = [a + b - all_of_it for a, b, all_of_it in zip(made, held, whole, strict=True)]
    return c[0], c[1], c[2], c[3], c[4], c[5]


def _covers(other: Polynomial, one: Polynomial) -> bool:
    return all(a >= b for a, b in zip(other, one, strict=True))


def prefill_bytes(polynomials: tuple[Polynomial, ...], sequences: int, tokens: int) -> int:
    """The bytes beside weights and cache at the fullest moment of a prompt of `tokens` in each of `sequences`."""
    b, s = sequences, tokens
    powers = (1, b, s, b * s, s * s, b * s * s)
    return max(sum(c * power for c, power in zip(one, powers, strict=True)) for one in polynomials)
