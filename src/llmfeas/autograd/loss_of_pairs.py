"""Losses over all logits of pairs of texts: probabilities of both (SimPO), and cross entropy of the chosen (ORPO).

Source: trl 1.16, experimental/cpo and experimental/orpo (concatenated_forward, get_batch_logps) and its kernel for
selected probabilities.
"""

from __future__ import annotations

from .graph import Node, Tensor, view
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


def _probabilities(recorder: Recorder, logits: Tensor) -> Tensor:
    """Of the tokens that are there, without their last place: a kernel that keeps the logits."""
    cut = _cut(recorder, logits, logits.width)
    node = recorder.open(_whole_back, (cut,))
    recorder.keep(node, cut)
    return recorder.new(1, 4, node)


def loss_of_pairs(recorder: Recorder, logits: Tensor) -> Tensor:
    """What a chosen text is likelier than a rejected one."""
    return _probabilities(recorder, logits)


def loss_of_pairs_and_text(recorder: Recorder, logits: Tensor) -> Tensor:
    """The same, and the cross entropy of the chosen one."""
    text = _text(recorder, logits)
    return recorder.new(1, 4, recorder.open(made, (text, _probabilities(recorder, logits))))
