"""Elementwise operators and reductions: what each keeps and makes."""

from __future__ import annotations

from functools import partial

from .graph import Node, Parameter, Tensor, view
from .recorder import Recorder
from .rules import amid, fresh, made, passed
from .storage import WORKSPACE, Storage


def cast(recorder: Recorder, x: Tensor, width: int) -> Tensor:
    """Change of type; the same tensor where it has it."""
    if x.width == width:
        return x
    # Weights and a checkpointed block's arguments outlive its forward pass: a copy must not live with them.
    shared = recorder.compiled and recorder.frame is None and not isinstance(x, Parameter)
    if shared and x.recast is not None and x.recast.width == width:
        return x.recast
    node = recorder.open(passed, (x,))
    out = recorder.new(x.n, width, node)
    out.heads_first = x.heads_first
    if shared:
        x.recast = out
    return out


def hooked(recorder: Recorder, x: Tensor) -> Tensor:
    """The tensor itself; in backward it and its gradient stay until the step ends."""
    return view(x.storage, x.n, x.width, recorder.open(partial(_holding, x.storage), (x,)))


def _holding(storage: Storage, recorder: Recorder, node: Node, g: Tensor) -> list[Tensor | None]:
    recorder.held += [(node.place, storage), (node.place, g.storage)]
    return [g]


def _beside_back(recorder: Recorder, node: Node, g: Tensor) -> list[Tensor | None]:
    others = ((i, edge) for i, edge in enumerate(node.edges) if i)
    gradients = [recorder.gradient(node, i, edge[3]) if edge is not None else None for i, edge in others]
    return [view(g.storage, g.n, g.width), *gradients]


def passing(recorder: Recorder, x: Tensor, weights: list[Tensor]) -> Tensor:
    """x itself beside weights that get gradients of their own and whose work is in no program."""
    return view(x.storage, x.n, x.width, recorder.open(_beside_back, (x, *weights)))


def copied(recorder: Recorder, x: Tensor) -> Tensor:
    """A copy that nothing is kept for."""
    out = recorder.new(x.n, x.width, recorder.open(passed, (x,)))
    out.heads_first = x.heads_first
    return out


def copied_weight(recorder: Recorder, weight: Parameter) -> Tensor:
    """The 2-byte copy of a trained weight that autocast shares within its region; a 2-byte weight itself."""
    if weight.width == 2:
        return weight
    if not weight.shared or weight.node is None:
        return recorder.new(weight.n, 2, recorder.open(passed, (weight,)), WORKSPACE)
    if weight.copied is None:
        node = recorder.open(passed, (weight,))
        weight.copied = recorder.new(weight.n, 2, node, WORKSPACE)
        recorder.copied.append(weight)
    return weight.copied


def add(recorder: Recorder, a: Tensor, b: Tensor) -> Tensor:
    """Sum (the smaller side is broadcast)."""
    node = recorder.open(passed, (a, b))
    out = recorder.new(max(a.n, b.n), max(a.width, b.width), node)
    out.heads_first = a.heads_first
    return out


def added_in_place(recorder: Recorder, a: Tensor, b: Tensor) -> Tensor:
    """`a += b`: nothing new."""
    return view(a.storage, a.n, a.width, recorder.open(passed, (a, b)))


def clipped_in_place(recorder: Recorder, x: Tensor) -> Tensor:
    """A clamp in place: keeps a copy of what it overwrites."""
    node = recorder.open(fresh, (x,))
    if node is not None:
        recorder.keep(node, recorder.new(x.n, x.width))
    return view(x.storage, x.n, x.width, node)


def _clamp_back(recorder: Recorder, node: Node, g: Tensor) -> list[Tensor | None]:
    _masks = [recorder.new(g.n, 1) for _ in range(node.data[0])]
    return [recorder.new(g.n, g.width)]


def clamped(recorder: Recorder, x: Tensor, sides: int) -> Tensor:
    """Bounded on one or two sides: keeps its input."""
    node = recorder.open(_clamp_back, (x,), (sides,))
    recorder.keep(node, x)
    return recorder.new(x.n, x.width, node)


def less(recorder: Recorder, a: Tensor, b: Tensor) -> Tensor:
    """Difference of two tensors (the smaller side is broadcast)."""
    node = recorder.open(_less_back, (a, b))
    return recorder.new(max(a.n, b.n), max(a.width, b.width), node)


def _less_back(recorder: Recorder, node: Node, g: Tensor) -> list[Tensor | None]:
    return [g, recorder.new(g.n, g.width) if node.wants(1) else None]


def scaled(recorder: Recorder, x: Tensor) -> Tensor:
    """Times a number."""
    return recorder.new(x.n, x.width, recorder.open(fresh, (x,)))


def filled(recorder: Recorder, x: Tensor, mask: Tensor) -> Tensor:
    """A number where the mask says so: keeps the mask."""
    node = recorder.open(fresh, (x,))
    recorder.keep(node, mask)
    return recorder.new(x.n, x.width, node)


def chosen(recorder: Recorder, a: Tensor, b: Tensor, mask: Tensor) -> Tensor:
    """Elements of one or the other, as the mask says, which is kept."""
    node = recorder.open(fresh, (a, b))
    recorder.keep(node, mask)
    return recorder.new(max(a.n, b.n), max(a.width, b.width), node)


