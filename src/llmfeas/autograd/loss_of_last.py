"""The loss of a score that is made of the logits of each sequence's last token.

Source: sentence-transformers 6.2, LogitScore and BinaryCrossEntropyLoss (`logits_to_keep=1`).
"""

from __future__ import annotations

from .basic import cast
from .graph import Node, Parameter, Tensor, view
from .products import linear
from .recorder import Recorder
from .rules import made
from .storage import LOGITS


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
