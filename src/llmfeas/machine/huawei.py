"""Huawei's Ascend devices by npu-smi.

`npu-smi info` prints a table with two rows a chip: number and name, then the bus and `used / total` of its memory in
MiB. Sources: the tables in docs.vllm.ai/projects/ascend and in the reports of vllm-project/vllm-ascend.
"""

from __future__ import annotations

import re

from ..text import printable
from ..units import MIB
from .probe import Found, Trouble, grouped, output

_NAMED = re.compile(r"^\|\s*\d{1,4}\s+(?P<name>(?:Ascend\s?)?\d{3}[A-Z0-9_]{0,8})\s*\|\s*\w+\s*\|")
_MEMORY = re.compile(r"(?P<total>\d{2,7})\s*\|\s*$")


def ascend_devices(trouble: Trouble | None = None, visible: str | None = None) -> list[Found]:
    """Ask npu-smi; empty where there is none. `visible` is ASCEND_RT_VISIBLE_DEVICES; None: all."""
    return parse_npu_smi(output(["npu-smi", "info"], trouble=trouble), visible)


def parse_npu_smi(text: str, visible: str | None = None) -> list[Found]:
    """Read the table of `npu-smi info`, up to that of processes."""
    devices: list[Found] = []
    name = ""
    for line in text.split("Process id")[0].splitlines():
        named = _NAMED.match(line)
        if named is not None:
            name = "Ascend " + named["name"].removeprefix("Ascend").strip()
            continue
        memory = _MEMORY.search(line)
        if name and memory is not None and re.match(r"\|\s*\d", line):
            size = int(memory["total"]) * MIB
            devices.append(
                Found(backend="npu", vendor="huawei", name=printable(name), memory_bytes=size or None, source="npu-smi")
            )
    if visible is not None:
        named_ones = {each.strip() for each in visible.split(",")}
        devices = [device for place, device in enumerate(devices) if str(place) in named_ones]
    return grouped(devices)
