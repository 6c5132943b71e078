"""Losses that libraries of training bring beside the model's: of pairs of texts, of last tokens, in rows.

Sources: trl 1.16, experimental/cpo and experimental/orpo (concatenated_forward, get_batch_logps) and its kernel for
selected probabilities; sentence-transformers 6.2, LogitScore and BinaryCrossEntropyLoss (`logits_to_keep=1`); litgpt
0.5.13.
"""

from __future__ import annotations

from typing import Final

from .basic import cast
from .graph import Node, Parameter, Tensor, view
from .products import linear
from .recorder import Recorder
from .rules import gradient_of_logits, made
from .storage import LOGITS


def _whole_back(recorder: Recorder, node: Node, g: Tensor) -> list[Tensor | None]:
    """A gradient as large as the input, beside what was kept."""
    return gradient_of_logits(recorder, node)


def _text_back(recorder: Recorder, node: Node, g: Tensor) -> list[Tensor | None]:
    """The gradients of likelihood and of softmax."""
    recorder.ledger.begin("loss")
    edge = node.edges[0]
    assert edge is not None
    _likelihood = recorder.new(edge[2], edge[3], component=LOGITS)
    scores = recorder.new(edge[2], edge[3], component=LOGITS)
    recorder.ledger.begin("backward")
    return [scores]


def _text(recorder: Recorder, logits: Tensor) -> Tensor:
    """Cross entropy of the first half: of a copy without each text's last place; keeps the softmax."""
    chosen = _cut(recorder, logits, logits.width // 2)
    chosen = _cut(recorder, chosen, chosen.width)
    node = recorder.open(_text_back, (chosen,))
    _copy = recorder.new(chosen.n, chosen.width, None, LOGITS)
    recorder.keep(node, recorder.new(chosen.n, chosen.width, None, LOGITS))
    return recorder.new(1, 4, node)


def _cut(recorder: Recorder, x: Tensor, width: int) -> Tensor:
    """A slice, whose backward fills a tensor as large as `x`; of half of it by half of its bytes."""
    return view(x.storage, x.n, width, recorder.open(_whole_back, (x,)))


def loss_of_pairs(recorder: Recorder, logits: Tensor) -> Tensor:
    """What a chosen text is likelier than a rejected one: probabilities of the tokens that are there, without their
    last place, by a kernel that keeps the logits.
    """
    cut = _cut(recorder, logits, logits.width)
    node = recorder.open(_whole_back, (cut,))
    recorder.keep(node, cut)
    return recorder.new(1, 4, node)


def loss_of_pairs_and_text(recorder: Recorder, logits: Tensor) -> Tensor:
    """The same, and the cross entropy of the chosen one."""
    text = _text(recorder, logits)
    return recorder.new(1, 4, recorder.open(made, (text, loss_of_pairs(recorder, logits))))


def _filled_back(recorder: Recorder, node: Node, g: Tensor) -> list[Tensor | None]:
    """A gradient as large as what was cut: zeros but for the last tokens."""
    return [recorder.gradient(node, 0, node.data[0])]


def loss_of_last_token(recorder: Recorder, x: Tensor, weight: Parameter, bias: Parameter | None) -> Tensor:
    """Logits of the last tokens, in fp32 where accelerate widens them, and the cross entropy of what they make."""
    rows = recorder.sizes.b * weight.shape[-1]
    last = view(x.storage, rows, x.width, recorder.open(_filled_back, (x,), (x.width,)))
    logits = linear(recorder, last, weight, bias, logits=True)
    before, recorder.component = recorder.component, LOGITS
    wide = cast(recorder, logits, 4) if recorder.autocast else logits
    recorder.component = before
    return recorder.new(1, 4, recorder.open(made, (wide,)))


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
