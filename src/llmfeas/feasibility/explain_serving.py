"""The derivation of inference speed: the parts of a decoding step and of a prompt token, as `timing` computes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..scenario import Scenario
from ..timing.decode import cached_tokens, decode_parts, sequences_in_pass, sequences_per_replica
from ..timing.host import parts_with_shares
from ..timing.inference import InferenceTime, busy_peers, reader_of
from ..timing.prefill import prefill_parts, prompt_tokens
from ..workload.serving import peers, readers, writers
from .result import ServedLoad, Term, TermInput
from .terms import Texts, noted, number, part_terms, setting, term

ROUNDING = 1e-12
"""What is a smaller share of the whole is no part of it, but what differences of floats leave."""

DECODE_TEXTS: Texts = {
    "draft": "tokens drafted, which the step then checks",
    "weights": "the weights of a step, read once",
    "cache": {
        "attention_flop": "all heads on the latents of what is cached, on each device",
        "": "keys and values of what is cached, read once by each device that holds them",
    },
    "compute": "work and unpacking that reading does not hide",
    "fixed": {
        "busy_seconds": "launches and small operators, as far as the device waits for them",
        "": "launches and small operators, whatever the size",
    },
    "link": "sums over the devices in each block, and ways to experts that copies share",
    "host_experts": "experts that stay in main memory, which the processor computes",
    "host_layers": {
        "sending": "layers that stay in main memory and are sent to the device in each step",
        "": "layers that the processor computes, as fast as it reads them",
    },
    "offload": "weights that come from main memory in each step",
}
PREFILL_TEXTS: Texts = {
    "matrix": {"tokens": "matrix products of a pass", "": "matrix products of a token"},
    "attention": {
        "flash_flop": "scores and values of a pass, in a fused kernel",
        "tokens": "scores and values of a pass, operator by operator",
        "": "scores and values over the prompt",
    },
    "images": "the encoder that reads the images",
    "weights": "weights read once a batch, as far as work does not hide it",
    "offload": "weights that come from main memory",
    "streaming": {
        "written_bytes": "what is written between the products, and read",
        "held_width": "norms, residuals, activations and what goes to experts, of a token, in part whole on each rank",
        "": "norms, residuals and activations of a token",
    },
    "link": "sums over the devices in each block, and ways to experts that copies share",
    "fixed": {
        "host_seconds": "launches, as far as the device waits for them, and what a batch takes beside its pass",
        "launch_seconds": "starting a pass over prompts, as far as the device has to wait for it",
        "": "launches and small operators, once a batch",
    },
}


def serving_terms(scenario: Scenario, serving: InferenceTime) -> Iterator[Term]:
    """Derive the speed of decoding, of the prompt, and the time to the first token."""
    step, token = sum(serving.decode_parts.values()), sum(serving.prefill_parts.values())
    if serving.decode_parts:  # encoders do not write
        notes, copies = noted(scenario), busy_peers(scenario, writers)
        made = decode_parts(scenario, cached_tokens(scenario), sequences_in_pass(scenario), copies, notes)
        texts = _on_unequal(scenario, DECODE_TEXTS)
        felt = _felt(serving.decode_parts)
        yield from part_terms("time.decode", notes, made, felt, texts)
        yield _whole("time.decode_seconds", "one step of all sequences", felt, step)
    reader = reader_of(scenario)
    notes, sequences = noted(reader), sequences_per_replica(scenario)
    busy = busy_peers(scenario, readers) / peers(scenario)
    made, felt = prefill_parts(reader, prompt_tokens(scenario), sequences, busy, notes), _felt(serving.prefill_parts)
    yield from part_terms("time.prefill", notes, made, felt, _on_unequal(scenario, PREFILL_TEXTS))
    yield _whole("time.prefill_seconds", "one token of the prompt", felt, token)
    if serving.decode_parts:
        yield from _decode_speeds(scenario, serving, step)
    yield _prefill_speed(scenario, serving, token)
    if scenario.prompt:
        yield _first_token(scenario, serving, step)


def _felt(parts: Mapping[str, float]) -> dict[str, float]:
    whole = sum(parts.values())
    return {name: seconds for name, seconds in parts.items() if seconds > ROUNDING * whole}


def _whole(quantity: str, text: str, felt: Mapping[str, float], seconds: float) -> Term:
    inputs = [number(name, each, "s") for name, each in felt.items()]
    return term(quantity, text, " + ".join(felt), inputs, seconds, "s")


def _on_unequal(scenario: Scenario, texts: Texts) -> Texts:
    """The words for parts; on unequal devices each is what each would take for all layers, by its share of them."""
    names = ", ".join(part.device.name for part, _ in parts_with_shares(scenario))
    return dict.fromkeys(texts, f"one device after the other, each for its share ({names})") if names else texts


def _measured(ratio: float) -> TermInput:
    """What the user's own measurements say of the computed speed; 1 where there are none."""
    return number("measured", ratio, "", "own measurements" if ratio != 1 else "default")


