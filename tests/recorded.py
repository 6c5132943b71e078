"""Outputs of real tools as people published them; each with its source. Serial numbers and the like are left out."""

from __future__ import annotations

NVIDIA_GTX_1660_SUPER = """name, memory.total [MiB], compute_cap, driver_version
NVIDIA GeForce GTX 1660 SUPER, 6144 MiB, 7.5, 580.173.02
"""
"""`nvidia-smi --query-gpu=name,memory.total,compute_cap,driver_version --format=csv`, a host table of 2026-08."""

NVIDIA_LAPTOP = """name, memory.total [MiB], compute_cap, driver_version
NVIDIA GeForce RTX 4060 Laptop GPU, 8188 MiB, 8.9, 572.83
"""
"""The same command on a laptop (Windows), quoted in a test of a speech tool."""

NVIDIA_UNKNOWN = NVIDIA_LAPTOP.replace("4060 Laptop", "4060 Max-Q Prototype")
"""A card of which the catalog has the name of a relative."""

NVIDIA_SEVEN_A100 = """index, name, memory.total [MiB], compute_cap
0, NVIDIA A100 80GB PCIe, 81920 MiB, 8.0
1, NVIDIA A100 80GB PCIe, 81920 MiB, 8.0
2, NVIDIA A100 80GB PCIe, 81920 MiB, 8.0
3, NVIDIA A100 80GB PCIe, 81920 MiB, 8.0
4, NVIDIA A100-SXM4-80GB, 81920 MiB, 8.0
5, NVIDIA A100 80GB PCIe, 81920 MiB, 8.0
6, NVIDIA A100 80GB PCIe, 81920 MiB, 8.0
"""
"""`nvidia-smi --query-gpu=index,name,memory.total,compute_cap --format=csv`, log of a server with mixed cards."""

NVIDIA_K20M = """name, memory.total [MiB], driver_version, power.limit [W]
Tesla K20m, 5062, 470.256.02, [N/A]
Tesla K20m, 5062, 470.256.02, [N/A]
"""
"""Names and memory: slurm-monitor, tests of system_info; columns in the order that drivers without compute_cap get."""

NVIDIA_PROC = """Model: \t\t NVIDIA GeForce RTX 5090
IRQ:   \t\t 16
GPU UUID: \t GPU-00000000-0000-0000-0000-000000000000
Video BIOS: \t 98.02.2e.40.7f
Bus Type: \t PCIe
DMA Size: \t 52 bits
Bus Location: \t 0000:01:00.0
Device Minor: \t 0
GPU Firmware: \t 610.43.02
GPU Excluded:\t No
"""
"""/proc/driver/nvidia/gpus/0000:01:00.0/information, from the tests of a system report."""

NVIDIA_PROC_BROKEN = "Model: \t\t Unknown\nIRQ:   \t\t 35\n"
"""The same where the driver cannot talk to the card: github.com/kata-containers/runtime/issues/2546."""

WINDOWS_ADAPTERS = [
    {"DriverDesc": "AMD Radeon(TM) Graphics", "HardwareInformation.qwMemorySize": 536_870_912},
    {"DriverDesc": "AMD Radeon RX 7900 XTX", "HardwareInformation.qwMemorySize": 25_753_026_560},
    {"DriverDesc": "Microsoft Basic Display Adapter"},
]
"""Names as Windows reports them: github.com/ollama/ollama/pull/5124; memory as rocm-smi gives it for that card."""

ROCM_SMI_7900XT = """{
  "card0": {
    "GPU use (%)": "0",
    "VRAM Total Memory (B)": "21458059264",
    "VRAM Total Used Memory (B)": "27856896",
    "Card Series": "Radeon RX 7900 XT",
    "Card Model": "0x744c",
    "Card Vendor": "Advanced Micro Devices, Inc. [AMD/ATI]",
    "Card SKU": "D70401XT",
    "Subsystem ID": "0x471e",
    "Device Rev": "0xcc",
    "Node ID": "1",
    "GUID": "26967",
    "GFX Version": "gfx1100"
  }
}
"""
"""`rocm-smi --showproductname --showuse --showmeminfo vram --json`: github.com/marimo-team/marimo/issues/9237."""

ROCM_SMI_OLD = """{"card0": {"VRAM Total Memory (B)": "17163091968", "VRAM Total Used Memory (B)": "10854400",
"Card series": "Vega 20 [Radeon Pro VII/Radeon Instinct MI50 32GB]", "Card model": "0x081e",
"Card vendor": "Advanced Micro Devices Inc. [AMD/ATI]", "Card SKU": "D1640600"},
"system": {"Driver version": "5.13"}}"""
"""Keys and values of an older rocm-smi: slurm-monitor, tests of system_info (there as CSV)."""

