"""`--device this`: names as tools print them, slices, limits, silent drivers, and processors that nobody knows."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import recorded
from llmfeas.catalog.device import BackendId
from llmfeas.catalog.overlay import with_overlays
from llmfeas.catalog.store import catalog
from llmfeas.errors import UsageError
from llmfeas.feasibility.core import estimate
from llmfeas.machine import Machine, device_of, entry_of, matched, this_hardware
from llmfeas.machine.amd import parse_rocm_smi
from llmfeas.machine.cpu import allowed_bytes, allowed_processors, limited, parse_cpuinfo
from llmfeas.machine.huawei import parse_npu_smi
from llmfeas.machine.match import named_by
from llmfeas.machine.nvidia import on_board, parse_nvidia_smi
from llmfeas.machine.probe import Found, output
from llmfeas.render.pages.overlay import overlay
from llmfeas.settle import resolution

GIB, MIB = 2**30, 2**20

NAMES: tuple[tuple[BackendId, str, int | None, str | None], ...] = (
    ("cuda", "NVIDIA TITAN RTX", 24576, "titan-rtx"),
    ("cuda", "NVIDIA TITAN V", 12288, "titan-v"),
    ("cuda", "NVIDIA GH200 480GB", 97871, "gh200-96gb"),
    ("cuda", "NVIDIA GH200 144G HBM3e", 147456, "gh200-144gb"),
    ("cuda", "NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 97887, "rtx-pro-6000-blackwell"),
    ("cuda", "NVIDIA RTX PRO 6000 Blackwell Server Edition", 97887, "rtx-pro-6000-server"),
    ("cuda", "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", 97887, "rtx-pro-6000-max-q"),
    ("cuda", "NVIDIA B300 SXM6 AC", 275040, "b300"),
    ("cuda", "NVIDIA H100 80GB HBM3", 81559, "h100-sxm"),
    ("cuda", "NVIDIA GeForce RTX 2080 Super with Max-Q Design", 8192, "rtx-2080-super-max-q"),
    ("cuda", "NVIDIA A40-8Q", 8192, None),
    ("rocm", "AMD Instinct MI300X OAM", 196592, "mi300x"),
    ("rocm", "AMD Radeon VII", 16368, "radeon-vii"),
    ("rocm", "AMD INSTINCT MI200 (MCM) OAM LC MBA HPE C2", 65520, "mi250x"),
    ("rocm", "AMD INSTINCT MI250 (MCM) OAM AC MBA", 65520, "mi250"),
    ("rocm", "AMD Instinct MI308X", 196592, None),
    ("npu", "Ascend 910B4", 32768, "ascend-910b4"),
    ("npu", "Ascend 910_9392", 65536, "ascend-910c"),
    ("rocm", "Navi 31 [Radeon RX 7900 XT/7900 XTX/7900 GRE/7900M]", 20464, "rx-7900xt"),
    ("rocm", "Navi 31 [Radeon RX 7900 XT/7900 XTX/7900 GRE/7900M]", 24560, "rx-7900xtx"),
    ("cpu", "Intel(R) Xeon(R) CPU @ 2.20GHz", None, None),
    ("cpu", "Intel(R) Xeon(R) Processor", None, None),
    ("cpu", "AMD EPYC 7B12", None, None),
    ("cpu", "Common KVM processor", None, None),
    ("cpu", "Intel(R) Xeon(R) Gold 6248 CPU @ 2.50GHz", None, "xeon-gold-6248"),
    ("cpu", "12th Gen Intel(R) Core(TM) i7-12700K", None, "core-i7-12700k"),
    ("cpu", "AMD Ryzen 7 5800X 8-Core Processor", None, "ryzen-7-5800x"),
    ("cpu", "AMD Ryzen 7 5800X3D 8-Core Processor", None, "ryzen-7-5800x3d"),
)


@pytest.mark.parametrize(("backend", "name", "mib", "entry"), NAMES)
def test_names_as_tools_print_them(backend: BackendId, name: str, mib: int | None, entry: str | None) -> None:
    found = Found(backend=backend, vendor="any", name=name, memory_bytes=None if mib is None else mib * MIB)
    match = matched(found, catalog())
    assert (match.entry.id if match.entry else None) == entry


def test_a_target_tells_shared_graphics_without_a_name() -> None:
    found = Found(backend="rocm", vendor="amd", name="AMD Radeon Graphics", memory_bytes=512 * MIB, target="gfx1151")
    match = matched(found, catalog())
    assert match.entry is not None and match.entry.kind == "apu"
    processor = Found(backend="cpu", vendor="amd", name="x", memory_bytes=124 * GIB)
    assert this_hardware(catalog(), Machine((found,), processor)).device.memory_gib == 128


NPU_SMI = """+------------------------------------------------------------------------------------------------+
| npu-smi 24.1.rc1.b030            Version: 24.1.rc1.b030                                        |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
| 0     910B3               | OK            | 101.8       43                0    / 0             |
| 0                         | 0000:C1:00.0  | 0           0    / 0          3318 / 65536         |
+===========================+===============+====================================================+
| 1     910B3               | OK            | 92.0        39                0    / 0             |
| 0                         | 0000:C2:00.0  | 0           0    / 0          59351/ 65536         |
+===========================+===============+====================================================+
| NPU     Chip              | Process id    | Process name             | Process memory(MB)      |
| 0       0                 | 1712733       | python                   | 48954                   |
"""
"""As people print it: README files of vllm-ascend and of models for it."""


def test_ascend_devices_by_their_table() -> None:
    (found,) = parse_npu_smi(NPU_SMI)
    assert (found.name, found.count, found.memory_bytes) == ("Ascend 910B3", 2, 64 * GIB)
    match = matched(found, catalog())
    assert match.entry is not None and match.entry.id == "ascend-910b"
    assert parse_npu_smi(NPU_SMI, "1")[0].count == 1
    for text in ("", "npu-smi: error", "| 0 910B3 | OK |", "\x00" * 100):
        assert parse_npu_smi(text) == []


@pytest.mark.parametrize(
    ("name", "target", "processor", "entry"),
    [
        ("AMD Radeon Graphics", "gfx1103", "AMD Ryzen 7 7840HS w/ Radeon 780M Graphics", "radeon-780m"),
        ("AMD GPU", "gfx1151", "AMD RYZEN AI MAX+ 395 w/ Radeon 8060S", "strix-halo"),
        ("Strix Halo [Radeon Graphics / Radeon 8050S Graphics / Radeon 8060S Graphics]", "gfx1151",
         "AMD RYZEN AI MAX+ 395 w/ Radeon 8060S", "strix-halo"),
        ("AMD Radeon RX 7900 XTX", "gfx1100", "AMD Ryzen 7 7840HS w/ Radeon 780M Graphics", "rx-7900xtx"),
    ],
)  # fmt: skip
def test_a_processor_names_its_graphics(name: str, target: str, processor: str, entry: str) -> None:
    cpu = Found(backend="cpu", vendor="amd", name=processor)
    found = named_by(Found(backend="rocm", vendor="amd", name=name, target=target), cpu)
    match = matched(found, catalog())
    assert match.entry is not None and match.entry.id == entry


def test_a_name_that_may_mean_several_says_so() -> None:
    found = Found(
        backend="rocm", vendor="amd", name="Navi 48 [Radeon RX 9070/9070 XT/9070 GRE]", memory_bytes=16304 * MIB
    )
    match = matched(found, catalog())
    assert "rx-9070xt" in match.alike
    assert "may also mean" in (this_hardware(catalog(), Machine((found,), None)).note or "")


SMI = """index, uuid, name, memory.total [MiB], compute_cap, driver_version, power.limit [W], mig.mode.current
0, GPU-aa, NVIDIA A100-SXM4-40GB, 40960, 8.0, 580.1, 400, {mig}
1, GPU-bb, NVIDIA A100-SXM4-40GB, 40960, 8.0, 580.1, 350, [N/A]
2, GPU-cc, NVIDIA GeForce RTX 3060, 12288, 8.6, 580.1, 170, [N/A]
"""
LISTED = """GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-aa)
  MIG 3g.20gb     Device  0: (UUID: MIG-one)
  MIG 1g.5gb      Device  1: (UUID: MIG-two)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-bb)
