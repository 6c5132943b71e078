"""Google TPUs by the environment that their virtual machines set."""

from __future__ import annotations

import re
from collections.abc import Mapping

from .probe import Found, words_of_machines


def tpu_devices(environment: Mapping[str, str]) -> list[Found]:
    """Read TPU_ACCELERATOR_TYPE (`v5litepod-8`, `v4-8`): the whole slice, on however many hosts it is."""
    kind = environment.get("TPU_ACCELERATOR_TYPE") or environment.get("ACCELERATOR_TYPE") or ""
    match = re.fullmatch(r"(tpu7x|v\d+[a-z]*)-(\d{1,6})", kind.strip().lower())
    known = words_of_machines()["tpu"].get(match[1]) if match else None
    if match is None or known is None:
        return []
    count = max(1, int(match[2]) // known["counts"])
    return [Found(backend="tpu", vendor="google", name=known["device"], count=count, source="TPU_ACCELERATOR_TYPE")]
