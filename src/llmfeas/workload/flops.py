"""Matrix FLOPs of training steps and of inference; one multiply-add is 2, causal attention counts the full square."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

from ..catalog.architecture import Architecture
from ..contract import MayBeNull
from ..derivation import MODEL, SETTING, Say, plain
from ..model.build import Tape, build
from ..model.layer import Layer
from ..model.operator import AttentionKernel, Operator
from ..model.sums import architecture_sums, source_tokens
from ..model.weight import LoraTargets, Weight
from ..record import dataclass, replace
from .parameters import parameters

Checkpointing = Literal["none", "selective", "full"]


@dataclass(frozen=True, slots=True)
class Lora:
    """What trains when the base is frozen."""

    rank: int
    targets: LoraTargets = "all-linear"
    bare: int = 0
    """The first so many layers have no adapters."""
    lifts_input: bool = True
    """Where layers are run again, backward runs through these too."""


@dataclass(frozen=True, slots=True)
class StepFlop:
    """FLOPs of one forward and backward pass."""

    forward: float
    backward: float
    """Gradients of activations and weights; the fused kernel's second computation of the scores included."""
    replayed: float
    """Forward work that checkpointing does again."""
    attention: float = 0.0
    """Of the forward pass: what grows with the square of the length."""

    @property
    def executed(self) -> float:
        """All that is computed."""
        return self.forward + self.backward + self.replayed


@dataclass(frozen=True, slots=True)
class Flops:
    """FLOPs of a whole job, as the JSON gives them."""

    rule_of_thumb: MayBeNull[float]
    """6 N D of training, 2 N D of inference."""
    model: MayBeNull[float]
    """What the model asks for; attention over the full square."""
    hardware: MayBeNull[float]
    """What is executed."""
    forward_per_token: MayBeNull[float]


@lru_cache(maxsize=8192)
def step_flop(
    architecture: Architecture,
    sequences: int,
    seq_len: int,
    *,
    kernel: AttentionKernel = "flash",
    checkpointing: Checkpointing = "none",
    lora: Lora | None = None,
    dropout: float | None = None,
) -> StepFlop:
    """Count what PyTorch executes in one step over `sequences` of `seq_len` tokens.

    Formula: forward = 2 tokens x (matrix elements a token meets) + attention; the backward pass of a product costs as
    much for its input and as much for its weight, the fused attention kernel 2.5 x its forward pass. `full` replays
    each layer without its last product if nothing behind it is kept (no dropout, no norm, no routing weights);
    `selective` replays every second product (PyTorch's usual policy) and keeps attention. Frozen weights need no
    gradient, and what stands before the first adapter needs none for its input. Equal to PyTorch's counter (2.13).
    Assumes that a routed expert computes only the tokens routed to it. `dropout` replaces the model's residual dropout.
    """
    architecture = architecture.reading(seq_len)
    plan = _plan(architecture, checkpointing, lora, architecture.dropout.residual if dropout is None else dropout)
    tokens = float(sequences) * seq_len
    forward, backward, replayed = tokens * plan.forward, tokens * plan.backward, tokens * plan.replayed
    if architecture.last_token:
        unread = 2.0 * architecture_sums(architecture).head_weights * (tokens - sequences)
        forward, backward = forward - unread, backward - (1 if lora else 2) * unread
    attention = 0.0
    for scores in plan.scores:
        ahead = sequences * scores.operator.score_flop(seq_len)
        attention += scores.repeat * ahead
        replayed += scores.replays * ahead
        backward += scores.backward * sequences * scores.operator.score_backward_flop(seq_len, kernel)
    reader = architecture.reader
    if reader is not None:
        how = {"kernel": kernel, "checkpointing": checkpointing, "lora": lora, "dropout": dropout}
        read = step_flop(reader, sequences, source_tokens(architecture), **how)
        forward, attention = forward + read.forward - read.attention, attention + read.attention
        backward, replayed = backward + read.backward, replayed + read.replayed
    return StepFlop(forward + attention, backward, replayed, attention)


