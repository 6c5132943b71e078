"""Lengths and batches: tokens, sequence length, context, micro-batch, global batch."""

from __future__ import annotations

from math import isclose

from ..catalog.architecture import Model
from ..errors import UsageError
from ..findings import cached_across_batches
from ..memory.floor import rank_floor_bytes
from ..memory.peak import peak_bytes
from ..memory.runtime import own_memory
from ..memory.usable import usable_bytes
from ..objectives import OBJECTIVES
from ..options import BY_NAME, flag_of
from ..scenario import Scenario
from ..timing.training import layout_tokens_per_second
from ..units import digits, format_count
from ..workload.serving import CHAT_PROMPT_TOKENS
from ..workload.text_tokens import bytes_per_token
from .draft import Draft

CHINCHILLA_TOKENS_PER_PARAMETER = 20
FINETUNE_TOKENS = 10e6
PRETRAIN_BATCH_TOKENS = 2**19
MICRO_BATCH_TOKENS = 8192
WORTH_DOUBLING = 1.03
"""A micro-batch beyond that many tokens is taken where twice as many sequences at once are so much faster."""
MANY = 10**9
"""A global batch that feeds all ranks, where none is settled yet."""


def within_positions(draft: Draft, model: Model, length: int, option: str, rows: int = 0) -> None:
    """Refuse what a learned position table has no row for, warn beyond the trained context.

    `rows`: of the encoder's own table, where that is what the length is about.

    Raises:
        UsageError: beyond a learned position table.
    """
    table = model.architecture.learned_positions
    limit = rows or (model.context if table is None else min(table, model.context))
    if (rows or table is not None) and length > limit:
        raise UsageError(
            "beyond-positions",
            f"{option} {length} is beyond the {limit} learned positions of {model.name}",
            f"use at most {limit}",
        )
    if length > limit:
        draft.warn("beyond-context", f"{option} {length} is beyond the context of {model.name}, {model.context} tokens")


TEXT_TOKENS = 512
"""Of a text that vectors are learned from, or a pair that scores are: what most models of sentence-transformers, BGE
and E5 cut to."""
OF_TEXTS = ("embed", "rerank")


def settle_sequence(draft: Draft, model: Model) -> None:
    """Settle `seq_len`: the model's context, up to 2048, or to what an answer of the length asked for and its prompt
    take; texts that vectors are learned from are shorter.
    """
    longest = TEXT_TOKENS if draft.values["task"] in OF_TEXTS else 2048
    longest = max(longest, (draft.given.get("response_length") or 0) + CHAT_PROMPT_TOKENS)
    seq_len = draft.settle("seq_len", min(model.context, longest), "model" if model.context < longest else "default")
    within_positions(draft, model, seq_len, "--seq-len")


def settle_tokens(draft: Draft, model: Model, active_parameters: float) -> None:
    """Settle `tokens` of the whole job: published, else 20 a parameter (Hoffmann 2022); fine-tuning: examples, or 10M.

    Raises:
        UsageError: tokens, text and examples that contradict each other.
    """
    if draft.settle("data_size", field="text_bytes") is not None:
        _settle_text(draft, model)
        return
    if draft.was_given("bytes_per_token"):
        hint = "give --data-size, such as --data-size 40GB; --tokens are counted already"
        raise UsageError("missing-option", "--bytes-per-token is about --data-size, and none is given", hint)
    if draft.values["task"] != "pretrain":
        _settle_examples(draft)
    elif draft.was_given("epochs"):
        hint = "give --data-size, such as --data-size 40GB, or --task finetune and --examples; --tokens counts passes"
        raise UsageError("missing-option", "--epochs is about --examples or --data-size, and none are given", hint)
    elif model.training_tokens is not None:
        draft.settle("tokens", model.training_tokens, "model")
    else:
        draft.settle("tokens", float(CHINCHILLA_TOKENS_PER_PARAMETER * active_parameters), "derived")