def _decode_speeds(scenario: Scenario, serving: InferenceTime, step: float) -> Iterator[Term]:
    sequences = sequences_per_replica(scenario)
    inputs = [
        _measured(serving.tokens_per_second_per_sequence.expected * step / scenario.tokens_a_step),
        number("replicas", writers(scenario)),
        number("sequences", sequences),
        number("made", scenario.tokens_a_step, "tokens a step"),
        number("step_seconds", step, "s"),
    ]
    text = f"all sequences together, at {cached_tokens(scenario):g} cached tokens; range of {serving.regime} runs"
    formula = "measured * replicas * sequences * made / step_seconds"
    value = serving.decode_tokens_per_second.expected
    yield term("time.decode_tokens_per_second", text, formula, inputs, value, "tokens/s")


def load_terms(load: ServedLoad) -> Iterator[Term]:
    """Derive what a server writes under its load; how many requests it finishes is found by its scheduler's steps."""
    finished, written = load.requests_per_second.expected, load.output_tokens_per_second.expected
    inputs = (number("finished", finished, "requests/s"), number("answer", written / finished, "tokens"))
    yield term(
        "load.output_tokens_per_second", "what the requests get", "finished * answer", inputs, written, "tokens/s"
    )


def _prefill_speed(scenario: Scenario, serving: InferenceTime, token: float) -> Term:
    value = serving.prefill_tokens_per_second.expected
    inputs = (
        _measured(value * token / readers(scenario)),
        number("replicas", readers(scenario)),
        number("token_seconds", token, "s"),
    )
    text = f"all prompts together; range of {serving.prefill_regime} runs"
    formula = "measured * replicas / token_seconds"
    return term("time.prefill_tokens_per_second", text, formula, inputs, value, "tokens/s")


def _first_token(scenario: Scenario, serving: InferenceTime, step: float) -> Term:
    copies = peers(scenario)
    one = sequences_per_replica(scenario) == copies == 1
    alone = serving.prefill_parts
    if not one:
        alone = prefill_parts(reader_of(scenario), prompt_tokens(scenario), 1.0, 1 / copies)
    read = serving.prefill_tokens_per_second.expected * sum(serving.prefill_parts.values()) / readers(scenario)
    inputs = [
        setting(scenario, "prompt", scenario.prompt, "tokens"),
        number("token_seconds", sum(alone.values()), "s"),
        number("measured_prompt", read),
    ]
    formula, text = "prompt * token_seconds / measured_prompt", "the prompt of one request alone"
    if step:
        measured = serving.tokens_per_second_per_sequence.expected * step / scenario.tokens_a_step
        inputs += [number("step_seconds", step, "s"), number("measured_step", measured)]
        formula, text = f"{formula} + step_seconds / measured_step", f"{text}, and one step"
    value = serving.time_to_first_token_seconds.expected
    return term("time.time_to_first_token_seconds", text, formula, inputs, value, "s")
