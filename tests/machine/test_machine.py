from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

import recorded
from llmfeas.catalog.store import catalog
from llmfeas.errors import UsageError
from llmfeas.machine import Machine, device_of, matched, this_hardware, this_machine
from llmfeas.machine.amd import parse_amd_smi, parse_kfd, parse_rocm_smi
from llmfeas.machine.apple import parse_apple
from llmfeas.machine.cards import parse_adapters, parse_intel_pci, parse_nvidia_proc
from llmfeas.machine.cpu import parse_cpuinfo, parse_dmidecode, parse_meminfo
from llmfeas.machine.intel import parse_hl_smi, parse_xpu_smi
from llmfeas.machine.nvidia import parse_nvidia_smi
from llmfeas.machine.probe import Found, output, text_of, together, words_of_machines
from llmfeas.machine.tpu import tpu_devices

GIB = 2**30


def entry_of(found: Found) -> str | None:
    match = matched(found, catalog())
    return None if match.entry is None else match.entry.id


def test_nvidia_smi() -> None:
    (found,) = parse_nvidia_smi(recorded.NVIDIA_GTX_1660_SUPER)
    assert (found.name, found.memory_bytes, found.target) == ("NVIDIA GeForce GTX 1660 SUPER", 6144 * 2**20, "7.5")
    assert entry_of(found) == "gtx-1660-super"


def test_cards_of_one_kind_are_counted() -> None:
    found = parse_nvidia_smi(recorded.NVIDIA_SEVEN_A100)
    assert [(each.name, each.count) for each in found] == [("NVIDIA A100 80GB PCIe", 6), ("NVIDIA A100-SXM4-80GB", 1)]
    assert [entry_of(each) for each in found] == ["a100-pcie-80gb", "a100-sxm-80gb"]


def test_figures_that_a_driver_does_not_know_are_unknown() -> None:
    (found,) = parse_nvidia_smi(recorded.NVIDIA_K20M)
    assert (found.count, found.power_w, found.target) == (2, None, None)
    assert found.memory_bytes == 5062 * 2**20


def test_a_laptop_chip_is_not_taken_for_the_card_of_that_name() -> None:
    assert entry_of(parse_nvidia_smi(recorded.NVIDIA_LAPTOP)[0]) == "rtx-4060-laptop"
    assert entry_of(parse_nvidia_smi(recorded.NVIDIA_UNKNOWN)[0]) is None


@pytest.mark.parametrize("parse", [parse_nvidia_smi, parse_amd_smi, parse_rocm_smi, parse_xpu_smi, parse_hl_smi])
@pytest.mark.parametrize("text", ["", "\n", "{}", "[]", "null", "garbage, \x00", "{" * 50_000, "NVIDIA-SMI has failed"])
def test_nonsense_is_no_device(parse: object, text: str) -> None:
    assert callable(parse)
    assert parse(text) == []


def test_rocm_smi_new_and_old() -> None:
    (new,) = parse_rocm_smi(recorded.ROCM_SMI_7900XT)
    assert (new.name, new.memory_bytes, new.target) == ("Radeon RX 7900 XT", 21_458_059_264, "gfx1100")
    assert entry_of(new) == "rx-7900xt"
    (old,) = parse_rocm_smi(recorded.ROCM_SMI_OLD)
    assert (old.memory_bytes, old.target) == (17_163_091_968, None)


def test_amd_smi() -> None:
    (found,) = parse_amd_smi(recorded.AMD_SMI_MI300X)
    assert (found.count, found.target, found.memory_bytes) == (2, "gfx942", 196_608 * 2**20)
    assert entry_of(found) == "mi300x"
    two = parse_amd_smi(recorded.AMD_SMI_UNDER_KEY)
    assert [(each.target, each.memory_bytes) for each in two] == [("gfx1100", None), ("gfx1201", None)]
    assert entry_of(two[0]) == "rx-7900xtx"


def test_the_kernel_tells_amd_gpus_without_any_tool() -> None:
    nodes = [{"properties": recorded.KFD_CPU_NODE}, {"properties": recorded.KFD_7900XTX, "name": "Radeon RX 7900 XTX"}]
    (found,) = parse_kfd(nodes)
    assert (found.target, found.memory_bytes, found.name) == ("gfx1100", None, "Radeon RX 7900 XTX")
    (found,) = parse_kfd([{"properties": recorded.KFD_MI300X, "memory": recorded.KFD_MI350X_BANK}])
    assert (found.target, found.memory_bytes) == ("gfx942", 309_220_868_096)


