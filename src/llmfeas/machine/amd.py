"""AMD devices by amd-smi, rocm-smi, or the kernel's own description (KFD topology) where neither is installed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ..text import printable
from ..units import MIB
from .nvidia import number
from .probe import Found, Trouble, grouped, output, text_of

KFD_NODES = Path("/sys/class/kfd/kfd/topology/nodes")


def amd_devices(trouble: Trouble | None = None, visible: str | None = None) -> list[Found]:
    """Ask the tools, newest first, then the kernel; empty where there is no AMD GPU.

    `visible` is HIP_VISIBLE_DEVICES: those that it names by number; None: all.
    """
    failed: Trouble = []
    devices = parse_amd_smi(output(["amd-smi", "static", "--asic", "--vram", "--json"], trouble=failed), visible)
    if not devices:
        command = ["rocm-smi", "--showproductname", "--showmeminfo", "vram", "--json"]
        devices = parse_rocm_smi(output(command, trouble=failed), visible)
    devices = devices or parse_kfd(_kfd_nodes(KFD_NODES), visible)
    if trouble is not None and not devices:
        trouble += failed
    return devices


def _seen(devices: list[Found], visible: str | None) -> list[Found]:
    """The devices whose numbers are named, with equal ones together."""
    if visible is None:
        return grouped(devices)
    named = [name.strip() for name in visible.split(",")]
    return grouped([device for place, device in enumerate(devices) if str(place) in named])


def parse_amd_smi(text: str, visible: str | None = None) -> list[Found]:
    """Read `amd-smi static --asic --vram --json`: a list of GPUs, or that list under `gpu_data`."""
    content = _json(text)
    rows = content.get("gpu_data") if isinstance(content, dict) else content
    devices = []
    for row in rows if isinstance(rows, list) else []:
        asic = row.get("asic") if isinstance(row, dict) else None
        if not isinstance(asic, dict):
            continue
        vram = row.get("vram")
        size = vram.get("size") if isinstance(vram, dict) else None
        mib = number(size.get("value") if isinstance(size, dict) else size)
        devices.append(
            Found(
                backend="rocm",
                vendor="amd",
                name=_name(asic.get("market_name")),
                memory_bytes=None if mib is None else int(mib * MIB),
                target=_target(asic.get("target_graphics_version")),
                gpu_cores=_units(asic.get("num_compute_units")),
                source="amd-smi",
            )
        )
    return _seen(devices, visible)


def parse_rocm_smi(text: str, visible: str | None = None) -> list[Found]:
    """Read `rocm-smi --showproductname --showmeminfo vram --json`; the keys changed their case over the versions."""
    content = _json(text)
    devices = []
    for key, row in content.items() if isinstance(content, dict) else ():
        if not key.startswith("card") or not isinstance(row, dict):
            continue
        entry = {str(name).lower(): value for name, value in row.items()}
        memory = number(entry.get("vram total memory (b)"))
        devices.append(
            Found(
                backend="rocm",
                vendor="amd",
                name=_name(entry.get("card series") or entry.get("device name") or entry.get("card model")),
                memory_bytes=None if memory is None else int(memory),
                target=_target(entry.get("gfx version")),
                source="rocm-smi",
            )
        )
    return _seen(devices, visible)


def parse_kfd(nodes: Iterable[Mapping[str, str]], visible: str | None = None) -> list[Found]:
    """Read the KFD topology: one mapping a node, `properties` and `memory` as the kernel prints them, and `name`.

    `gfx_target_version 90402` is gfx942: major, minor, stepping in decimal pairs, the last two in hexadecimal.
    """
    devices = []
    for node in nodes:
        properties = _pairs(node.get("properties", ""))
        version = properties.get("gfx_target_version", 0)
        if not version or properties.get("vendor_id", 0) not in (0, 4098):
            continue
        memory = _pairs(node.get("memory", "")).get("size_in_bytes") or properties.get("local_mem_size")
        devices.append(
            Found(
                backend="rocm",
                vendor="amd",
                name=_name(node.get("name")),
                memory_bytes=memory or None,
                target=f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}",
                gpu_cores=properties.get("simd_count", 0) // (properties.get("simd_per_cu") or 4) or None,
                source="KFD topology",
            )
        )
    return _seen(devices, visible)


def _kfd_nodes(root: Path) -> Iterator[Mapping[str, str]]:
    try:
        folders = sorted(root.iterdir())[:64]
    except OSError:
        return
    for folder in folders:
        properties = text_of(folder / "properties")
        if "gfx_target_version" in properties:
            minor = _pairs(properties).get("drm_render_minor", 0)
            product = text_of(f"/sys/class/drm/renderD{minor}/device/product_name").strip()
            memory = text_of(folder / "mem_banks" / "0" / "properties")
            yield {"properties": properties, "memory": memory, "name": product}


def _pairs(text: str) -> dict[str, int]:
    pairs = {}
    for line in text.splitlines():
        key, _, value = line.strip().partition(" ")
        if value.isdigit() and len(value) < 20:
            pairs[key] = int(value)
    return pairs


def _json(text: str) -> object:
    try:
        return json.loads(text) if text.strip() else None
    except (ValueError, RecursionError):
        return None


def _name(value: object) -> str:
    text = str(value or "").strip()
    return printable(text) if text and text != "N/A" else "AMD GPU"


def _units(value: object) -> int | None:
    units = number(value)
    return int(units) if units else None


def _target(value: object) -> str | None:
    text = str(value or "")
    return text if text.startswith("gfx") and text[3:].isalnum() else None