def _settle_examples(draft: Draft) -> None:
    """Settle what a fine-tuning reads: `tokens`, or `examples` x their tokens x `epochs`.

    Raises:
        UsageError: epochs of no examples, or tokens that contradict the examples.
    """
    if draft.settle("examples", None) is None:
        for name in ("epochs", "example_tokens"):
            if draft.was_given(name):
                flag = flag_of(name)
                what = "--examples or --data-size" if name == "epochs" else "--examples"
                hint = "give --examples, such as --examples 5k; --tokens counts all passes already"
                raise UsageError("missing-option", f"{flag} is about {what}, and none are given", hint)
        draft.settle("tokens", FINETUNE_TOKENS)
        return
    seq_len = draft.values["seq_len"]
    each = draft.settle("example_tokens", seq_len, "derived")
    if each > seq_len:
        draft.warn("examples-cut", f"examples of {each} tokens are cut to --seq-len {seq_len}")
        each = seq_len
    loss = draft.values.get("loss")
    each *= 1 if loss is None else OBJECTIVES[loss].sequences * draft.values.get("group_size", 1)
    tokens = float(draft.values["examples"] * each * draft.settle("epochs", 1.0))
    if draft.was_given("tokens") and not isclose(draft.given["tokens"], tokens, rel_tol=1e-9):
        counted = f"--examples, their tokens and --epochs come to {format_count(tokens)}"
        problem = f"--tokens {format_count(draft.given['tokens'])} contradicts --examples"
        raise UsageError("contradiction", problem, f"leave --tokens out: {counted}")
    draft.override("tokens", max(1.0, tokens), "derived")


def _settle_text(draft: Draft, model: Model) -> None:
    """Settle what a training reads of a text: its bytes over those of a token x `epochs`.

    Raises:
        UsageError: examples or tokens beside the text that contradict it.
    """
    for name in ("examples", "example_tokens"):
        if draft.was_given(name):
            problem = f"{flag_of(name)} and --data-size both say how much is learned from"
            raise UsageError("contradiction", problem, "give one of them")
    each = draft.settle("bytes_per_token", bytes_per_token(model.architecture.vocab), "derived")
    tokens = float(draft.values["text_bytes"] / each * draft.settle("epochs", 1.0))
    if draft.was_given("tokens") and not isclose(draft.given["tokens"], tokens, rel_tol=1e-9):
        problem = f"--tokens {format_count(draft.given['tokens'])} contradicts --data-size"
        hint = f"leave --tokens out: at {each:.3g} bytes a token the text comes to {format_count(tokens)}"
        raise UsageError("contradiction", problem, hint)
    draft.override("tokens", max(1.0, tokens), "derived")


