"""Google TPUs by the environment that their virtual machines set."""

from __future__ import annotations

import re
from collections.abc import Mapping

from .probe import Found

KINDS = {
    "v2": "tpu-v2",
    "v3": "tpu-v3",
    "v4": "tpu-v4",
    "v5litepod": "tpu-v5e",
    "v5e": "tpu-v5e",
    "v5lite": "tpu-v5e",
    "v5p": "tpu-v5p",
    "v6e": "tpu-v6e",
    "tpu7x": "tpu-v7x",
    "v7x": "tpu-v7x",
}
"""Accelerator type as Google Cloud spells it -> catalog id. Source: cloud.google.com/tpu/docs."""
CORES_COUNTED = frozenset({"v2", "v3", "v4", "v5p", "tpu7x", "v7x"})
"""Types whose number counts cores, two a chip."""
CORE_IS_A_DEVICE = frozenset({"v2", "v3"})


def tpu_devices(environment: Mapping[str, str]) -> list[Found]:
    """Read TPU_ACCELERATOR_TYPE (`v5litepod-8`, `v4-8`): the whole slice, on however many hosts it is."""
    kind = environment.get("TPU_ACCELERATOR_TYPE") or environment.get("ACCELERATOR_TYPE") or ""
    match = re.fullmatch(r"(tpu7x|v\d+[a-z]*)-(\d{1,6})", kind.strip().lower())
    if match is None or match[1] not in KINDS:
        return []
    devices = int(match[2])
    if match[1] in CORES_COUNTED and match[1] not in CORE_IS_A_DEVICE:
        devices = max(1, devices // 2)
    return [Found(backend="tpu", vendor="google", name=KINDS[match[1]], count=devices, source="TPU_ACCELERATOR_TYPE")]
