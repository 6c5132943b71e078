"""Requests: lengths of prompts and answers, a context with room for both, how they come and what they may wait."""

from __future__ import annotations

from ..catalog.architecture import Model
from ..catalog.engine import Engine
from ..catalog.parts import SourceEncoder
from ..catalog.serving_pool import step_value
from ..errors import UsageError
from ..options import flag_of
from ..record import replace
from ..scenario import Origin, Scenario
from ..units import GIB
from ..workload.serving import CHAT_PROMPT_TOKENS, USUAL_CONTEXT, replicas
from .draft import Draft
from .engine import SEVERAL
from .lengths import within_positions

CHAT_ANSWER_TOKENS = 512
"""With no prompt before it the cache holds half of it on average: the short chat that speeds are calibrated for."""
READ_TOKENS = 512
"""Of a text that an encoder reads."""
TOGETHER_TOKENS = 16_384
"""Of texts that are read at once where nobody says how many."""


def _usual_context(draft: Draft, engine: Engine) -> tuple[int, Origin]:
    """The context that an engine gives where nobody says, and where that is from: its own by the devices' memory."""
    steps, device = engine.serving.contexts, draft.values["device"]
    if not steps:
        return USUAL_CONTEXT, "default"
    seen = 0.0 if device.backend == "cpu" else draft.values["memory_bytes"] * draft.values["num_devices"]
    if draft.values["wired_limit_bytes"] is not None:
        seen = draft.values["wired_limit_bytes"] * draft.values["num_devices"]
    return step_value(steps, seen / GIB), "backend"


def settle_lengths(draft: Draft, model: Model, engine: Engine) -> None:
    """Settle `prompt`, `output` and `context`, the room for both.

    A value means the same whoever says it: a prompt makes a request, which fills its context; without one an answer is
    that of a short chat, however much room there is.
    """
    draft.settle("cache_held", "whole", "derived")
    if not model.architecture.writes:
        _settle_reading(draft, model)
        return
    if model.architecture.source is not None:
        _settle_translating(draft, model, model.architecture.source)
        return
    prompt = _settle_prompt(draft, model, shares=engine.serving.memory.pool is not None)
    output = _settle_output(draft, prompt, model)
    context = _settle_room(draft, prompt, output, model, _usual_context(draft, engine))
    lengths_said = draft.was_given("prompt") and draft.was_given("output")
    if lengths_said or (prompt and context <= prompt + output):  # more room than they take is meant to be filled
        draft.settle("cache_held", "written", "derived")
    if prompt < context < prompt + output and draft.was_given("output") and draft.was_given("context"):
        wanted = f"--prompt {prompt} and --output-tokens {output}"
        draft.warn("answer-cut", f"{wanted} are more than --context {context}: answers are cut there")
    too_long = prompt > model.context and not draft.was_given("context")
    within_positions(draft, model, prompt if too_long else context, "--prompt" if too_long else "--context")


def _settle_reading(draft: Draft, model: Model) -> None:
    """Settle the lengths of an encoder: texts of `prompt` tokens, to which nothing is written.

    Raises:
        UsageError: a setting about written text.
    """
    for name in ("output", "rate", "requests", "ttft", "tpot", "draft"):
        if draft.was_given(name):
            problem = f"{model.name} reads texts and writes none: {flag_of(name)} has no meaning"
            raise UsageError("writes-nothing", problem, "give the length of a text with --prompt")
    if draft.was_given("tokens"):
        draft.settle("tokens", None)
    usual = draft.given.get("context") or min(model.context, READ_TOKENS)
    prompt = draft.settle("prompt", usual, "derived")
    draft.override("context", prompt, "derived")
    draft.override("output", None, "derived")
    within_positions(draft, model, prompt, "--prompt" if draft.was_given("prompt") else "--context")


