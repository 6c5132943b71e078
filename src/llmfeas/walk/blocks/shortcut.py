"""Two attention blocks and two dense feed-forwards in one layer, experts on a shortcut around its second half."""

from __future__ import annotations

from ...autograd.basic import add
from ...autograd.graph import Tensor
from ...model.context import Context
from ...model.experts import routed_experts
from ...model.feedforward import feed_forward
from ...model.rotation import Around
from .attention import Attention
from .latent import LatentAttention
from .norms import Norm


class ShortcutLayer:
    """Layer `index` of the model."""

    __slots__ = ("attentions", "context", "experts", "feed_forwards", "norms", "scores")

    def __init__(self, context: Context, index: int) -> None:
        a = context.setup.architecture
        assert a.ffn is not None
        self.context = context
        self.scores: Tensor | None = None
        attention = LatentAttention if a.mla is not None else Attention
        self.norms = [Norm(context, a.hidden, streams=True) for _ in range(4)]
        self.attentions = [attention(context, index) for _ in range(2)]
        self.feed_forwards = [feed_forward(a, a.ffn).laid_out(context.traits).program(context) for _ in range(2)]
        self.experts = None
        if a.experts is not None and a.layer_kinds[index].feed_forward == "experts":
            self.experts = routed_experts(a, a.experts).laid_out(context.traits).program(context)

    def __call__(self, x: Tensor, around: Around) -> Tensor:
        """Run the layer on the stream."""
        recorder = self.context.recorder
        x = self._attended(x, 0, around)
        hidden = self.norms[1](recorder, x)
        shortcut = self.experts(hidden) if self.experts is not None else None
        hidden = self.feed_forwards[0](hidden)
        hidden = add(recorder, x, hidden)
        x = self._attended(hidden, 1, around)
        hidden = self.feed_forwards[1](self.norms[3](recorder, x))
        hidden = add(recorder, x, hidden)
        return add(recorder, hidden, shortcut) if shortcut is not None else hidden

    def _attended(self, x: Tensor, half: int, around: Around) -> Tensor:
        recorder = self.context.recorder
        hidden = self.norms[2 * half](recorder, x)
        hidden, _weights = self.attentions[half](hidden, around)
        return add(recorder, x, hidden)
