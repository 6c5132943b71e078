"""How kinds of layers follow each other in a model, and which of them tell all."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate

from ..catalog.architecture import Architecture
from ..catalog.implementation import Implementation
from ..model.build import rank_tape
from ..model.setup import Setup
from ..record import dataclass

MAX_PERIOD = 12
"""Layers after which a pattern repeats, at most."""


def repeated_pattern(kinds: Sequence[object]) -> tuple[int, int, int]:
    """The (prefix, period, end) of the stretch of layer kinds that repeats and leaves the fewest layers besides."""
    depth = len(kinds)
    best = (depth, 1, depth)
    fewest = depth + 1
    for period in range(1, min(MAX_PERIOD, depth) + 1):
        end = depth
        while end >= period:
            prefix = end - period
            while prefix > 0 and kinds[prefix - 1] == kinds[prefix - 1 + period]:
                prefix -= 1
            left = depth - end + prefix + period
            if left < fewest:
                best, fewest = (prefix, period, end), left
            end = prefix + period - 1  # what repeats beyond it ends there at the latest
    return best


def layer_kinds(setup: Setup, *, gradients: bool = True) -> list[int]:
    """What decides a layer's program, for each layer of the stage.

    With `gradients` a layer that shares weights is like no other: they arrive at the same ones from all that do. So is
    one that lends its keys and values. Without, whose weights it runs tells none apart.
    """
    recipe, traits = setup.recipe, setup.implementation
    # Windowed layers also differ where they have masks or rotation tables of their own.
    windowed = recipe.windowed or recipe.eager or traits.rotary_tables > 1
    rank = recipe.tp, recipe.expert_tp
    found = _kinds(setup.architecture, traits, rank, recipe.bare_layers, windowed=windowed, gradients=gradients)
    return [found[layer] for layer in setup.span]


@lru_cache(maxsize=256)
def _kinds(
    architecture: Architecture,
    traits: Implementation,
    rank: tuple[int, int],
    bare: int,
    *,
    windowed: bool,
    gradients: bool,
) -> tuple[int, ...]:
    """The same for each layer of the model, of which stages are parts."""
    tape, lenders = rank_tape(architecture, traits, *rank), architecture.lenders
    kinds = [layer if windowed else layer.changed(lambda op: op.without_window()) for layer, _ in tape.kinds]
    alike = kinds if gradients else [layer.apart() for layer in kinds]
    same = [alike.index(kind) for kind in alike]
    shares = [gradients and layer.weight_set > 0 for layer in kinds]
    alone = [shares[kind] or layer in lenders for layer, kind in enumerate(tape.layers)]
    found = [len(kinds) + i if alone[i] else same[kind] for i, kind in enumerate(tape.layers)]
    return tuple(~kind if layer % architecture.own_layers < bare else kind for layer, kind in enumerate(found))


BETWEEN = "between"
"""The kind of what stands between the layers of an encoder and those that read what it made."""


@dataclass(frozen=True, slots=True)
class Outline:
    """The layers of a stage that are worth a walk, and for which ones each of them stands."""

    walked: tuple[int, ...]
    """From 0 on."""
    like: tuple[int, ...]
    """For each layer of the stage the place in `walked` of the one it is like."""


def outline_of(setup: Setup, tail: int) -> Outline:
    """The layers of a stage that are worth a walk, in each of its loops the same ones.

    Those of an encoder come first, and between them and the others what is like no layer.
    """
    kinds, held, reading = layer_kinds(setup), setup.architecture.held_layers, setup.reading
    if reading is not None:
        return outlined((*(("read", kind) for kind in layer_kinds(reading)), BETWEEN, *kinds), tail)
    if held < 2 or setup.first_layer % held or setup.depth % held:
        return outlined(tuple(kinds), tail)
    once = outlined(tuple(layer_kinds(setup, gradients=False)[:held]), tail)
    loops = setup.depth // held
    walked = tuple(loop * held + layer for loop in range(loops) for layer in once.walked)
    return Outline(walked, tuple(loop * len(once.walked) + place for loop in range(loops) for place in once.like))


@lru_cache(maxsize=256)
def outlined(kinds: tuple[object, ...], tail: int = 1) -> Outline:
    """Leave out layers that one of those walked is like, where what then meets is like what met before.

    What a layer adds to all levels is told by its kind and the one before it, and with a `tail` of 2 by the one behind
    it. The first layer of a kind stands for itself alone: its backward is the last to need what all of them share, and
    what trains in it has all behind it make gradients of their inputs. So does then the last one.
    """
    first, final = ({kinds[at]: at for at in order} for order in (range(len(kinds))[::-1], range(len(kinds))))
    alone, new = {*first.values(), *(final.values() if tail > 1 else ())}, {*first.values()}
    met = accumulate((at in new for at in range(len(kinds))), initial=0)
    around = [
        (kinds[at - 1] if at else None, kinds[at : at + tail], at if at in alone else None, before)
        for at, before in zip(range(len(kinds)), met, strict=False)
    ]
    last = {each: at for at, each in enumerate(around)}
    walked: list[int] = []
    at = 0
    while at < len(kinds):
        walked.append(at)
        seen, end, behind = {around[layer] for layer in walked}, len(kinds), at
        for layer in range(at + 1, len(kinds)):
            if around[layer] not in seen:
                end = min(end, last[around[layer]])
            if layer >= end:
                break
            if around[layer][1] == around[at][1]:
                behind = layer
        at = behind + 1
    own = {layer: place for place, layer in enumerate(walked)}
    alike = {around[layer]: place for layer, place in own.items()}
    return Outline(tuple(walked), tuple(own.get(layer, alike[each]) for layer, each in enumerate(around)))
