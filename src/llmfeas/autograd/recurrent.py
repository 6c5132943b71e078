"""Operators of chunked linear attention: short convolution, triangular systems, the loop over chunks."""

from __future__ import annotations

from .basic import cast, copied_weight
from .graph import Node, Parameter, Tensor, view
from .recorder import Recorder
from .rules import amid, fresh, made


def short_convolution(
    recorder: Recorder, x: Tensor, weight: Parameter, n: int, bias: Parameter | None = None
) -> Tensor:
    """A convolution along the sequence, a channel at a time: keeps input and weight."""
    w: Tensor = weight
    b: Tensor | None = bias
    if recorder.autocast:
        b = copied_weight(recorder, bias) if bias is not None else None
        w, x = copied_weight(recorder, weight), cast(recorder, x, 2)
    node = recorder.open(made, (x, w, b))
    recorder.keep(node, x, w)
    return recorder.new(n, w.width, node)


def _spread_back(recorder: Recorder, node: Node, g: Tensor) -> list[Tensor | None]:
    """The gradient of a sum is read for every part of it."""
    edge = node.edges[0]
    assert edge is not None
    spread = view(g.storage, edge[2], g.width)
    spread.plain = False
    return [spread]


def summed(recorder: Recorder, x: Tensor, n: int) -> Tensor:
    """Sums of parts of x; keeps nothing."""
    return recorder.new(n, x.width, recorder.open(_spread_back, (x,)))


def outer(recorder: Recorder, a: Tensor, b: Tensor, n: int) -> Tensor:
    """Products of elements of two tensors that are each repeated for the other; both are kept."""
    node = recorder.open(fresh, (a, b))
    recorder.keep(node, a, b)
    return recorder.new(n, max(a.width, b.width), node)


def _sum_back(recorder: Recorder, node: Node, g: Tensor) -> list[Tensor | None]:
    return amid(recorder, g, 2)


def running_sum(recorder: Recorder, x: Tensor) -> Tensor:
    """Cumulative sum: keeps nothing; its gradient is turned, summed and turned back."""
    return recorder.new(x.n, x.width, recorder.open(_sum_back, (x,)))


def _solved_back(recorder: Recorder, node: Node, g: Tensor) -> list[Tensor | None]:
    right = recorder.gradient(node, 1, g.width)
    return [recorder.gradient(node, 0, g.width), right]


def solved(recorder: Recorder, system: Tensor, right: Tensor) -> Tensor:
    """Solution of triangular systems: keeps them and itself."""
    node = recorder.open(_solved_back, (system, right))
    out = recorder.new(right.n, right.width, node)
    recorder.keep(node, system, out)
    return out


def _loop_back(recorder: Recorder, node: Node, g: Tensor) -> list[Tensor | None]:
    """Gradients of all chunks, grown in place; the output's gradient is copied for each chunk that is cut from it."""
    _cut = recorder.new(g.n, g.width)
    return [recorder.gradient(node, i, g.width) for i in range(len(node.edges))]


def chunk_loop(recorder: Recorder, parts: list[Tensor], states: int, n: int) -> Tensor:
    """The recurrence over chunks: keeps each chunk's state and what its products read.

    `parts`: new values, decayed keys, queries, scores within chunks, keys, decays; `states`: elements of all states.
    """
    values, decayed, queries, scores, keys, decay = parts
    node = recorder.open(_loop_back, parts)
    out = recorder.new(n, values.width, node)
    recorder.keep(node, decay, recorder.new(states, 4))
    if not recorder.autocast:
        recorder.keep(node, decayed, queries, scores, keys, recorder.new(values.n, values.width))
        return out
    copies = [states, states, decayed.n, queries.n, scores.n, keys.n, values.n, values.n]
    for count in copies:
        recorder.keep(node, recorder.new(count, 2))
    return out


def decays(recorder: Recorder, x: Tensor, rates: Parameter, bias: Parameter) -> Tensor:
    """Decays of a gated delta rule in one kernel: keeps its input."""
    node = recorder.open(made, (x, rates, bias))
    recorder.keep(node, x)
    return recorder.new(x.n, 4, node)


def gated_norm(recorder: Recorder, x: Tensor, gate: Tensor, weight: Parameter | None) -> Tensor:
    """Norm times an activated gate in one kernel: keeps both inputs."""
    node = recorder.open(made, (x, gate, weight))
    recorder.keep(node, x, gate)
    return recorder.new(x.n, x.width, node)


def _delta_back(recorder: Recorder, node: Node, g: Tensor) -> list[Tensor | None]:
    """The states of all chunks are made again beside the gradients."""
    _states = recorder.new(node.data[0], g.width)
    return [recorder.gradient(node, i, g.width) for i in range(len(node.edges))]


def delta_kernel(recorder: Recorder, parts: list[Tensor], pairs: int, states: int, n: int) -> Tensor:
    """Gated delta rule in one kernel: keeps queries, keys, values, steps, decays and the inverse systems of all chunks.

    `pairs`: elements of those systems; `states`: of all states. Source: flash-linear-attention, chunk_gated_delta_rule.
    """
    node = recorder.open(_delta_back, parts, (states,))
    out = recorder.new(n, parts[0].width, node)
    recorder.keep(node, *parts, recorder.new(pairs, parts[0].width))
    return out


def _token_loop_back(recorder: Recorder, node: Node, g: Tensor) -> list[Tensor | None]:
    """Gradients of all tokens, grown in place by pieces as large as they; the output's is copied at each token."""
    _cut, _piece = recorder.new(g.n, g.width), recorder.new(g.n, g.width)
    return [recorder.gradient(node, i, g.width) for i in range(len(node.edges))]


def token_loop(recorder: Recorder, decay: Tensor, x: Tensor) -> Tensor:
    """A linear recurrence one token after the other, in fp32: keeps every state and decay."""
    node = recorder.open(_token_loop_back, (decay, x))
    out = recorder.new(x.n, x.width, node)
    if node is not None:
        recorder.keep(node, recorder.new(x.n, 4), decay if decay.width == 4 else recorder.new(decay.n, 4))
    return out


def _state_loop_back(recorder: Recorder, node: Node, g: Tensor) -> list[Tensor | None]:
    """Gradients of all tokens, grown in place by tensors as large as they that are zero but for one token."""
    _piece = recorder.new(node.data[0], 4)
    return [recorder.gradient(node, i, 4 if i < 2 else g.width) for i in range(len(node.edges))]


def state_loop(recorder: Recorder, decays: Tensor, added: Tensor, leaves: Tensor, like: Tensor) -> Tensor:
    """A state of each channel, one token after the other, in fp32: keeps every state, as its product reads it too."""
    node = recorder.open(_state_loop_back, (decays, added, leaves), (decays.n,))
    out = recorder.new(like.n, like.width, node)
    if node is not None:
        recorder.keep(node, decays, recorder.new(added.n, 4), leaves)
        if like.width != 4 or recorder.autocast:
            recorder.keep(node, recorder.new(added.n, 2))
    return out
