"""A table of machines as their tools describe them: which device, how many, how much memory."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from llmfeas.catalog.hardware import Hardware
from llmfeas.catalog.store import catalog
from llmfeas.errors import UsageError
from llmfeas.machine import Found, Machine, this_hardware
from llmfeas.machine.amd import parse_amd_smi, parse_kfd, parse_rocm_smi
from llmfeas.machine.apple import parse_apple
from llmfeas.machine.cards import parse_intel_pci
from llmfeas.machine.cpu import parse_cpuinfo
from llmfeas.machine.huawei import parse_npu_smi
from llmfeas.machine.intel import parse_hl_smi, parse_xpu_smi
from llmfeas.machine.match import named_by
from llmfeas.machine.nvidia import on_board, parse_nvidia_smi
from llmfeas.machine.tpu import tpu_devices

TABLE = yaml.safe_load((Path(__file__).parents[1] / "data" / "machines.yaml").read_text(encoding="utf-8"))
GIB = 2**30
HEADER = "index, uuid, name, memory.total [MiB], compute_cap, driver_version, power.limit [W], mig.mode.current\n"
NPU_ROWS = """| {0}     {1}     | OK            | 90.0        39                0    / 0             |
| 0               | 0000:C{0}:00.0  | 0           0    / 0          3318 / {2}         |
"""


def nvidia(case: Mapping[str, Any]) -> list[Found]:
    rows = case["nvidia"] * case.get("times", 1)
    listed = re.sub(
        r"\{(\S+) \* (\d)\}",
        lambda part: "".join(
            f"  MIG {part[1]}     Device  {place}: (UUID: MIG-{place})\n" for place in range(int(part[2]))
        ),
        case.get("slices", ""),
    )
    text = HEADER + "".join(f"{place}, GPU-{place}, {row}\n" for place, row in enumerate(rows))
    meminfo = f"MemTotal: {round(case.get('host_gib', 64) * 2**20)} kB\n"
    return [on_board(each, case.get("board", ""), meminfo) for each in parse_nvidia_smi(text, listed)]


def amd(case: Mapping[str, Any]) -> list[Found]:
    unknown = "N/A"
    return parse_amd_smi(
        json.dumps(
            [
                {
                    "gpu": place,
                    "asic": {
                        "market_name": name,
                        "num_compute_units": unknown if units is None else units,
                        "target_graphics_version": target,
                    },
                    "vram": {"size": unknown if mib is None else {"value": mib, "unit": "MB"}},
                }
                for place, (name, target, mib, units) in enumerate(case["amd"] * case.get("times", 1))
            ]
        )
    )


def rocm(case: Mapping[str, Any]) -> list[Found]:
    cards = {
        f"card{place}": {
            "Card Series": name,
            "VRAM Total Memory (B)": str(size),
            **({"GFX Version": gfx} if gfx else {}),
        }
        for place, (name, gfx, size) in enumerate(case["rocm"] * case.get("times", 1))
    }
    return parse_rocm_smi(json.dumps(cards))


def xpu(case: Mapping[str, Any]) -> list[Found]:
    devices = [
        {"device_id": place, "device_name": name, "memory_physical_size_byte": str(size)}
        for place, (name, size) in enumerate(case["xpu"] * case.get("times", 1))
    ]
    return parse_xpu_smi("\n".join(json.dumps(device) for device in devices))


def kfd(case: Mapping[str, Any]) -> list[Found]:
    return parse_kfd(
        {
            "properties": f"gfx_target_version {target}\nvendor_id 4098\n",
            "memory": f"size_in_bytes {size}\n",
            "name": name,
        }
        for target, size, name in case["kfd"]
    )


def npu(case: Mapping[str, Any]) -> list[Found]:
    name, mib = case["npu"]
    return parse_npu_smi("".join(NPU_ROWS.format(place, name, mib) for place in range(case.get("times", 1))))


def apple(case: Mapping[str, Any]) -> list[Found]:
    brand, size, cores, gpu_cores = case["apple"]
    display = {"sppci_model": brand, **({"sppci_cores": str(gpu_cores)} if gpu_cores else {})}
    sysctl = f"machdep.cpu.brand_string: {brand}\nhw.memsize: {size}\nhw.physicalcpu: {cores}\nhw.ncpu: {cores}\n"
    return parse_apple(sysctl, json.dumps({"SPDisplaysDataType": [display]}))


READERS = {
    "nvidia": nvidia,
    "amd": amd,
    "rocm": rocm,
    "kfd": kfd,
    "xpu": xpu,
    "npu": npu,
    "apple": apple,
    "pci": lambda case: parse_intel_pci(("0x8086", number) for number in case["pci"]),
    "hl": lambda case: parse_hl_smi(f"{case['hl']}\n" * case["times"]),
    "tpu": lambda case: tpu_devices(case["tpu"]),
}


def processor(case: Mapping[str, Any]) -> Found:
    """The processor as /proc/cpuinfo has it, one paragraph a thread; AMD's EPYC where the case says nothing of it."""
    fields = dict(TABLE["processors"][case.get("cpu", "epyc-9r14")])
    sockets, threads = fields.pop("sockets", 1), fields.pop("processors", None)
    threads = threads or fields["cpu cores"] * sockets
    paragraphs = [
        "\n".join(
            f"{key}\t: {value}" for key, value in {"processor": place, "physical id": place % sockets, **fields}.items()
        )
        for place in range(threads)
    ]
    return parse_cpuinfo("\n\n".join(paragraphs), round(case.get("host_gib", 64) * GIB))


def asked(case: Mapping[str, Any]) -> Hardware | None:
    """What `--device this` takes the machine for; None where it says that it does not know."""
    cpu = processor(case)
    cards = [named_by(each, cpu) for tool, read in READERS.items() if tool in case for each in read(case)]
    try:
        return this_hardware(catalog(), Machine(tuple(cards), None if "apple" in case else cpu))
    except UsageError:
        return None


def wrong(case: Mapping[str, Any]) -> str:
    """What is wrong with the answer, empty where nothing is."""
    hardware = asked(case)
    taken = (
        None if hardware is None or (hardware.device.backend == "cpu" and "cores" not in case) else hardware.device.id
    )
    wanted = case["device"] or [None]
    if taken not in wanted:
        return f"{taken} for {wanted}"
    if taken is None or hardware is None:
        return ""
    device = hardware.device
    count = 1 if "cores" in case else case.get("count", case.get("times", 1))
    if hardware.count != count:
        return f"{hardware.count} for {count}"
    if "memory_gib" in case and abs(device.memory_gib / case["memory_gib"] - 1) > 0.07:
        return f"{device.memory_gib} GiB for {case['memory_gib']}"
    if "cores" in case and device.cores != case["cores"]:
        return f"{device.cores} cores for {case['cores']}"
    whole = catalog().devices.get(device.id) if taken != "this" else None
    if case.get("part") and whole is not None and device.tflop_per_s == whole.tflop_per_s:
        return "a part with the rates of the whole"
    missing = [name for name in case.get("named", ()) if name not in (hardware.note or "")]
    return f"{missing} not in {hardware.note}" if missing else ""


@pytest.mark.parametrize("case", TABLE["machines"], ids=lambda case: str(case["id"]))
def test_a_machine_is_what_its_tools_say(case: Mapping[str, Any]) -> None:
    assert wrong(case) == ""
