"""A decoder layer: norms, attention, feed-forward and the residual stream between them."""

from __future__ import annotations

from ...autograd.basic import add, added_in_place, dropout, scaled
from ...autograd.graph import Tensor
from ...model.context import Context
from ...model.experts import ExpertsProgram, routed_experts
from ...model.feedforward import FeedForwardProgram, feed_forward
from ...model.rotation import Around
from .attention import Attention
from .delta import DeltaNet
from .latent import LatentAttention
from .norms import Norm


class Layer:
    """Layer `index` of the model."""

    __slots__ = ("attention", "context", "feed_forward", "norms", "run", "scores")

    def __init__(self, context: Context, index: int) -> None:
        a = context.setup.architecture
        self.context = context
        self.scores: Tensor | None = None
        """Attention weights that the code returns beside the stream, named until the next layer has returned."""
        if context.traits.layer_buffer_bytes:
            context.buffers.append(context.recorder.new(context.traits.layer_buffer_bytes, 1))
        self.norms = [Norm(context, a.hidden, bias=a.norm_bias, streams=True) for _ in range(a.norms_per_layer)]
        self.attention: Attention | LatentAttention | DeltaNet
        if a.layer_kinds[index].mixer == "linear_attention":
            self.attention = DeltaNet(context, index)
        else:
            self.attention = LatentAttention(context, index) if a.mla is not None else Attention(context, index)
        self.feed_forward: FeedForwardProgram | ExpertsProgram
        if a.experts is not None and a.layer_kinds[index].feed_forward == "experts":
            self.feed_forward = routed_experts(a, a.experts).laid_out(context.traits).program(context)
        else:
            assert a.ffn is not None
            self.feed_forward = feed_forward(a, a.ffn).laid_out(context.traits).program(context)
        self.run = self._parallel if a.parallel_block else self._serial

    def __call__(self, x: Tensor, around: Around) -> Tensor:
        """Run the layer on the stream."""
        return self.run(x, around)

    def _serial(self, x: Tensor, around: Around) -> Tensor:
        """Attention into the stream, then feed-forward into it; norms before, after, or both."""
        context, recorder = self.context, self.context.recorder
        norms, post = self.norms, context.setup.architecture.norm_position == "post"
        many = len(norms) == 4
        residual = x
        hidden = x if post else norms[0](recorder, x)
        hidden, weights = self.attention(hidden, around)
        self._returned(weights)
        hidden = self._branch(hidden, norms[1] if many else norms[0] if post else None)
        _attended = hidden if context.traits.names_attended else None
        hidden = add(recorder, residual, hidden)
        residual = hidden
        if not post:
            hidden = norms[2 if many else -1](recorder, hidden)
        hidden = self.feed_forward(hidden)
        hidden = self._branch(hidden, norms[3] if many else norms[-1] if post else None)
        return add(recorder, residual, hidden)

    def _returned(self, weights: Tensor | None) -> None:
        if self.context.traits.returns_scores and self.context.recorder.replay is None:
            self.scores = weights

    def _branch(self, x: Tensor, norm: Norm | None) -> Tensor:
        """What a branch passes through before it joins the stream."""
        context, recorder = self.context, self.context.recorder
        x = dropout(recorder, x, context.recipe.drop_residual)
        if norm is not None:
            x = norm(recorder, x)
        if context.traits.scales_residual:
            x = scaled(recorder, x)
        return x

    def _parallel(self, x: Tensor, around: Around) -> Tensor:
        """Attention and feed-forward on the same stream, through one norm or each its own."""
        context, recorder = self.context, self.context.recorder
        traits, drop = context.traits, context.recipe.drop_residual
        norms = self.norms
        if len(norms) == 1 or traits.norms_first:
            before = norms[0](recorder, x)
            other = before if len(norms) == 1 else norms[1](recorder, x)
            attended, weights = self.attention(before, around)
            self._returned(weights)
            attended = dropout(recorder, attended, drop)
            fed = self.feed_forward(other)
        else:
            attended, weights = self.attention(norms[0](recorder, x), around)
            self._returned(weights)
            attended = dropout(recorder, attended, drop)
            fed = self.feed_forward(norms[-1](recorder, x))
        if traits.adds_in_place:
            fed = added_in_place(recorder, fed, attended)
            return add(recorder, x, dropout(recorder, fed, drop))
        fed = dropout(recorder, fed, drop)
        if traits.adds_attended_first:
            return add(recorder, add(recorder, x, attended), fed)
        return add(recorder, add(recorder, attended, fed), x)
