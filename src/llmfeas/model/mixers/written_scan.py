"""Selective state spaces as transformers writes them where no package brings kernels: Mamba 2 over chunks, Mamba 1 a
token after the other."""

from __future__ import annotations

from functools import partial
from typing import Protocol

from ...autograd.basic import (
    add,
    cast,
    clamped,
    copied,
    filled,
    less,
    mul,
    scaled,
    silu,
    unary_of_input,
    unary_of_output,
)
from ...autograd.graph import Parameter, Tensor
from ...autograd.products import linear, matmul
from ...autograd.recurrent import outer, running_sum, short_convolution, state_loop, summed
from ...autograd.rules import passed
from ...autograd.views import copy, joined, padded, repeated, sliced, split, spread_heads
from ..context import Context
from ..norm import NormProgram
from ..weight import Weight
from .rotation import Around


class Scan(Protocol):
    """What a scan knows of the operator that it belongs to."""

    @property
    def heads(self) -> int:
        """Mamba 2: heads; Mamba 1: channels."""

    @property
    def groups(self) -> int:
        """Of heads that share what writes to the state."""

    @property
    def state(self) -> int:
        """Numbers of state for each channel."""

    @property
    def kernel(self) -> int:
        """Tokens that the convolution sees."""

    @property
    def step_rank(self) -> int:
        """Mamba 1: rank of the projection to the step sizes."""

    @property
    def chunk(self) -> int:
        """Mamba 2: tokens of a chunk."""

    @property
    def scans(self) -> int:
        """Mamba 1: heads, each scanned by itself."""

    @property
    def weights(self) -> tuple[Weight, ...]:
        """Parameters."""

    @property
    def inner(self) -> int:
        """Channels."""

    @property
    def written(self) -> int:
        """Width of what writes to the state."""

    @property
    def channels(self) -> int:
        """What the convolution runs over."""

    @property
    def outputs(self) -> int:
        """Of the first projection."""

    @property
    def chunk_states(self) -> int:
        """Elements of all chunks' states, a token."""


class _WrittenProgram:
    """Projections and the convolution, which both have."""

    __slots__ = ("context", "made", "operator", "projections")

    def __init__(self, context: Context, operator: Scan) -> None:
        made = context.made(operator.weights, streams=True)
        self.context, self.operator = context, operator
        self.projections, self.made = made.projections, made.parameters

    def _rates(self) -> Tensor:
        recorder = self.context.recorder
        return scaled(recorder, unary_of_output(recorder, cast(recorder, self.made["decay"], 4)))

    def _convolved(self, mixed: Tensor) -> Tensor:
        context, recorder, weight = self.context, self.context.recorder, self.made["conv"]
        wide = self.operator.channels * (context.sizes.bs + (self.operator.kernel - 1) * context.sizes.b)
        bias: Parameter | None = self.made.get("conv.bias")
        out = short_convolution(recorder, cast(recorder, mixed, weight.width), weight, wide, bias)
        out = silu(recorder, sliced(recorder, out, mixed.n))
        return cast(recorder, out, mixed.width)


