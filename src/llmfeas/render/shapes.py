"""The shapes of what the other commands write: each the result in the envelope that all commands share."""

from __future__ import annotations

from collections.abc import Mapping

from .shape import (
    ANY,
    INPUTS,
    NUMBER,
    NUMBER_OR_NULL,
    RANGE_OR_NULL,
    RESULT,
    STATUSES,
    TEXT,
    TEXT_OR_NULL,
    TRUTH,
    Leaf,
    Many,
    Maybe,
    Shape,
    envelope,
)

VERDICTS = ("holds", "holds under conditions", "does not hold")
STATUS = Leaf("string", words=STATUSES)
GIVEN = Maybe({})

TERM: Shape = {
    "quantity": TEXT,
    "formula": TEXT,
    "inputs": Many({"name": TEXT, "value": ANY, "unit": TEXT, "origin": TEXT}),
    "value": NUMBER,
    "unit": TEXT,
    "share": NUMBER_OR_NULL,
}
"""One line of a derivation, which `--explain` adds."""

COMPARISON: Shape = {
    "rank": NUMBER,
    "model": TEXT,
    "device": TEXT,
    "num_devices": NUMBER,
    "backend": TEXT,
    "devices_needed": NUMBER_OR_NULL,
    "layout_needed": Maybe(dict.fromkeys(("dp", "tp", "pp", "ep", "cp", "zero"), NUMBER), null=True),
    "relative_speed": RANGE_OR_NULL,
    **{key: shape for key, shape in RESULT.items() if key not in ("ladder", "remedies")},
}
"""A row of a comparison."""

COMPARE: Shape = {"rows": Many(COMPARISON)}

PLAN: Shape = {
    "asked": {key: RESULT[key] for key in ("memory", "time", "cost", "verdict")},
    "plans": Many(
        {
            "changes": GIVEN,
            "status": STATUS,
            "peak_bytes": NUMBER_OR_NULL,
            **dict.fromkeys(("total_seconds", "decode_tokens_per_second"), NUMBER_OR_NULL),
            "message": TEXT,
            **dict.fromkeys(("usd", "usd_per_million_tokens"), NUMBER_OR_NULL),
            "estimate": INPUTS,
        }
    ),
    "nearest": Maybe(
        {
            "changes": GIVEN,
            "peak_bytes": NUMBER,
            "usable_bytes": NUMBER,
            "missing_bytes": NUMBER,
            **dict.fromkeys(("missing_seconds", "missing_usd"), NUMBER_OR_NULL),
            "emptied_by": Many(TEXT),
            "reasons": Many(TEXT),
        },
        null=True,
    ),
}

SOLVE: Shape = {
    "question": TEXT,
    "answer": GIVEN,
    "at": Maybe(envelope("estimate", INPUTS, RESULT), null=True),
    "beyond": Maybe({}, null=True),
    "notes": Many(TEXT),
}

LAUNCH: Shape = {
    "engine": TEXT,
    "files": Many({"name": TEXT, "text": TEXT}),
    "command": TEXT,
    "notes": Many(TEXT),
}

CHECK: Shape = {
    "expectations": Many(
        {
            "file": TEXT,
            "line": NUMBER,
            "column": NUMBER,
            "id": TEXT,
            "expectation": TEXT,
            "name": TEXT,
            "expected": TEXT,
            "at": Leaf("string", words=("expected", "worst")),
            "unit": TEXT_OR_NULL,
            "found": ANY,
            "margin": NUMBER_OR_NULL,
            "ok": TRUTH,
        }
    ),
    "passed": NUMBER,
    "failed": NUMBER,
}

CLAIMS: Shape = {
    "claims": Many(
        {
            "id": TEXT,
            "verdict": Leaf("string", words=VERDICTS),
            "says": TEXT,
            "found": TEXT,
            "because": TEXT,
            "holds_for": Many(TEXT),
            "fails_for": Many(TEXT),
            "right": TEXT_OR_NULL,
            "sources": Many(TEXT),
            "documents": Many(TEXT),
        }
    ),
    "documents": Many(
        {
            "id": TEXT,
            "title": TEXT,
            "about": TEXT,
            "editions": Many({"language": TEXT, "title": TEXT}),
            "links": Many(TEXT),
        }
    ),
}

DIFF: Shape = {
    "changes": Many(
        {
            "kind": Leaf("string", words=("catalog", "program", "input", "origin", "figure", "warning")),
            "path": TEXT,
            "before": ANY,
            "after": ANY,
            "relative": NUMBER_OR_NULL,
        }
    )
}

BACKTEST: Shape = {
    "kinds": Many(
        {
            "kind": TEXT,
            "backend": TEXT,
            **dict.fromkeys(("rows", "groups", "sources"), NUMBER),
            **dict.fromkeys(("median_error", "p90_error", "bias", "inside", "width"), NUMBER_OR_NULL),
        }
    )
}

DETECT: Shape = Maybe(
    {
        **dict.fromkeys(("id", "name", "backend", "vendor"), TEXT),
        **dict.fromkeys(("kind", "generation", "memory_type"), TEXT_OR_NULL),
        **dict.fromkeys(("memory_gib", "bandwidth_gb_per_s"), NUMBER_OR_NULL),
        "tflop_per_s": GIVEN,
        "matched": TEXT_OR_NULL,
        "host_memory_bytes": NUMBER_OR_NULL,
        "others": Many(GIVEN),
    }
)
"""A device's entry, with more of its fields than are named here; null where neither catalog nor machine tells."""

OVERLAYS: Shape = Many(TEXT)

OUTPUTS: Mapping[str, Shape] = {
    "compare": envelope("compare", GIVEN, COMPARE),
    "plan": envelope("plan", INPUTS, PLAN),
    "solve": envelope("solve", GIVEN, SOLVE),
    "launch": envelope("launch", INPUTS, LAUNCH),
    "check.result": envelope("check", GIVEN, CHECK),
    "claims": envelope("claims", GIVEN, CLAIMS),
    "diff": envelope("diff", GIVEN, DIFF),
    "backtest": envelope("backtest", GIVEN, BACKTEST),
    "detect": envelope("detect", GIVEN, DETECT),
    "catalog.path": envelope(
        "catalog.path",
        GIVEN,
        {"catalog": TEXT, "overlays": OVERLAYS, "user": TEXT, "project": TEXT_OR_NULL, "variable": TEXT},
    ),
    "catalog.check": envelope(
        "catalog.check",
        GIVEN,
        {"overlays": OVERLAYS, "problems": NUMBER, "doubts": Many({"entry": TEXT, "field": TEXT, "message": TEXT})},
    ),
}
"""What a command writes with --json, by the name of its schema."""