def texts_at_once(scenario: Scenario) -> int:
    """How many texts an engine reads at once where nobody says, on each copy; one where it is given tokens."""
    serving = scenario.engine_record.serving
    if scenario.model.architecture.writes:
        return 1
    each = max(1, min(serving.speed.texts, TOGETHER_TOKENS // max(1, scenario.prompt)))
    return each * scenario.num_devices if serving.split == "copies" and serving.speed.texts else each


def _settle_prompt(draft: Draft, model: Model, *, shares: bool) -> int:
    """Settle `prompt`, which holds the tokens of its images: none where the question is not about requests.

    Raises:
        UsageError: a prompt that has no room for its images, or is longer than the context.
    """
    seen, context = _image_tokens(draft, model), draft.given.get("context")
    room = context or model.context
    left = room - (draft.given.get("output") or room // 2)
    usual = CHAT_PROMPT_TOKENS if left < 1 and context is None else min(CHAT_PROMPT_TOKENS, max(1, left))
    prompt: int = draft.settle("prompt", seen + usual if _is_of_requests(draft, shares=shares) else 0)
    if prompt < seen:
        problem = f"--prompt {prompt} has no room for the {seen} tokens of --images {draft.values['images']}"
        raise UsageError("contradiction", problem, f"use --prompt {seen} or more")
    if context is not None and prompt > context:
        problem = f"--prompt {prompt} is longer than --context {context}, which holds prompt and answer"
        answer = draft.given.get("output") or min(CHAT_ANSWER_TOKENS, max(1, model.context - prompt))
        raise UsageError("contradiction", problem, f"use --context {prompt + answer}, for an answer of {answer} tokens")
    return prompt


def _image_tokens(draft: Draft, model: Model) -> int:
    """Tokens of the images in a prompt.

    Raises:
        UsageError: a model that reads no images, as far as anybody wrote down.
    """
    images: int = draft.settle("images", 0)
    if not images:
        return 0
    if not model.image_tokens:
        why = (
            "is not known to read images"
            if not model.architecture.tower_parameters
            else "makes of an image is not known"
        )
        problem = f"{model.name} {why}" if why.startswith("is") else f"how many tokens {model.name} {why}"
        raise UsageError("no-images", problem, "give their tokens in --prompt")
    each = f"an image of {model.image_size} makes {model.image_tokens} tokens, which --prompt holds"
    timed = "is timed by its FLOPs: nobody measured it" if model.image_encoder else "is not in the time"
    unread = f"; the work of the encoder that reads it {timed}"
    draft.warn("images", f"{each}{unread}")
    return images * model.image_tokens


def _settle_translating(draft: Draft, model: Model, source: SourceEncoder) -> None:
    """Settle the lengths of an encoder-decoder: `prompt` is what the encoder reads, `context` holds the answer alone.

    Raises:
        UsageError: a length of the input where every input is made equally long, or beyond learned positions.
    """
    prompt = draft.settle("prompt", source.tokens or min(model.context, READ_TOKENS), "model")
    if source.tokens and prompt != source.tokens:
        raise UsageError(
            "contradiction",
            f"--prompt {prompt} contradicts {model.name}, which makes {source.tokens} positions of any input",
            "leave --prompt out",
        )
    if source.learned_positions and not source.tokens:
        within_positions(draft, model, prompt, "--prompt", source.learned_positions)
    context = draft.given.get("context")
    usual = min(model.context, context or CHAT_ANSWER_TOKENS)
    output = draft.settle("output", usual, "model" if usual == model.context else "default")
    whose: Origin = "derived" if context is None else draft.origin_of_given("context")
    draft.override("context", max(output, context or 0), whose)
    within_positions(draft, model, draft.values["context"], "--context")


def settle_source(draft: Draft, model: Model) -> Model:
    """The model behind the text that its encoder reads: the prompt, or in training as long as the sequence."""
    length = draft.values["prompt" if draft.values["task"] == "inference" else "seq_len"]
    model = replace(model, architecture=model.architecture.reading(length))
    draft.override("model", model, "given")
    return model


def _is_of_requests(draft: Draft, *, shares: bool) -> bool:
    """Whether the question is about requests, whose prompts have a length, be it said or not: so are several at once
    that share a pool.
    """
    several = shares and (draft.given.get("concurrency") or 1) >= SEVERAL
    asked = any(draft.was_given(name) for name in ("rate", "requests", "ttft", "tpot"))
    return several or asked or draft.values["images"] > 0


def _settle_output(draft: Draft, prompt: int, model: Model) -> int:
    """Settle `output`: what a context that is said leaves beside a prompt that is, else a short answer within it."""
    context, room = draft.given.get("context"), (draft.given.get("context") or model.context) - prompt
    fills = context is not None and prompt > 0 and draft.was_given("prompt")
    room = CHAT_ANSWER_TOKENS if room < 0 else max(1, room)
    usual = room if fills else min(CHAT_ANSWER_TOKENS, room)
    output: int = draft.settle("output", usual, "derived" if fills else "model" if room == usual else "default")
    return output


def _settle_room(draft: Draft, prompt: int, output: int, model: Model, usual: tuple[int, Origin]) -> int:
    """Settle `context`: prompt and answer of a request, where there is a prompt; else what engines have room for."""
    tokens, whose = usual
    if prompt:
        alone = prompt == model.context and not draft.was_given("output")
        tokens, whose = prompt if alone else prompt + output, "derived"
    elif model.context < tokens:
        tokens, whose = model.context, "model"
    if tokens < output:
        tokens, whose = output, "derived"
    context: int = draft.settle("context", tokens, whose)
    return context


TARGETS = {"ttft": "ttft_seconds", "tpot": "tpot_seconds"}


def settle_load(draft: Draft) -> None:
    """Settle `rate`, `requests`, `length_spread`, `prefix_hit` and the targets."""
    for name in ("rate", "requests"):
        draft.settle(name, None)
    for name in ("length_spread", "prefix_hit"):
        draft.settle(name, 0.0)
    for name, field in TARGETS.items():
        draft.settle(name, field=field)


def widen_server(scenario: Scenario, draft: Draft) -> None:
    """Have a server run as many requests at once as are asked for, where nobody says how many it may.

    Of a number of requests those wait for which it has no place, as in a benchmark of a server with its own defaults.
    """
    if scenario.requests is not None:
        return
    asked, tokens = -(-draft.values["concurrency"] // replicas(scenario)), scenario.max_num_batched_tokens or 0
    if scenario.was_given("max_num_batched_tokens"):
        asked = min(asked, tokens)
    if scenario.max_num_seqs is not None and not scenario.was_given("max_num_seqs") and asked > scenario.max_num_seqs:
        draft.override("max_num_seqs", asked, "derived")
        if asked > tokens:  # a pass has a token for each
            draft.override("max_num_batched_tokens", asked, "derived")


def settle_uneven(scenario: Scenario, draft: Draft) -> None:
    """Where users ask one request after the other and nobody says how long they are, no two are alike.

    Else all answers would end together and all prompts come together, round after round, as in no server.
    """
    rounds = scenario.requests is not None and not scenario.rate and scenario.requests > draft.values["concurrency"]
    if rounds and not scenario.was_given("length_spread"):
        draft.override("length_spread", scenario.tables.efficiency.value("load.spread"), "derived")