def test_xpu_smi() -> None:
    (found,) = parse_xpu_smi(recorded.XPU_SMI_MAX_1100)
    assert (found.name, found.memory_bytes) == ("Intel Data Center GPU Max 1100", 51_522_830_336)
    assert entry_of(found) == "max-1100"
    arc, smaller = parse_xpu_smi(recorded.XPU_SMI_TWO_ARC)
    assert entry_of(arc) == "arc-a770-16gb"
    assert entry_of(smaller) == "arc-a580"


def test_memory_decides_between_variants() -> None:
    small = Found(backend="xpu", vendor="intel", name="Intel Arc A770 Graphics", memory_bytes=8 * GIB)
    assert entry_of(small) == "arc-a770-8gb"


def test_nvidia_without_its_tool() -> None:
    (found,) = parse_nvidia_proc([recorded.NVIDIA_PROC, recorded.NVIDIA_PROC_BROKEN, recorded.NVIDIA_PROC, ""])
    assert (found.name, found.count, found.memory_bytes) == ("NVIDIA GeForce RTX 5090", 2, None)
    assert entry_of(found) == "rtx-5090"


def test_intel_without_its_tool() -> None:
    found = parse_intel_pci([("0x8086", "0x56a0"), ("0x8086", "0x7d55"), ("0x1002", "0x56a0"), ("", "")])
    assert [entry_of(each) for each in found] == ["arc-a770-16gb"]


def test_every_intel_id_is_a_device_of_the_catalog() -> None:
    for number, name in words_of_machines()["intel_pci"].items():
        assert entry_of(parse_intel_pci([("0x8086", number)])[0]), name


def test_adapters_of_windows() -> None:
    (found,) = parse_adapters(recorded.WINDOWS_ADAPTERS)
    assert (found.backend, found.memory_bytes) == ("rocm", 25_753_026_560)
    assert entry_of(found) == "rx-7900xtx"


def test_hl_smi() -> None:
    (found,) = parse_hl_smi(recorded.HL_SMI)
    assert (found.name, found.count, found.memory_bytes) == ("HL-205", 8, 32 * GIB)
    assert entry_of(Found(backend="hpu", vendor="intel", name="HL-225")) == "gaudi2"


def test_a_mac() -> None:
    (found,) = parse_apple(recorded.SYSCTL_M1_PRO, recorded.DISPLAYS_M1_PRO)
    assert (found.name, found.gpu_cores, found.cores, found.memory_bytes) == ("Apple M1 Pro", 16, 10, 16 * GIB)
    match = matched(found, catalog())
    assert match.entry is not None
    assert (match.entry.id, match.differences) == ("m1-pro", ())
    device = device_of(match, catalog())
    assert device is not None
    assert device.memory_options_gib == (16,)


def test_fewer_gpu_cores_give_less_rate() -> None:
    displays = recorded.DISPLAYS_M1_PRO.replace('"16"', '"14"')
    match = matched(parse_apple(recorded.SYSCTL_M1_PRO, displays)[0], catalog())
    device = device_of(match, catalog())
    assert device is not None and match.entry is not None
    assert [(each.field, each.catalog, each.here) for each in match.differences if each.field == "gpu_cores"] == [
        ("gpu_cores", 16, 14)
    ]
    assert device.tflop_per_s.fp32 == pytest.approx((match.entry.tflop_per_s.fp32 or 0) * 14 / 16)


def test_a_mac_with_fewer_gpu_cores_is_the_one_that_is_sold_so() -> None:
    sysctl = recorded.SYSCTL_M1_PRO.replace("M1 Pro", "M2 Max")
    assert entry_of(parse_apple(sysctl, recorded.DISPLAYS_M2_MAX_30)[0]) == "m2-max-30c"


def test_an_intel_mac_has_no_metal_device() -> None:
    assert (
        parse_apple("machdep.cpu.brand_string: Intel(R) Core(TM) i7\nhw.memsize: 1\n", recorded.DISPLAYS_INTEL_MAC)
        == []
    )


@pytest.mark.parametrize(
    ("kind", "device", "count"), [("v5litepod-8", "tpu-v5e", 8), ("v4-8", "tpu-v4", 4), ("v3-8", "tpu-v3", 8)]
)
def test_tpu_environment(kind: str, device: str, count: int) -> None:
    (found,) = tpu_devices({"TPU_ACCELERATOR_TYPE": kind})
    assert (entry_of(found), found.count) == (device, count)


def test_other_environments_are_no_tpu() -> None:
    assert tpu_devices({}) == []
    assert tpu_devices({"TPU_ACCELERATOR_TYPE": "v99-8"}) == []