"""


def test_other_limits_of_power_are_no_other_cards() -> None:
    cards = parse_nvidia_smi(SMI.format(mig="Disabled"))
    assert [(card.name, card.count, card.power_w) for card in cards] == [
        ("NVIDIA A100-SXM4-40GB", 2, 350),
        ("NVIDIA GeForce RTX 3060", 1, 170),
    ]


def test_a_card_here_is_as_fast_as_its_limit_of_power_lets_it() -> None:
    cards = tuple(parse_nvidia_smi(SMI.format(mig="Disabled")))
    assert this_hardware(catalog(), Machine(cards[:1], None)).power_limit_w == 350
    assert this_hardware(catalog(), Machine(cards[1:], None)).power_limit_w is None


@pytest.mark.parametrize(
    ("visible", "counts"),
    [("0", [1]), ("1,2", [1, 1]), ("GPU-b", [1]), ("", []), ("-1", []), ("0,-1,1", [1]), ("2,0,1", [2, 1]), ("9", [])],
)
def test_devices_that_are_hidden_are_not_here(visible: str, counts: list[int]) -> None:
    assert [card.count for card in parse_nvidia_smi(SMI.format(mig="Disabled"), "", visible)] == counts


def test_a_slice_is_no_whole_card() -> None:
    large, small, *_ = parse_nvidia_smi(SMI.format(mig="Enabled"), LISTED)
    assert (large.memory_bytes, small.memory_bytes) == (20 * GIB, 5 * GIB)
    match = matched(large, catalog())
    device = device_of(match, catalog())
    assert device is not None and match.entry is not None
    assert device.tflop_per_s.bf16 == pytest.approx((match.entry.tflop_per_s.bf16 or 0) * 3 / 7)
    assert device.bandwidth_gb_per_s == pytest.approx(match.entry.bandwidth_gb_per_s / 2, rel=0.02)
    hardware = this_hardware(catalog(), Machine((large,), None))
    assert "slice 3g.20gb" in (hardware.note or "")
    (only,) = parse_nvidia_smi(SMI.format(mig="Enabled"), LISTED, "MIG-two")
    assert only.memory_bytes == 5 * GIB


def test_unequal_cards_are_all_named() -> None:
    hardware = this_hardware(catalog(), Machine(tuple(parse_nvidia_smi(SMI.format(mig="Disabled"))), None))
    assert (hardware.device.id, hardware.count) == ("a100-sxm-40gb", 2)
    assert "RTX 3060" in (hardware.note or "")


def test_amd_cards_that_are_hidden_are_not_here() -> None:
    assert parse_rocm_smi(recorded.ROCM_SMI_7900XT, "1") == []
    assert len(parse_rocm_smi(recorded.ROCM_SMI_7900XT, "0")) == 1


def test_a_board_names_its_own_module() -> None:
    nvgpu = Found(backend="cuda", vendor="nvidia", name="Orin (nvgpu)")
    found = on_board(nvgpu, "NVIDIA Jetson AGX Orin Developer Kit\0", "MemTotal:       64349364 kB\n")
    match = matched(found, catalog())
    assert match.entry is not None and match.entry.id == "jetson-agx-orin-64gb"


def test_a_driver_that_fails_is_said_and_is_no_processor() -> None:
    processor = parse_cpuinfo(recorded.CPUINFO_9654P, 512 * GIB)
    broken = Machine((), processor, ("nvidia-smi fails (NVIDIA-SMI has failed)",))
    with pytest.raises(UsageError, match="nvidia-smi fails") as caught:
        this_hardware(catalog(), broken)
    assert caught.value.code == "silent-device"


def test_what_tools_fail_with_is_kept() -> None:
    trouble: list[str] = []
    python = [sys.executable, "-c"]
    assert output([*python, r"print('driver is\x1b[31m gone'); raise SystemExit(9)"], trouble=trouble) == ""
    assert output([*python, "import time; time.sleep(60)"], timeout=0.2, trouble=trouble) == ""
    assert output([*python, "print('No devices were found'); raise SystemExit(6)"], trouble=trouble) == ""
    assert len(trouble) == 2
    assert "gone" in trouble[0] and "\x1b" not in trouble[0]
    assert "does not answer" in trouble[1]


CGROUP = "/sys/fs/cgroup"
V1 = "4:memory:/job\n3:cpu,cpuacct:/\n"


@pytest.mark.parametrize(
    ("own", "files", "processors", "size"),
    [
        ("0::/\n", {"cpu.max": "400000 100000\n", "memory.max": "8589934592\n"}, 4, 8 * GIB),
        ("0::/a/b\n", {"a/cpu.max": "50000 100000\n", "a/b/cpu.max": "max 100000\n"}, 0.5, None),
        (V1, {"memory/job/memory.limit_in_bytes": "1073741824\n", "cpu,cpuacct/cpu.cfs_quota_us": "-1\n"}, None, GIB),
        (
            V1,
            {"cpu,cpuacct/cpu.cfs_quota_us": "150000", "cpu,cpuacct/cpu.cfs_period_us": "100000"},
            1.5,
            None,
        ),
        (V1, {"memory/memory.limit_in_bytes": "9223372036854771712\n"}, None, None),
        ("nonsense\n::\n", {"cpu.max": "x y z"}, None, None),
        ("", {}, None, None),
    ],
)
def test_limits_of_control_groups(own: str, files: dict[str, str], processors: float | None, size: int | None) -> None:
    texts = {"/proc/self/cgroup": own, **{f"{CGROUP}/{name}": text for name, text in files.items()}}

    def read(path: str) -> str:
        return texts.get(path, "")

    assert allowed_processors(read) == processors
    assert allowed_bytes(read) == size


def test_a_container_has_what_it_may_use() -> None:
    whole = parse_cpuinfo(recorded.CPUINFO_9654P, 512 * GIB)
    here = limited(whole, None, 8.0, 32 * GIB)
    assert (here.cores, here.memory_bytes) == (8, 32 * GIB)
    assert len(here.limits) == 2
    assert limited(whole, None, None, None) == whole
    hardware = this_hardware(catalog(), Machine((), here))
    assert hardware.device.memory_gib == 32
    assert "8 of 96 cores" in (hardware.note or "")


UNKNOWN = """processor\t: 0
vendor_id\t: GenuineIntel
cpu family\t: 6
model\t\t: 79
model name\t: Intel(R) Xeon(R) CPU @ 2.20GHz
cpu cores\t: 2
siblings\t: 4
flags\t\t: fpu sse2 avx avx2
"""


@pytest.mark.parametrize(
    "cpuinfo", [UNKNOWN, "", "processor: 0\nmodel name: \x1b[31mevil\n", "processor\t: 0\nisa\t: rv64imafdc\n"]
)
def test_any_processor_answers(cpuinfo: str) -> None:
    hardware = this_hardware(catalog(), Machine((), parse_cpuinfo(cpuinfo, 13 * GIB)))
    assert hardware.device.by_rule and "\x1b" not in (hardware.note or "")
    assert hardware.device.memory_gib == 13
    assert hardware.device.bandwidth_gb_per_s < catalog().devices["xeon-gold-6248"].bandwidth_gb_per_s


def test_what_detect_writes_can_be_filled_in_and_used(tmp_path: Path) -> None:
    strange = Found(
        backend="cuda", vendor="nvidia", name="NVIDIA TITAN Q", memory_bytes=8 * GIB, target="8.9", power_w=90.0
    )
    text = overlay("devices", [entry_of(matched(strange, catalog()), catalog())])
    assert "# fill in: 10^9 bytes a second" in text
    for gap, value in (
        ("bandwidth_gb_per_s: null", "bandwidth_gb_per_s: 300"),
        ('"fp32": null', '"fp32": 12'),
        ("kind: null", "kind: workstation"),
        ("generation: null", "generation: ada"),
        ("memory_type: null", "memory_type: GDDR6"),
    ):
        assert gap in text
        text = text.replace(gap, value)
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    mine = with_overlays(catalog(), [path])
    assert not list(getattr(mine, "problems", list)())
    hardware = this_hardware(mine, Machine((strange,), None))
    assert hardware.device.name == "NVIDIA TITAN Q"
    answer = estimate(resolution({"model": "gpt2", "device": hardware.device.id, "task": "inference"}, mine))
    assert answer.verdict.status == "feasible"


def test_this_machines_memory_is_the_hosts() -> None:
    cards = parse_nvidia_smi(SMI.format(mig="Disabled"))
    processor = parse_cpuinfo(recorded.CPUINFO_9654P, 96 * GIB)
    assert this_hardware(catalog(), Machine(tuple(cards), processor)).host_memory_bytes == 96 * GIB