def global_batch(scenario: Scenario, micro_batch: int) -> int:
    """The automatic global batch in sequences: micro x dp (x a full pipeline).

    At least 2^19 tokens in pretrain, and a group of answers a rank in grpo, as trl's defaults have it.
    """
    batch = micro_batch * scenario.dp * _filling(scenario, micro_batch)
    if scenario.task == "pretrain":
        wanted = PRETRAIN_BATCH_TOKENS / scenario.seq_len
        batch *= max(1, -int(-wanted // batch))
    return max(batch, (scenario.group_size or 1) * scenario.dp) if scenario.task == "grpo" else batch


def _filling(scenario: Scenario, micro_batch: int) -> int:
    """Micro-batches that keep a pipeline busy: four a stage; one where plain frameworks cut it into parts themselves.

    Source: torch.distributed.pipelining; torchtitan, pipeline_parallel_microbatch_size.
    """
    cuts = scenario.engine_record.training.style == "plain" and micro_batch >= scenario.pp
    return 1 if scenario.pp == 1 or cuts else 4 * scenario.pp


def settle_batches(draft: Draft, scenario: Scenario) -> None:
    """Settle `micro_batch` and `global_batch` of a training whose other settings are those of `scenario`.

    The automatic micro-batch is the largest power of two that surely fits, and 1 where none does: at most 8192 tokens,
    or more in a pre-training that gets faster by it.
    """
    if draft.was_given("micro_batch"):
        micro_batch = draft.settle("micro_batch", 1)
    else:
        micro_batch = fitting_batch(scenario, draft.given.get("global_batch") or 0)
        draft.override("micro_batch", micro_batch, "derived")
    group, whole = (scenario.group_size or 1), global_batch(scenario, micro_batch)
    batch = draft.settle("global_batch", -(-whole // group) * group, "derived")
    if batch % group:
        raise UsageError(
            "contradiction",
            f"--global-batch {batch} is no whole number of groups of {group} answers",
            f"use --global-batch {-(-batch // group) * group}, or another --group-size",
        )
    _consistent(draft, micro_batch, scenario.dp)
    step = batch * scenario.seq_len
    if scenario.tokens and scenario.tokens < step and draft.was_said("tokens"):
        text = f"--tokens {format_count(scenario.tokens)} is less than one step of {format_count(step)} tokens"
        draft.warn("few-tokens", f"{text}; M and B stand for millions and billions")


def roomiest_batch(scenario: Scenario, batch: int) -> int:
    """The micro-batch that would be tried first, were there memory without end, within a global `batch`; 0: any."""
    limit = max(1, MICRO_BATCH_TOKENS // (scenario.seq_len * scenario.sequences_an_example))
    if batch:
        limit = max(1, min(limit, batch // scenario.dp))
    return 1 << int(limit).bit_length() - 1


def largest_batch(scenario: Scenario, batch: int) -> int:
    """The micro-batch that would be taken, were there memory without end and were each larger one faster."""
    micro_batch = roomiest_batch(scenario, batch)
    while _may_double(scenario, micro_batch, batch or global_batch(scenario, micro_batch)):
        micro_batch *= 2
    return micro_batch


def _may_double(scenario: Scenario, micro_batch: int, whole: int) -> bool:
    """Whether a pre-training of so many sequences a step may take them in micro-batches of twice as many."""
    doubled = 2 * micro_batch
    return scenario.task == "pretrain" and whole >= doubled * scenario.dp * _filling(scenario, doubled)


@cached_across_batches
def fitting_batch(scenario: Scenario, batch: int) -> int:
    """The automatic micro-batch, within a global `batch` that was given; 0: none was.

    The largest whose high end fits; where none does, 1, which fits if any does.
    """
    usable, best, largest = usable_bytes(scenario), 1, roomiest_batch(scenario, batch)
    if rank_floor_bytes(scenario) > usable and own_memory(scenario) is None:
        return best  # spares the walk; whoever measured may have seen less than is counted

    def holds(micro_batch: int) -> bool:
        return peak_bytes(scenario.with_batch({"micro_batch": micro_batch}, {})).high <= usable

    if not holds(best):
        return best
    if best == largest or holds(largest):  # as on most devices
        return _faster_batch(scenario, largest, batch, usable)
    while holds(2 * best):
        best *= 2
    return best


def _faster_batch(scenario: Scenario, micro_batch: int, batch: int, usable: float) -> int:
    """Double a micro-batch for as long as a step of the same global batch gets faster by it, in fewer micro-steps."""
    fastest = 0.0
    while True:
        whole, doubled = batch or global_batch(scenario, micro_batch), 2 * micro_batch
        if not _may_double(scenario, micro_batch, whole):
            return micro_batch
        fastest = fastest or _speed(scenario, micro_batch, whole)
        speed = _speed(scenario, doubled, whole)
        if speed < WORTH_DOUBLING * fastest:
            return micro_batch
        if peak_bytes(scenario.with_batch({"micro_batch": doubled}, {})).high > usable:
            return micro_batch
        micro_batch, fastest = doubled, speed


def _speed(scenario: Scenario, micro_batch: int, batch: int) -> float:
    return layout_tokens_per_second(scenario.with_batch({"micro_batch": micro_batch, "global_batch": batch}, {}))


def _consistent(draft: Draft, micro_batch: int, dp: int) -> None:
    """Fit a global batch that the user gave to micro-batch and ranks, and say what changed.

    Raises:
        UsageError: it is less than the micro-batch that the user gave.
    """
    batch = draft.values["global_batch"]
    if draft.was_given("global_batch") and batch < micro_batch * dp:
        if draft.was_given("micro_batch") and batch < micro_batch:
            raise UsageError(
                "contradiction",
                f"--global-batch {batch} is less than one --micro-batch {micro_batch}",
                f"use --global-batch {micro_batch * dp} or more, or --micro-batch {max(1, batch // dp)} or less",
            )
        if not draft.was_given("micro_batch"):
            draft.override("micro_batch", max(1, min(micro_batch, batch // dp or 1, batch)), "derived")
            micro_batch = draft.values["micro_batch"]
        if batch < micro_batch * dp:
            draft.warn(
                "batch-below-ranks",
                f"--global-batch {batch} feeds only {max(1, batch // micro_batch)} of {dp} data-parallel ranks",
            )


COMPUTED = tuple((BY_NAME[name].flag, name, BY_NAME[name].maximum) for name in ("tokens", "global_batch", "context"))


def check_sensible(scenario: Scenario) -> None:
    """Refuse what was computed beyond what may be said.

    Raises:
        UsageError: a figure beyond its bound.
    """
    for flag, name, most in COMPUTED:
        value = getattr(scenario, name)
        if value is not None and value > most:
            problem = f"{flag} comes to {digits(value)}, above the largest that makes sense, {digits(most)}"
            raise UsageError("bad-quantity", problem, "ask for less")