def test_cpuinfo_of_a_server() -> None:
    found = parse_cpuinfo(recorded.CPUINFO_9654P, parse_meminfo("MemTotal:       24684096 kB\n"))
    assert (found.vendor, found.cores, found.generation) == ("amd", 96, "zen4")
    assert found.memory_bytes == 24_684_096 * 1024
    assert "AVX-512 bf16" in found.simd
    assert entry_of(found) == "epyc-9654"


def test_a_processor_that_the_catalog_lacks_takes_its_generations_rates() -> None:
    found = parse_cpuinfo(recorded.CPUINFO_I9_13980HX.replace("13980HX", "13985HY"), 32 * GIB)
    match = matched(found, catalog())
    assert (match.entry, found.generation) == (None, "alder-lake")
    device = device_of(match, catalog())
    assert device is not None
    assert (device.id, device.cores, device.memory_bytes) == ("this", 24, 32 * GIB)
    assert device.tflop_per_s.fp32


def test_a_slice_of_a_server_has_its_share() -> None:
    found = parse_cpuinfo(recorded.CPUINFO_9654P.replace("cpu cores       : 96", "cpu cores       : 4"), 16 * GIB)
    match = matched(found, catalog())
    device = device_of(match, catalog())
    assert device is not None and match.entry is not None
    assert device.tflop_per_s.fp32 == pytest.approx((match.entry.tflop_per_s.fp32 or 0) * 4 / 96)
    assert device.bandwidth_gb_per_s < match.entry.bandwidth_gb_per_s
    assert ("cores", 96, 4) in [(each.field, each.catalog, each.here) for each in match.differences]


def test_an_unknown_generation_is_unknown() -> None:
    found = parse_cpuinfo(recorded.CPUINFO_I9_9900K.replace("9900K", "9123Y"))
    assert (found.generation, found.cores, found.clock_ghz) == (None, 8, 3.6)
    device = device_of(matched(found, catalog()), catalog())
    assert device is not None
    assert device.by_rule == ("tflop_per_s", "bandwidth_gb_per_s")
    assert device.tflop_per_s.fp32 == pytest.approx(8 * 3.6 * 32 / 1000, rel=1e-3)


def test_memory_modules() -> None:
    assert parse_dmidecode(recorded.DMIDECODE_TWO_DDR5) == ("DDR5", 2, 4800.0)
    assert parse_dmidecode(recorded.DMIDECODE_SERVER) == ("DDR4", 1, 2933.0)
    assert parse_dmidecode("") == (None, None, None)
    found = parse_cpuinfo(recorded.CPUINFO_I9_13980HX, 32 * GIB, recorded.DMIDECODE_TWO_DDR5)
    device = device_of(matched(found, catalog()), catalog())
    assert device is not None
    assert device.bandwidth_gb_per_s == pytest.approx(2 * 4800 * 8 / 1000)


def test_this_hardware_prefers_an_accelerator_and_counts_it() -> None:
    cards = parse_nvidia_smi(recorded.NVIDIA_SEVEN_A100)
    processor = parse_cpuinfo(recorded.CPUINFO_9654P, 512 * GIB)
    hardware = this_hardware(catalog(), Machine(tuple(cards), processor))
    assert (hardware.device.id, hardware.count) == ("a100-pcie-80gb", 6)
    assert hardware.device.reported_bytes == 81_920 * 2**20
    strange = parse_nvidia_smi(recorded.NVIDIA_UNKNOWN)
    hardware = this_hardware(catalog(), Machine(tuple(strange), processor))
    assert hardware.device.backend == "cpu"
    assert "RTX 4060 Max-Q" in (hardware.note or "")


def test_a_machine_of_which_nothing_is_known() -> None:
    (strange,) = parse_nvidia_smi(recorded.NVIDIA_UNKNOWN)
    with pytest.raises(UsageError, match="RTX 4060 Max-Q") as caught:
        this_hardware(catalog(), Machine((strange,), None))
    assert caught.value.code == "unknown-this-device"
    assert "--catalog" in caught.value.hint


def test_this_machine_has_a_processor() -> None:
    machine = this_machine()
    assert machine.processor is not None
    assert machine.processor.cores


def test_missing_failing_and_hanging_tools_say_nothing(tmp_path: Path) -> None:
    assert output(["no-such-tool-anywhere"]) == ""
    assert output([sys.executable, "-c", "print('x'); raise SystemExit(1)"]) == ""
    assert output([sys.executable, "-c", "print('said')"]).strip() == "said"
    assert output([sys.executable, "-c", "import time; time.sleep(60)"], timeout=0.2) == ""
    assert text_of(tmp_path / "none") == ""


def test_a_probe_that_hangs_or_fails_holds_up_no_other() -> None:
    def failing() -> int:
        raise RuntimeError

    assert together([lambda: 1, failing, lambda: time.sleep(30) or 2], limit=0.3) == [1, None, None]