def training_flop(
    architecture: Architecture,
    tokens: float,
    seq_len: int,
    *,
    kernel: AttentionKernel = "flash",
    checkpointing: Checkpointing = "none",
    lora: Lora | None = None,
    dropout: float | None = None,
    learned: int = 0,
    beside: float = 0.0,
    say: Say = plain,
) -> Flops:
    """Count the FLOPs of training on `tokens` in sequences of `seq_len`, each behind so many `learned` ones.

    `rule_of_thumb` is 6 N D with N active parameters (Kaplan 2020), which leaves out attention and counts look-up
    tables as products. `model` is 3 x the forward pass (LoRA: without the gradients of frozen weights), `hardware` what
    PyTorch executes with this kernel and this checkpointing; both with passes `beside` that need no gradient.
    """
    length, tokens = seq_len + learned, say("tokens", tokens, "tokens", SETTING)
    once = step_flop(architecture, 1, length, kernel="eager", lora=lora)
    run = step_flop(architecture, 1, length, kernel=kernel, checkpointing=checkpointing, lora=lora, dropout=dropout)
    weights = say("weights", (once.forward - once.attention) / (2 * length), "", MODEL)
    forward_per_token = 2 * weights + say("attention", once.attention / length, "FLOP a token", MODEL)
    forward, seen = say("forward", forward_per_token, "FLOP a token", MODEL), tokens
    if learned:
        own = say("seq_len", seq_len, "tokens", SETTING)
        seen = tokens * (own + say("virtual_tokens", learned, "tokens", SETTING)) / own
    model = seen * (forward + say("backward", once.backward / length, "FLOP a token", MODEL))
    if beside:
        model += tokens * say("beside", beside) * forward
    again = float(seen) * (run.executed - once.executed) / length
    return Flops(
        rule_of_thumb=6 * say("active", parameters(architecture).active, "", MODEL) * seen,
        model=model,
        hardware=say("model", model, "FLOP") + say("again", again, "FLOP"),
        forward_per_token=forward_per_token,
    )


def inference_flop(
    architecture: Architecture, prompt: int, generated: int, sequences: int = 1, say: Say = plain
) -> Flops:
    """Count the FLOPs of requests of `prompt` tokens that are answered with `generated` ones.

    The prompt's attention counts the full square, a generated token's the tokens that it sees; the head runs for the
    last token of the prompt and for each generated one but the last. `rule_of_thumb` is 2 N D.
    Of an encoder-decoder the encoder reads the prompt, and the decoder starts with one token.
    """
    architecture, active = architecture.reading(prompt), parameters(architecture).active
    reader, count = architecture.reader, say("concurrency", sequences, "", SETTING)
    if reader is None:
        work, tokens = _request_flop(architecture, prompt, generated), prompt + generated
        rule = say("active", active, "", MODEL) * say("tokens", tokens, "tokens")
    else:
        read, tokens = source_tokens(architecture), 1 + generated
        reads = parameters(reader).active
        work = _request_flop(reader, read, 0) + _request_flop(architecture, 1, generated)
        rule = say("encoder", reads, "", MODEL) * say("read", read, "tokens")
        rule += say("decoder", active - reads, "", MODEL) * say("written", tokens, "tokens")
    model = say("request", work, "FLOP", MODEL) * count
    return Flops(2.0 * rule * count, model, model, work / tokens if tokens else 0.0)


@lru_cache(maxsize=8192)
def _request_flop(architecture: Architecture, prompt: int, generated: int) -> float:
    """FLOPs of one request in one stack of layers."""
    plan = _plan(architecture, "none", None, 0.0)
    logits = 2.0 * architecture_sums(architecture).head_weights
    tokens = prompt + generated
    work = (plan.forward - logits) * tokens + logits * max(generated, 1)
    for scores in plan.scores:
        work += scores.repeat * scores.operator.score_flop(prompt)
        work += scores.repeat * _decode_sum(scores.operator, prompt, generated)
    return work


def _decode_sum(operator: Operator, cached: int, count: int) -> float:
    """Sum `decode_flop` over `count` tokens behind `cached` ones; it is linear up to the operator's reach."""
    growing = count if operator.window is None else max(0, min(count, operator.window - cached))
    middle = operator.decode_flop(cached + (growing - 1) / 2) * growing if growing else 0.0
    return middle + operator.decode_flop(cached + count) * (count - growing)


@dataclass(frozen=True, slots=True)
class _Scores:
    """An operator whose work grows with the square of the length, and how often each pass runs it."""

    operator: Operator
    repeat: int
    backward: int
    replays: int


@dataclass(frozen=True, slots=True)
class _Plan:
    """FLOPs of one token in products with weights, by pass, and what else there is to compute."""

    forward: float
    backward: float
    replayed: float
    scores: tuple[_Scores, ...]