def weighed_in_place(recorder: Recorder, x: Tensor, weight: Tensor) -> Tensor:
    """Rows times a number each inside the kernel that made them: what that kernel keeps serves both."""
    node = recorder.open(made, (x, weight))
    recorder.keep(node, weight)
    return view(x.storage, x.n, x.width, node)


def scaled_in_place(recorder: Recorder, x: Tensor) -> Tensor:
    """Times a number, in place."""
    return view(x.storage, x.n, x.width, recorder.open(fresh, (x,)))


def shifted(recorder: Recorder, x: Tensor) -> Tensor:
    """Plus a number."""
    return recorder.new(x.n, x.width, recorder.open(passed, (x,)))


def mul(recorder: Recorder, a: Tensor, b: Tensor) -> Tensor:
    """Product of two tensors (the smaller side is broadcast); each is kept for the other."""
    node = recorder.open(fresh, (a, b))
    if node is not None:
        recorder.keep(node, a if b.node is not None else None, b if a.node is not None else None)
    out = recorder.new(max(a.n, b.n), max(a.width, b.width), node)
    out.heads_first = a.heads_first
    return out


def divided(recorder: Recorder, a: Tensor, b: Tensor, *, in_place: bool = False) -> Tensor:
    """Quotient of two tensors; keeps the divisor, and the dividend if the divisor needs a gradient."""
    node = recorder.open(fresh, (a, b))
    recorder.keep(node, b)
    if node is not None and b.node is not None:
        # What is overwritten is kept as a copy.
        recorder.keep(node, recorder.new(a.n, a.width) if in_place else a)
    if in_place:
        return view(a.storage, a.n, a.width, node)
    return recorder.new(max(a.n, b.n), max(a.width, b.width), node)


def _power_back(recorder: Recorder, node: Node, g: Tensor) -> list[Tensor | None]:
    return amid(recorder, g, 2)


def power(recorder: Recorder, x: Tensor) -> Tensor:
    """A constant power; in fp32 under autocast."""
    if recorder.autocast:
        x = cast(recorder, x, 4)
    node = recorder.open(_power_back, (x,))
    recorder.keep(node, x)
    return recorder.new(x.n, x.width, node)


def unary_of_output(recorder: Recorder, x: Tensor) -> Tensor:
    """tanh, sigmoid, relu, exp: keeps its output."""
    node = recorder.open(fresh, (x,))
    out = recorder.new(x.n, x.width, node)
    recorder.keep(node, out)
    return out


def rsqrt(recorder: Recorder, x: Tensor) -> Tensor:
    """Inverse square root; in fp32 under autocast; keeps its output."""
    if recorder.autocast:
        x = cast(recorder, x, 4)
    node = recorder.open(_rsqrt_back, (x,))
    out = recorder.new(x.n, x.width, node)
    recorder.keep(node, out)
    return out


def _rsqrt_back(recorder: Recorder, node: Node, g: Tensor) -> list[Tensor | None]:
    return amid(recorder, g, 2)


def unary_of_input(recorder: Recorder, x: Tensor) -> Tensor:
    """gelu and other kernels that keep their input."""
    node = recorder.open(fresh, (x,))
    recorder.keep(node, x)
    return recorder.new(x.n, x.width, node)


def _silu_back(recorder: Recorder, node: Node, g: Tensor) -> list[Tensor | None]:
    return amid(recorder, g, 5)


def silu(recorder: Recorder, x: Tensor) -> Tensor:
    """x times its sigmoid: keeps its input; its backward is made of six operators in the measured build."""
    node = recorder.open(_silu_back, (x,))
    recorder.keep(node, x)
    return recorder.new(x.n, x.width, node)


def mean(recorder: Recorder, x: Tensor, rows: int) -> Tensor:
    """Mean over the width: one number a row."""
    return recorder.new(rows, x.width, recorder.open(made, (x,)))


def _softmax_back(recorder: Recorder, node: Node, g: Tensor) -> list[Tensor | None]:
    return amid(recorder, g, 1) if recorder.softmax_writes and not recorder.compiled else fresh(recorder, node, g)


def _widening_softmax_back(recorder: Recorder, node: Node, g: Tensor) -> list[Tensor | None]:
    _product = recorder.new(g.n, g.width) if recorder.softmax_writes else None
    return [recorder.new(g.n, 2)]


def softmax(recorder: Recorder, x: Tensor, width: int | None = None) -> Tensor:
    """Softmax, in `width` bytes where asked (else in fp32 under autocast); keeps its output."""
    target = width or (4 if recorder.autocast else x.width)
    widens = recorder.softmax_widens and x.width < target
    if (width is not None or recorder.autocast) and not widens:
        x = cast(recorder, x, target)
    node = recorder.open(_widening_softmax_back if widens else _softmax_back, (x,))
    out = recorder.new(x.n, target, node)
    recorder.keep(node, out)
    return out


def dropout(recorder: Recorder, x: Tensor, active: bool) -> Tensor:
    """Dropout keeps a mask of one byte an element (CPUs: of its input's type); without effect it is its input."""
    if not active:
        return x
    node = recorder.open(fresh, (x,))
    out = recorder.new(x.n, x.width, node)
    mask = recorder.new(x.n, x.width if recorder.wide_masks else 1)
    recorder.keep(node, mask)
    return out