AMD_SMI_MI300X = """[{"gpu": 0, "asic": {"market_name": "Instinct MI300X", "vendor_id": "0x1002", "device_id": "0x7408",
"num_compute_units": 304, "target_graphics_version": "gfx942"},
"vram": {"type": "HBM3", "vendor": "Samsung", "size": {"value": 196608, "unit": "MB"}}},
{"gpu": 1, "asic": {"market_name": "Instinct MI300X", "vendor_id": "0x1002", "device_id": "0x7408",
"num_compute_units": 304, "target_graphics_version": "gfx942"},
"vram": {"type": "HBM3", "vendor": "Samsung", "size": {"value": 196608, "unit": "MB"}}}]"""
"""Fields of amd-smi's `static --asic --vram --json`; values of the sample in a metrics exporter's tests."""

AMD_SMI_UNDER_KEY = """{"gpu_data": [{"gpu": 0, "asic": {"market_name": "AMD Radeon RX 7900 XTX",
"device_id": "0x744c", "target_graphics_version": "gfx1100"}, "logical_gpu": 1},
{"gpu": 1, "asic": {"market_name": "AMD Radeon AI PRO R9700", "device_id": "0x7551",
"target_graphics_version": "gfx1201"}, "logical_gpu": 0}]}"""
"""`amd-smi static --asic --json` of ROCm 7.2: the list under a key, as captured in tests of a GPU selector."""

KFD_7900XTX = """cpu_cores_count 0
simd_count 192
mem_banks_count 1
caches_count 206
io_links_count 1
wave_front_size 32
array_count 12
simd_per_cu 2
gfx_target_version 110000
vendor_id 4098
device_id 29772
drm_render_minor 128
max_engine_clk_fcompute 2482
local_mem_size 0
num_xcc 1
max_engine_clk_ccompute 2400
"""
"""/sys/class/kfd/kfd/topology/nodes/N/properties: tinygrad, test/mockgpu/amd (lines left out)."""

KFD_CPU_NODE = "cpu_cores_count 32\nsimd_count 0\ngfx_target_version 0\nvendor_id 0\n"
KFD_MI300X = "simd_count 1216\ngfx_target_version 90402\nvendor_id 4098\nlocal_mem_size 0\n"
"""gfx_target_version 90402 is gfx942: github.com/ROCm/rocm-cli/pull/343."""
KFD_MI350X_BANK = "heap_type 1\nsize_in_bytes 309220868096\nwidth 8192\nmem_clk_max 1900\n"
"""mem_banks/0/properties of an MI350X: github.com/ROCm/rocm-systems/pull/10274."""

XPU_SMI_MAX_1100 = """{
    "device_id": 0,
    "device_name": "Intel(R) Data Center GPU Max 1100",
    "device_stepping": "B4",
    "device_type": "GPU",
    "driver_version": "I915_23.10.72_PSB_231129.76",
    "drm_device": "/dev/dri/card1",
    "kernel_version": "5.15.0-122-generic",
    "memory_ecc_state": "enabled",
    "memory_free_size_byte": "51493543936",
    "memory_physical_size_byte": "51522830336",
    "number_of_tiles": "1",
    "vendor_name": "Intel(R) Corporation"
}
"""
"""`xpu-smi discovery -d 0 -j`: slurm-monitor, tests of system_info."""

XPU_SMI_TWO_ARC = """{"device_list": [
{"device_id": 0, "device_type": "GPU", "device_function_type": "physical",
 "device_name": "Intel(R) Arc(TM) A770 Graphics", "pci_device_id": "0x56A0",
 "memory_physical_size_byte": "17102532608"},
{"device_id": 1, "device_type": "GPU", "device_function_type": "physical",
 "device_name": "Intel(R) Arc(TM) A580 Graphics", "memory_physical_size_byte": 8589934592},
{"device_id": 2, "device_type": "GPU", "device_function_type": "virtual", "device_name": "Intel(R) Arc VF"}]}"""
"""Schema of `xpu-smi discovery -j` with numbers as text and as numbers, from tests of a monitoring agent."""

HL_SMI = "HL-205, 32768\n" * 8
"""`hl-smi -Q name,memory.total -f csv,noheader,nounits`: slurm-monitor, tests of system_info."""

SYSCTL_M1_PRO = """machdep.cpu.brand_string: Apple M1 Pro
hw.memsize: 17179869184
hw.physicalcpu: 10
hw.ncpu: 10
"""
"""`sysctl` of a 10-core M1 Pro: github.com/Dr-Noob/cpufetch/issues/139, memory of the same model from issue 183."""

