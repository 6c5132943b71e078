"""Run the command line in this process, with an estimate that is read from a file in place of the computed one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from llmfeas.catalog.store import catalog
from llmfeas.errors import UsageError

ESTIMATES = Path(__file__).parent.parent / "data" / "estimates"


def stored(name: str) -> dict[str, Any]:
    return json.loads((ESTIMATES / f"{name}.json").read_text(encoding="utf-8"))


INFEASIBLE = "gpt2-xl-pretrain-rtx-4070ti"
FEASIBLE = "gpt2-finetune-rtx-4090"
TIGHT = "mixtral-8x7b-inference-rtx-3090"
INPUTS = [{"name": name, "value": value, "unit": "", "origin": "model"} for name, value in (("a", 4.0), ("b", 0.5))]
TERM = {"quantity": "q", "text": "", "formula": "a * b", "inputs": INPUTS, "value": 2.0, "unit": "bytes", "share": 0.5}


class StoredEstimate:
    """Behaves like an Estimate as far as the command line looks at it."""

    def __init__(self, name: str, explain: bool) -> None:
        self._envelope = stored(name) | ({"explanation": [TERM]} if explain else {})
        verdict = self._envelope["result"]["verdict"]
        reasons = [SimpleNamespace(**reason) for reason in verdict["reasons"]]
        self.verdict = SimpleNamespace(status=verdict["status"], reasons=reasons)
        self.scenario = SimpleNamespace(
            model=SimpleNamespace(name="Some Model"), device=SimpleNamespace(name="Some Device")
        )

    def to_dict(self) -> dict[str, Any]:
        return self._envelope


def stored_answer(request: dict[str, object], *, explain: bool = False) -> StoredEstimate:
    """Stand in for the answer: `device` names the stored one."""
    from llmfeas.request import parsed

    device = str(parsed(request, catalog().tables.quantization)["device"])
    if device == "boom":
        raise ZeroDivisionError("a bug\x1b[31m")
    if device == "stop":
        raise KeyboardInterrupt
    for name in (INFEASIBLE, FEASIBLE, TIGHT):
        if name.endswith(device):
            return StoredEstimate(name, explain)
    raise UsageError("unknown-device", f"unknown device {device!r}", "Did you mean 'rtx-4090'?", ["rtx-4090"])


def stored_line(id: object, estimate: StoredEstimate) -> str:
    """Stand in for the line of an answer."""
    return json.dumps({"id": id, **estimate.to_dict()}) + "\n"


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def error(self) -> dict[str, Any]:
        """The error as a script reads it, after what was noted before."""
        return json.loads(self.err.splitlines()[-1])["error"]
