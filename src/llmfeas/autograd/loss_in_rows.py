"""LitGPT's loss: log-probabilities of some tokens after the other, of logits that the training loop has a name for."""

from __future__ import annotations

from typing import Final

from .graph import Node, Parameter, Tensor
from .products import linear
from .recorder import Recorder
from .storage import LOGITS

ROWS: Final = 128
"""Tokens whose loss LitGPT takes at once (litgpt 0.5.13, utils.py, chunked_cross_entropy)."""


def _in_rows_back(recorder: Recorder, node: Node, g: Tensor) -> list[Tensor | None]:
    """Gradients of all chunks, which their split joins where it cut the logits of all tokens."""
    recorder.ledger.begin("loss")
    chunk, n, width, wide, cut, shifted = node.data
    _first = [recorder.new(chunk, each, component=LOGITS) for each in ((wide,) if wide > width else (width, width))]
    del _first
    # Each chunk's kept numbers go as its gradient comes.
    node.saved.clear()
    out = recorder.new(n, width, component=LOGITS)
    for _ in range(cut + shifted):
        out = recorder.new(out.n, width, component=LOGITS)
    recorder.ledger.begin("backward")
    return [out]


def _in_rows(
    recorder: Recorder, x: Tensor, weight: Parameter, bias: Parameter | None, chunk: int, *, cut: bool, shifted: bool
) -> Tensor:
    """Logits of all tokens, named until the step is over; log-probabilities of some tokens after the other, in the
    logits' type, of which autocast keeps a copy in fp32 too.

    `chunk`: the logits of one part; `cut`: parts are cut from the logits of all tokens; `shifted`: and these are copied
    without each sequence's last, until forward ends.
    """
    logits = linear(recorder, x, weight, bias, logits=True)
    recorder.named = logits
    recorder.ledger.begin("loss")
    n, width = logits.n, logits.width
    _copy = recorder.new(n, width, None, LOGITS) if shifted else None
    wide = 4 if recorder.autocast else width
    node = recorder.open(_in_rows_back, (logits,), (chunk, n, width, wide, cut, shifted))
    recorder.keep(node, recorder.new(n, width, None, LOGITS))
    if wide > width:
        recorder.keep(node, recorder.new(n, wide, None, LOGITS))
    recorder.keep(node, recorder.new(recorder.sizes.bs, 8))
    loss = recorder.new(1, 4, node)
    recorder.ledger.begin("forward")
    return loss


def loss_in_rows(recorder: Recorder, x: Tensor, weight: Parameter, bias: Parameter | None) -> Tensor:
    """Loss of some rows of the logits after the other (LitGPT's pre-training)."""
    return _in_rows(recorder, x, weight, bias, ROWS * weight.shape[0], cut=True, shifted=False)


def loss_in_shifted_rows(recorder: Recorder, x: Tensor, weight: Parameter, bias: Parameter | None) -> Tensor:
    """The same of logits without each sequence's last, which are copied (its full fine-tuning)."""
    return _in_rows(recorder, x, weight, bias, ROWS * weight.shape[0], cut=True, shifted=True)


def loss_in_each_rows(recorder: Recorder, x: Tensor, weight: Parameter, bias: Parameter | None) -> Tensor:
    """The same where the head runs on as many tokens of each sequence at once, so that no logits are cut (LoRA)."""
    chunk = recorder.sizes.b * ROWS * weight.shape[0]
    return _in_rows(recorder, x, weight, bias, chunk, cut=False, shifted=False)