DISPLAYS_M1_PRO = """{
  "SPDisplaysDataType" : [
    {
      "_name" : "Apple M1 Pro",
      "spdisplays_vendor" : "sppci_vendor_Apple",
      "sppci_cores" : "16",
      "sppci_device_type" : "spdisplays_gpu",
      "sppci_model" : "Apple M1 Pro",
      "spdisplays_ndrvs" : [ { "_name" : "Color LCD", "_spdisplays_pixels" : "3024 x 1964" } ]
    }
  ]
}
"""
"""`system_profiler SPDisplaysDataType -json`, from the tests of a terminal app."""

DISPLAYS_M2_MAX_30 = """{ "SPDisplaysDataType" : [ { "_name" : "Apple M2 Max",
"spdisplays_mtlgpufamilysupport" : "spdisplays_metal4", "spdisplays_vendor" : "sppci_vendor_Apple",
"sppci_bus" : "spdisplays_builtin", "sppci_cores" : "30", "sppci_model" : "Apple M2 Max" } ] }"""
"""The same command on an M2 Max with 30 GPU cores, macOS 15."""

DISPLAYS_INTEL_MAC = """{"SPDisplaysDataType":[{"_name":"Intel Iris Pro","sppci_model":"Intel Iris Pro",
"spdisplays_vram_shared":"1536 MB"},{"_name":"kHW_NVidiaGeForceGT750MItem","sppci_model":"NVIDIA GeForce GT 750M",
"spdisplays_vram":"2 GB"}]}"""

CPUINFO_9654P = """processor       : 4
vendor_id       : AuthenticAMD
cpu family      : 25
model           : 17
model name      : AMD EPYC 9654P 96-Core Processor
stepping        : 1
cpu MHz         : 1500.000
cache size      : 1024 KB
physical id     : 0
siblings        : 191
core id         : 4
cpu cores       : 96
flags           : fpu sse4_2 avx f16c avx2 avx512f avx512dq avx512bw avx512vl avx512_bf16 avx512_vnni
"""
"""/proc/cpuinfo (flags shortened): github.com/ansible/ansible/issues/82244."""

CPUINFO_I9_13980HX = """processor\t: 0
vendor_id\t: GenuineIntel
cpu family\t: 6
model\t\t: 183
model name\t: 13th Gen Intel(R) Core(TM) i9-13980HX
stepping\t: 1
physical id\t: 0
siblings\t: 32
core id\t\t: 0
cpu cores\t: 24
flags\t\t: fpu sse4_2 avx f16c avx2 avx_vnni
"""
"""/proc/cpuinfo (flags shortened): github.com/erpalma/throttled/issues/375."""

CPUINFO_I9_9900K = """processor\t: 0
vendor_id\t: GenuineIntel
cpu family\t: 6
model\t\t: 158
model name\t: Intel(R) Core(TM) i9-9900K CPU @ 3.60GHz
physical id\t: 0
siblings\t: 16
cpu cores\t: 8
flags\t\t: fpu sse4_2 avx f16c avx2

processor\t: 1
vendor_id\t: GenuineIntel
"""
"""/proc/cpuinfo (flags shortened): github.com/miurahr/cmake-optimize-architecture-flag/issues/2."""

DMIDECODE_TWO_DDR5 = """# dmidecode 3.5
Getting SMBIOS data from sysfs.
SMBIOS 3.3.0 present.

Handle 0x0040, DMI type 17, 92 bytes
Memory Device
\tTotal Width: 64 bits
\tData Width: 64 bits
\tSize: 16 GB
\tForm Factor: DIMM
\tLocator: DIMM_A1
\tType: DDR5
\tSpeed: 5600 MT/s
\tConfigured Memory Speed: 4800 MT/s

Handle 0x0041, DMI type 17, 92 bytes
Memory Device
\tTotal Width: 64 bits
\tData Width: 64 bits
\tSize: 16 GB
\tForm Factor: DIMM
\tLocator: DIMM_B1
\tType: DDR5
\tSpeed: 5600 MT/s
\tConfigured Memory Speed: 4800 MT/s
"""
"""`dmidecode -t memory`, two modules, from the tests of a display driver."""

DMIDECODE_SERVER = """Handle 0x0039, DMI type 17, 84 bytes
Memory Device
  Total Width: 72 bits
  Data Width: 64 bits
  Size: 32 GB
  Form Factor: DIMM
  Locator: DIMM 1
  Bank Locator: P0 CHANNEL A
  Type: DDR4
  Type Detail: Synchronous Registered (Buffered)
  Speed: 2933 MT/s

Handle 0x003A, DMI type 17, 84 bytes
Memory Device
  Size: No Module Installed
  Locator: DIMM 2
  Bank Locator: P0 CHANNEL B
  Type: Unknown
"""
"""One module of a server: besthub.dev, inspecting server memory with dmidecode; an empty slot added."""
