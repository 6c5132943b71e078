"""The shape of the JSON contract, said once: columns of CSV and JSON Schemas are read off it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from ..options import OPTIONS, TASKS
from ..record import dataclass
from ..scenario import ORIGINS

ENDS = ("low", "expected", "high")
STATUSES = ("feasible", "tight", "infeasible", "unsupported")


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value: its JSON type, whether it may be null, and if it is one of a few words, which."""

    type: str
    null: bool = False
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Many:
    """A list of values of one shape."""

    item: Shape


@dataclass(frozen=True, slots=True)
class Maybe:
    """An object of which not every key occurs, or that may be null as a whole."""

    keys: Mapping[str, Shape]
    null: bool = False


Shape: TypeAlias = "Leaf | Many | Maybe | Mapping[str, Shape]"

NUMBER, NUMBER_OR_NULL = Leaf("number"), Leaf("number", null=True)
TEXT, TEXT_OR_NULL = Leaf("string"), Leaf("string", null=True)
TRUTH = Leaf("boolean")
ANY = Leaf("any", null=True)
RANGE, RANGE_OR_NULL = Leaf("range"), Leaf("range", null=True)
NOTE: Shape = {"code": TEXT, "message": TEXT}


def _words(*words: str) -> Leaf:
    return Leaf("string", words=words)


def _same(leaf: Leaf, keys: str) -> dict[str, Shape]:
    return dict.fromkeys(keys.split(), leaf)


COMPONENTS = (
    "weights_bytes gradients_bytes optimizer_bytes activations_bytes logits_bytes kv_cache_bytes workspace_bytes "
    "runtime_bytes"
)
BOUNDS = ("compute", "bandwidth", "host", "communication", "bubble")

RESULT: Mapping[str, Shape] = {
    "parameters": _same(
        NUMBER, "total active active_min active_max active_without_input_embedding embedding trainable"
    ),
    "flops": _same(NUMBER_OR_NULL, "rule_of_thumb model hardware forward_per_token"),
    "memory": {
        "components": _same(NUMBER, COMPONENTS),
        "peak_bytes": RANGE,
        "peak_moment": TEXT,
        "runner_up_moment": TEXT_OR_NULL,
        **_same(
            NUMBER_OR_NULL,
            "kv_cache_bytes weights_file_bytes host_bytes capacity_bytes usable_bytes headroom_bytes",
        ),
    },
    "time": Maybe(
        {
            **_same(RANGE_OR_NULL, "step_seconds tokens_per_second mfu total_seconds"),
            "bound_by": TEXT_OR_NULL,
            **_same(RANGE_OR_NULL, "prefill_tokens_per_second decode_tokens_per_second tokens_per_second_per_sequence"),
            "at_cached_tokens": NUMBER_OR_NULL,
            "time_to_first_token_seconds": RANGE_OR_NULL,
            **_same(TEXT_OR_NULL, "prefill_bound_by decode_bound_by"),
        }
    ),
    "cost": {
        **_same(RANGE_OR_NULL, "usd energy_kwh"),
        **_same(NUMBER_OR_NULL, "usd_per_million_tokens energy_kwh_per_million_tokens"),
        "price": Maybe(
            {"usd_per_device_hour": NUMBER, "provider": TEXT_OR_NULL, "as_of": TEXT_OR_NULL},
            null=True,
        ),
        "purchase": Maybe(
            {
                **_same(NUMBER, "usd_per_device lifetime_seconds usd_per_device_hour"),
                **_same(NUMBER_OR_NULL, "electricity_usd_per_device_hour rent_usd_per_device_hour"),
                **_same(NUMBER_OR_NULL, "break_even_hours break_even_share"),
            },
            null=True,
        ),
    },
    "verdict": {
        "status": _words(*STATUSES),
        "memory": _words("fits", "tight", "exceeds"),
        "time": _words("ok", "over_deadline", "impractical", "not_asked"),
        "budget": _words("ok", "over_budget", "not_asked"),
        "software": _words("supported", "limited", "unsupported"),
        "reasons": Many(NOTE),
    },
    "ladder": Many(
        Maybe(
            {
                "label": TEXT,
                "task": _words(*TASKS),
                **_same(TEXT_OR_NULL, "quant precision"),
                "status": _words(*STATUSES),
                "peak_bytes": NUMBER_OR_NULL,
            }
        )
    ),
    "remedies": Many(
        Maybe(
            {
                "changes": Maybe({}),
                "status": _words(*STATUSES),
                "peak_bytes": NUMBER_OR_NULL,
                "total_seconds": NUMBER_OR_NULL,
                "decode_tokens_per_second": NUMBER_OR_NULL,
                "message": TEXT,
            }
        )
    ),
}

INPUTS: Mapping[str, Shape] = {option.name: {"value": ANY, "origin": _words(*ORIGINS)} for option in OPTIONS}


def envelope(schema: str, inputs: Shape, result: Shape) -> dict[str, Shape]:
    """Put a command's inputs and result into the envelope that all commands share."""
    return {
        "schema": _words(f"llmfeas.{schema}/1"),
        "llmfeas": TEXT,
        "catalog": TEXT,
        "inputs": inputs,
        "result": result,
        "warnings": Many(NOTE),
    }


ESTIMATE = envelope("estimate", INPUTS, RESULT)
ERROR: Mapping[str, Shape] = {"error": {"code": TEXT, "message": TEXT, "hint": TEXT, "candidates": Many(TEXT)}}


def paths(shape: Shape, path: str = "") -> Iterator[str]:
    """Give the dotted path of every leaf; a range has three, a list is one."""
    if isinstance(shape, Leaf):
        yield from (f"{path}.{end}" for end in ENDS) if shape.type == "range" else (path,)
    elif isinstance(shape, Many):
        yield path
    else:
        keys = shape.keys if isinstance(shape, Maybe) else shape
        for key, inner in keys.items():
            yield from paths(inner, f"{path}.{key}" if path else key)
