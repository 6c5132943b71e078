"""Devices by the names that programs print when they start, and the most memory that nvidia-smi saw in use."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ...units import MIB
from .parser import NUMBER, LogParser, number

NAMES = (
    re.compile(r"^\s*Device \d+: (.{2,80}?), (?:compute capability|gfx)"),
    re.compile(r"using device \w+ \((.{2,80}?)\)"),
    re.compile(r"ggml_metal_(?:device_)?init: (?:picking default device|GPU name):\s+(.{2,60})$"),
    re.compile(r"^\|\s+\d+\s+((?:NVIDIA|Tesla|Quadro|GeForce) .{2,60}?)\s+(?:On|Off)\s*\|"),
    re.compile(r"^GPU \d+: (.{2,80}?) \(UUID"),
)
USED = re.compile(rf"\|\s*{NUMBER}MiB\s*/\s*{NUMBER}MiB\s*\|")
FIELDS = re.compile(r"([a-z_.]+)(?: \[\w+\])?(?:, |$)")


class DeviceLog(LogParser):
    """Reads banners, the table of nvidia-smi, and its `--query-gpu=...,memory.used --format=csv`."""

    marks = ("Device ", "using device", "ggml_metal", "MiB", "memory.used", "UUID", "| ")

    def __init__(self) -> None:
        self.device = ""
        self.peak_mib = 0.0
        self.fields: list[str] = []
        """Columns of a CSV whose header was seen."""

    def take(self, text: str, line: int) -> None:
        """Read a line."""
        for pattern in NAMES:
            found = pattern.search(text)
            if found is not None:
                self.device = self.device or found[1].strip()
        used = USED.search(text)
        if used is not None:
            self.peak_mib = max(self.peak_mib, number(used[1]))
        if text.lstrip().startswith(("name,", "index,", "timestamp,", "memory.used")):
            self.fields = FIELDS.findall(text.strip())
        elif self.fields and " MiB" in text:
            self._row(dict(zip(self.fields, (cell.strip() for cell in text.split(", ")), strict=False)))

    def _row(self, cells: dict[str, str]) -> None:
        found = re.fullmatch(rf"{NUMBER} MiB", cells.get("memory.used", ""))
        if found is not None:
            self.peak_mib = max(self.peak_mib, number(found[1]))
            self.device = self.device or cells.get("name", "")[:80]

    def about(self) -> Mapping[str, str | int | float]:
        """The device, and the most that was in use on one."""
        said: dict[str, str | int | float] = {"device": self.device} if self.device else {}
        return said | ({"peak_bytes": self.peak_mib * MIB} if self.peak_mib else {})


PARSER = DeviceLog