class ChunkScanProgram(_WrittenProgram):
    """Mamba 2 as transformers writes it where mamba_ssm is not installed: over chunks of tokens, in fp32."""

    __slots__ = ("named", "norm")

    def __init__(self, context: Context, operator: Scan) -> None:
        super().__init__(context, operator)
        self.named: list[Tensor] = []
        """What the code has names for until it returns."""
        weight = self.made.get("out_norm")
        group = operator.inner // operator.groups
        self.norm = NormProgram(group, weight, None, "cast-scale") if weight is not None else None

    def __call__(self, x: Tensor, around: Around) -> tuple[Tensor, None]:
        """Run it on x; there are no scores to return."""
        context, recorder, operator = self.context, self.context.recorder, self.operator
        bs = context.sizes.bs
        joint = self._entered(x)
        rates = self._rates()
        gate, mixed, steps = split(recorder, joint, bs * operator.inner, bs * operator.channels, bs * operator.heads)
        mixed = self._convolved(mixed)
        written = bs * operator.written
        values, enters, leaves = split(recorder, mixed, bs * operator.inner, written, written)
        out = self._scanned(values, steps, rates, enters, leaves)
        out = self._gated(out, gate)
        return context.apply(self.projections["state_out"], cast(recorder, out, x.width)), None

    def _entered(self, x: Tensor) -> Tensor:
        """What the first projection gives; each channel times a number of its own where parts are scaled."""
        context, recorder = self.context, self.context.recorder
        if not context.traits.scales_parts:
            return context.apply(self.projections["state_in"], x)
        joint = context.apply(self.projections["state_in"], scaled(recorder, x))
        return mul(recorder, joint, recorder.new(self.operator.outputs, context.recipe.weight_bytes))

    def _gated(self, out: Tensor, gate: Tensor) -> Tensor:
        recorder = self.context.recorder
        if self.norm is None:
            return mul(recorder, out, silu(recorder, gate))
        return self.norm(recorder, mul(recorder, out, silu(recorder, cast(recorder, gate, 4))))

    def _stepped(self, steps: Tensor) -> Tensor:
        recorder = self.context.recorder
        steps = add(recorder, steps, cast(recorder, self.made["dt_bias"], steps.width))
        steps = unary_of_input(recorder, cast(recorder, steps, 4) if recorder.autocast else steps)
        return clamped(recorder, steps, 2)

    def _scanned(self, values: Tensor, steps: Tensor, rates: Tensor, enters: Tensor, leaves: Tensor) -> Tensor:
        """mamba2_chunk_scan: scores within chunks, and the states that chunks hand on."""
        recorder, operator = self.context.recorder, self.operator
        bs, times = self.context.whole_chunks, operator.heads // operator.groups
        written = bs * operator.heads * operator.state
        steps = self._stepped(steps)
        values = cast(recorder, values, 4)
        enters = repeated(recorder, cast(recorder, enters, 4), times)
        leaves = repeated(recorder, cast(recorder, leaves, 4), times)
        n, inner = values.n, bs * operator.inner
        passed_by = mul(recorder, padded(recorder, values, inner), self.made["skip"])
        values = mul(recorder, values, cast(recorder, steps, 4))
        decay = mul(recorder, rates, cast(recorder, steps, 4))
        wide = (inner, bs * operator.heads, written, written)
        values, decay, enters, leaves = map(partial(padded, recorder), (values, decay, enters, leaves), wide)
        total = running_sum(recorder, decay)
        pairs = bs * operator.heads * operator.chunk
        pairwise = unary_of_output(recorder, self._segments(decay))
        scores = self._contracted(leaves, enters, pairs, pairs * operator.state)
        weights = mul(recorder, scores, pairwise)
        if self._sums:
            self.named.append(weights)
            weights = summed(recorder, weights, pairs)
        within = self._contracted(weights, values, values.n, inner * operator.chunk, turned=False, named=False)
        left = unary_of_output(recorder, less(recorder, sliced(recorder, total, self._each_chunk), total))
        decayed = mul(recorder, enters, left)
        each = inner * operator.state
        states = self._contracted(decayed, values, bs * operator.chunk_states, each, named=False)
        first = recorder.new(self.context.sizes.b * operator.inner * operator.state, states.width)
        states = joined(recorder, first, states)
        handed = unary_of_output(recorder, sliced(recorder, total, self._each_chunk))
        handed_on = self._contracted(handed, states, states.n, self._chunk_pairs, turned=False, named=False)
        states = sliced(recorder, handed_on, bs * operator.chunk_states)
        since = unary_of_output(recorder, total)
        read = self._contracted(leaves, states, values.n, each)
        across = mul(recorder, read, since)
        out = copied(recorder, add(recorder, within, across))
        out = add(recorder, out, passed_by)
        self.named.clear()
        return out if out.n == n else sliced(recorder, out, n)

    @property
    def _sums(self) -> bool:
        """Whether products are sums over broadcast ones (transformers before 5.18; torch_forward, without einsums)."""
        return self.context.traits.recurrence == "summed"

    @property
    def _chunk_pairs(self) -> int:
        """Elements of the states of all chunks, once for each chunk that they are handed on to."""
        operator, sizes = self.operator, self.context.sizes
        squared = sizes.bss * -(-operator.inner * operator.state // operator.chunk**2)
        return (
            squared + 2 * self.context.whole_chunks * operator.chunk_states + sizes.b * operator.inner * operator.state
        )

    def _contracted(
        self, a: Tensor, b: Tensor, n: int, wide: int, *, turned: bool = True, named: bool = True
    ) -> Tensor:
        """A product of two activations; `wide`: elements where it is a sum, `named`: alive until the scan is done."""
        if not self._sums:
            return self._product(a, b, n, turned=turned)
        products = outer(self.context.recorder, a, b, wide)
        if named:
            self.named.append(products)
        return summed(self.context.recorder, products, n)

    @property
    def _each_chunk(self) -> int:
        return self.context.whole_chunks * -(-self.operator.heads // self.operator.chunk)

    def _segments(self, decay: Tensor) -> Tensor:
        """Sums of decays between each two tokens of a chunk."""
        recorder, chunk = self.context.recorder, self.operator.chunk
        wide = spread_heads(recorder, decay, chunk)
        wide = filled(recorder, wide, recorder.new(chunk * chunk, 1))
        total = running_sum(recorder, wide)
        return filled(recorder, total, recorder.new(chunk * chunk, 1))

    def _product(self, a: Tensor, b: Tensor, n: int, *, turned: bool = True) -> Tensor:
        """A product of two activations, which are copied heads before tokens; of the first only if it is `turned`."""
        recorder = self.context.recorder
        if recorder.autocast:
            a, b = cast(recorder, a, 2), cast(recorder, b, 2)
        left = copy(recorder, a) if turned else a
        right = copy(recorder, b)
        return matmul(recorder, left, right, n)


class TokenScanProgram(_WrittenProgram):
    """Mamba 1: decays and inputs of every token, channel and number of state at once, then a loop over tokens."""

    __slots__ = ("norms",)

    def __init__(self, context: Context, operator: Scan) -> None:
        super().__init__(context, operator)
        found = ((name, self.made.get(name)) for name in ("dt_norm", "b_norm", "c_norm"))
        self.norms = [
            NormProgram(weight.n, weight, None, context.traits.norm) if weight is not None else None
            for _, weight in found
        ]

    def __call__(self, x: Tensor, around: Around) -> tuple[Tensor, None]:
        """Run it on x; there are no scores to return."""
        context, recorder, operator = self.context, self.context.recorder, self.operator
        bs = context.sizes.bs
        joint = context.apply(self.projections["state_in"], x)
        rates = self._rates()
        mixed, gate = split(recorder, joint, bs * operator.inner, bs * operator.inner)
        if operator.scans > 1:
            mixed = copy(recorder, mixed)
        mixed = self._convolved(mixed)
        small = self._product("state_x", copy(recorder, mixed), operator.step_rank + 2 * operator.state)
        each = bs * operator.scans
        parts = split(recorder, small, each * operator.step_rank, each * operator.state, each * operator.state)
        steps, enters, leaves = (
            part if norm is None else norm(recorder, part) for part, norm in zip(parts, self.norms, strict=True)
        )
        steps = self._product("state_dt", steps, operator.inner // operator.scans)
        out = self._each_scanned(rates, mixed, steps, enters, leaves, gate)
        return context.apply(self.projections["state_out"], copy(recorder, cast(recorder, out, x.width))), None

    def _product(self, name: str, x: Tensor, outputs: int) -> Tensor:
        """A projection without its bias; of heads with weights of their own, written out for every sequence."""
        recorder, sizes, scans = self.context.recorder, self.context.sizes, self.operator.scans
        weight = self.projections[name].weight
        if scans == 1:
            return linear(recorder, x, weight)
        narrow: Tensor = cast(recorder, weight, 2) if recorder.autocast else weight
        stack = (
            narrow if sizes.single else recorder.new(sizes.b * weight.n, narrow.width, recorder.open(passed, (narrow,)))
        )
        return matmul(recorder, stack, x, sizes.bs * scans * outputs)

    def _each_scanned(self, rates: Tensor, *parts: Tensor) -> Tensor:
        """What the heads give, each scanned by itself."""
        recorder, scans = self.context.recorder, self.operator.scans
        if scans == 1:
            return self._scanned(rates, *parts)
        one = tuple(part.n // scans for part in parts)
        outs = [
            self._scanned(rates, *(sliced(recorder, x, n) for x, n in zip(parts, one, strict=True)))
            for _ in range(scans)
        ]
        return joined(recorder, *outs)

    def _scanned(
        self, rates: Tensor, values: Tensor, steps: Tensor, enters: Tensor, leaves: Tensor, gate: Tensor
    ) -> Tensor:
        """mamba_selective_scan."""
        recorder, operator = self.context.recorder, self.operator
        bias = self.projections["state_dt"].bias
        assert bias is not None
        steps = add(recorder, steps, cast(recorder, cast(recorder, bias, 4), steps.width))
        steps = unary_of_input(recorder, cast(recorder, steps, 4) if recorder.autocast else steps)
        each = spread_heads(recorder, steps, operator.state)
        decays = unary_of_output(recorder, mul(recorder, rates, each))
        entering = mul(recorder, each, cast(recorder, enters, 4))
        added = mul(recorder, entering, cast(recorder, values, 4))
        passes = state_loop(recorder, decays, added, leaves, values)
        out = copy(recorder, passes)
        out = add(recorder, out, mul(recorder, values, cast(recorder, self.made["skip"], 4)))
        return mul(recorder, out, silu(recorder, gate))
