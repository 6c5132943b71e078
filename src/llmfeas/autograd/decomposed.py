"""Adapters with a magnitude for each output beside the direction of the sum (DoRA), as peft runs them."""

from __future__ import annotations

from .basic import add, divided, dropout, mul, scaled, shifted
from .graph import Parameter, Tensor
from .products import linear
from .recorder import Recorder

Decomposed = tuple[Parameter, Parameter, Parameter, Parameter]
"""Base, low-rank pair, magnitudes."""


def decomposed(recorder: Recorder, x: Tensor, base: Tensor, adapted: Decomposed, drops: bool) -> Tensor:
    """What the base gave of `x`, and the correction of it (Liu 2024; peft 0.21, tuners/lora/dora.py, forward).

    The norm of the sum is taken of whole matrices, which are there until the call returns. With dropout the base runs a
    second time, on what is left of its input.
    """
    weight, down, up, magnitude = adapted
    result = base
    if drops:
        x = dropout(recorder, x, drops)
    whole, norm = _norm(recorder, x.width, weight, down.shape[0])
    scale = divided(recorder, magnitude, norm)
    low = linear(recorder, linear(recorder, x, down), up)
    if drops:
        wide = Parameter(whole[-1].storage, weight.shape, x.width, None)
        wide.shared = False
        base = linear(recorder, x, wide)
        del wide
    turned = mul(recorder, shifted(recorder, scale), base)
    low = scaled(recorder, mul(recorder, scale, low))
    turned = add(recorder, turned, low)
    whole.clear()
    return add(recorder, result, turned)


def _norm(recorder: Recorder, width: int, weight: Parameter, rank: int) -> tuple[list[Tensor], Tensor]:
    """Whole matrices that the norm of the sum is taken of, which live until the call returns, and the norm.

    The pair's product is what its layers make of an identity; its graph holds that, and is never run.
    """
    (n_out, n_in), narrow = weight.shape, 2 if recorder.autocast else 4
    identity = recorder.new(n_in * n_in, 4)
    held = [identity if narrow == 4 else recorder.new(n_in * n_in, narrow)]
    held.append(recorder.new(n_in * rank, narrow))
    held.append(recorder.new(n_in * n_out, narrow))
    del identity
    if width != narrow:
        held[-1] = recorder.new(n_in * n_out, width)
    held.append(recorder.new(n_in * n_out, width))  # the base, in the type of the input
    times = recorder.new(n_in * n_out, width)
    _sum = recorder.new(n_in * n_out, width)
    del times
    return held, recorder.new(n_out, width)