@lru_cache(maxsize=4096)
def _plan(architecture: Architecture, checkpointing: Checkpointing, lora: Lora | None, dropout: float) -> _Plan:
    tape = build(architecture)
    passes = [_passes(operator, lora, stream_grad=False) for operator in tape.before]
    passes += [_passes(operator, lora, stream_grad=True) for operator in tape.after]
    forward, backward = sum(each.forward for each in passes), sum(each.backward for each in passes)
    replayed = 0.0
    scores: list[_Scores] = []
    for layer, repeat, held in _stretches(tape, lora):
        through = held is None or not held.bare or (held.lifts_input and checkpointing != "none")
        inside = [_passes(operator, held, stream_grad=True) for operator in layer.operators]
        forward += repeat * sum(each.forward for each in inside)
        scores += [
            _Scores(op, repeat, repeat * through, repeat if through and checkpointing == "full" else 0)
            for op in layer.operators
            if op.score_flop(1)
        ]
        if through:
            backward += repeat * sum(each.backward for each in inside)
            replayed += repeat * _replay(layer, checkpointing, held, dropout)
    if lora is not None and not (lora.lifts_input and checkpointing != "none"):
        outside = not lora.bare and any(_adapted(operator, lora) for operator in tape.before)
        backward -= 0.0 if outside else _spared(tape.layer(lora.bare), lora)
    return _Plan(forward, backward, replayed, tuple(scores))


def _stretches(tape: Tape, lora: Lora | None) -> Iterator[tuple[Layer, int, Lora | None]]:
    """Kinds of layers, how often each is run, and what trains there: below all adapters nothing does."""
    bare = lora.bare if lora is not None else 0
    below, above = Counter(tape.layers[:bare]), Counter(tape.layers[bare:])
    for kind, (layer, _) in enumerate(tape.kinds):
        if below[kind]:
            yield layer, below[kind], replace(lora, rank=0) if lora is not None else None
        if above[kind]:
            yield layer, above[kind], replace(lora, bare=0) if lora is not None else None


@dataclass(frozen=True, slots=True)
class _Passes:
    """FLOPs of one token in an operator's products."""

    forward: float
    backward: float


def _passes(operator: Operator, lora: Lora | None, *, stream_grad: bool) -> _Passes:
    """Count both passes of an operator; `stream_grad` tells whether its input needs a gradient."""
    forward = backward = 0.0
    inner_grad = stream_grad or lora is None
    for weight in operator.weights:
        base, pair = weight.flop_per_token, _pair_flop(weight, lora)
        needs_input = inner_grad if weight.inner else stream_grad or lora is None
        forward += base + sum(pair)
        backward += base * (needs_input + (lora is None)) + pair[0] * (1 + needs_input) + pair[1] * 2
        inner_grad = inner_grad or bool(pair[0])
    return _Passes(forward, backward)


def _pair_flop(weight: Weight, lora: Lora | None) -> tuple[float, float]:
    """One token's forward FLOPs in the two matrices of a low-rank pair."""
    if lora is None or not weight.takes_adapter(lora.targets):
        return 0.0, 0.0
    outputs, inputs = weight.shape
    return 2.0 * lora.rank * inputs, 2.0 * lora.rank * outputs


def _adapted(operator: Operator, lora: Lora) -> bool:
    return any(weight.takes_adapter(lora.targets) for weight in operator.weights)


def _spared(layer: Layer, lora: Lora) -> float:
    """Backward FLOPs that the first layer saves, whose input needs no gradient before an adapter joins it."""
    spared = 0.0
    for operator in layer.operators:
        spared += _passes(operator, lora, stream_grad=True).backward
        spared -= _passes(operator, lora, stream_grad=False).backward
        if _adapted(operator, lora) and not layer.parallel:
            break
    return spared


def _replay(layer: Layer, checkpointing: Checkpointing, lora: Lora | None, dropout: float) -> float:
    """One token's forward FLOPs that checkpointing computes again in one layer's products."""
    if checkpointing == "none" or not layer.operators:  # of some layers a search left nothing (Nemotron Ultra)
        return 0.0
    if checkpointing == "selective":
        products = [weight for operator in layer.operators for weight in operator.weights if weight.flop_per_token]
        return sum(weight.flop_per_token for weight in products[1::2])
    whole = sum(_passes(operator, lora, stream_grad=True).forward for operator in layer.operators)
    tail = layer.operators[-1].tail
    if tail is None or dropout > 0:
        return whole
    return whole - (_pair_flop(tail, lora)[1] or tail.flop_per_token)
