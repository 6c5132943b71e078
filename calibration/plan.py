"""Which parameters of the time model are fitted, and where each is drawn when measurements are few.

Name -> (centre, spread): the logarithm is pulled towards that of the centre, weakly, as the inverse square of the
spread. Centres are judgement from the hardware (a TPU's arrays are filled more easily; the best bf16 product that
anyone measured reaches 51 % of the peak on an MI300X and 74 % on a Gaudi 3, where an A100 reaches 87 %; a V100's tensor
cores, the first, wait for registers), never the result of a former fit.
"""

from __future__ import annotations

from collections.abc import Mapping

Centre = tuple[float, float]

PULL = 0.1
"""Strength of the pull, in rows: a parameter with spread 1 is pulled like a tenth of a row that says its centre."""

TRAINING: Mapping[str, Centre] = {
    "training.matrix": (0.5, 1.0),
    "training.geforce": (1.2, 0.3),
    "training.native": (1.1, 0.3),
    "training.plain.cdna": (0.85, 0.3),
    "training.fp8_gain": (0.75, 0.3),
    "training.mxfp8_gain": (0.9, 0.3),
    "training.nvfp4_gain": (0.4, 0.3),
    "training.attention": (0.45, 0.3),
    "training.attention_new": (0.7, 0.3),
    "training.attention_second": (1.3, 0.3),
    "training.attention_eager": (0.35, 0.5),
    "training.stream.plain": (1.3, 0.3),
    "training.stream.tuned": (1.0, 0.3),
    "training.stream.native": (0.8, 0.4),
    "training.host.plain": (0.005, 0.3),
    "training.host.sharded": (1.2, 0.5),
    "training.moe": (0.5, 0.3),
    "training.moe_local": (0.8, 0.3),
    "training.dequant": (1.5, 0.5),
    "training.dequant_gptq": (4.0, 0.5),
    "training.fill_tokens": (200.0, 1.0),
    "link.pcie_consumer": (0.2, 0.5),
    "training.generation.ampere": (1.0, 0.2),
    "training.generation.hopper": (1.0, 0.2),
    "training.generation.blackwell": (1.0, 0.2),
    "training.generation.volta": (0.85, 0.2),
    "training.generation.ga10x": (1.0, 0.2),
    "training.generation.pascal": (1.0, 0.2),
    "training.generation.ada": (1.0, 0.2),
    "training.generation.blackwell-consumer": (1.0, 0.2),
    "training.generation.tpu-v5": (1.15, 0.2),
    "training.generation.tpu-v7": (1.15, 0.2),
    "training.generation.gaudi": (1.0, 0.2),
    "training.generation.gaudi3": (0.75, 0.2),
    "training.generation.cdna": (0.75, 0.2),
    "training.generation.cdna4": (0.75, 0.2),
}

DECODE: Mapping[str, Centre] = {
    "decode.read": (0.9, 0.2),
    "decode.unpack": (0.25, 0.5),
    "decode.unpack_low": (2.0, 0.5),
    "decode.fixed_moe": (1.2, 0.3),
    "decode.hbm": (1.3, 0.3),
    "decode.eager_4bit": (1.5, 0.5),
    "decode.eager_double": (1.2, 0.3),
    "decode.eager_8bit": (3.0, 0.5),
    "decode.eager_host.consumer": (0.5, 0.4),
    "decode.expand": (80.0, 0.7),
    "decode.server_packed": (0.9, 0.3),
    "decode.rows.server.packed": (16.0, 0.3),
    "decode.eager.awq-int4": (1.2, 0.3),
    "decode.eager.gptq-int8": (1.2, 0.3),
    "decode.cache.eager": (0.27, 0.3),
    "decode.cache.fused": (0.8, 0.3),
    "decode.cache.plain": (0.5, 0.4),
    "decode.cache.metal": (0.4, 0.4),
    "decode.compute": (0.45, 0.3),
    "decode.link.nvlink": (3e-5, 0.5),
    "decode.link.nvlink.server-2025": (1.5e-5, 0.5),
    "decode.link.pcie": (5e-5, 0.5),
    "decode.link.pcie.server-2025": (2.5e-5, 0.5),
    "decode.link.pcie_more.server-2025": (0.05, 0.5),
    "decode.link.nvlink_more": (0.08, 0.5),
    "decode.link.pcie_more": (0.25, 0.5),
    "decode.link.pcie_more.compiled": (0.08, 0.5),
    "decode.bandwidth.cuda": (1.0, 0.1),
    "decode.bandwidth.cuda-datacenter": (0.95, 0.1),
    "decode.bandwidth.unified": (0.95, 0.1),
    "decode.bandwidth.metal": (0.95, 0.1),
    "decode.bandwidth.metal-wide": (0.85, 0.1),
    "decode.bandwidth.mlx": (0.95, 0.1),
    "decode.bandwidth.rocm": (0.9, 0.1),
    "decode.bandwidth.vulkan": (0.85, 0.1),
    "decode.bandwidth.sycl": (0.8, 0.1),
    "decode.bandwidth.cpu": (0.7, 0.2),
    "decode.unpack_cpu": (0.15, 0.5),
    "decode.bandwidth.hpu": (0.9, 0.1),
    "decode.fixed.llama.cpp.cuda": (4e-5, 0.5),
    "decode.fixed.llama.cpp-2023.cuda": (7e-5, 0.4),
    "decode.fixed.llama.cpp-2023.metal": (1.3e-4, 0.4),
    "decode.fixed.llama.cpp.metal": (1.3e-4, 0.4),
    "decode.fixed.llama.cpp.rocm": (1.3e-4, 0.4),
    "decode.fixed.llama.cpp.vulkan": (1.4e-4, 0.4),
    "decode.fixed.llama.cpp.sycl": (1.3e-4, 0.4),
    "decode.fixed.compiled": (4e-5, 0.4),
    "decode.fixed.mlx": (8e-5, 0.4),
    "decode.fixed.server": (1.3e-4, 0.4),
    "decode.fixed.server-2025": (5e-5, 0.4),
    "decode.fixed.server-2025.rocm": (6e-5, 0.4),
    "decode.fixed_moe.server.rocm": (2.0, 0.5),
    "decode.fixed_latent": (1.4, 0.3),
    "decode.fixed_latent.server": (1.2, 0.3),
    "decode.fixed_recurrent": (1.4, 0.3),
    "decode.eager_host.edge": (3.0, 0.4),
    "decode.rows.server.hopper": (48.0, 0.3),
    "decode.fixed.eager": (6e-4, 0.4),
    "decode.sequence.server": (2e-5, 0.7),
}

PREFILL: Mapping[str, Centre] = {
    "prefill.integer": (4e13, 0.5),
    "prefill.integer_power": (0.9, 0.3),
    "prefill.integer_power.llama.cpp-2023": (0.7, 0.3),
    "prefill.llama.cpp-2023": (0.7, 0.5),
    "prefill.half": (0.54, 0.3),
    "prefill.integer_vector": (0.3, 0.5),
    "prefill.half_geforce": (1.4, 0.3),
    "prefill.metal": (0.6, 0.3),
    "prefill.mlx": (0.7, 0.3),
    "prefill.rocm": (0.4, 0.4),
    "prefill.rocm.cdna1": (0.6, 0.5),
    "prefill.sycl": (0.35, 0.4),
    "prefill.vulkan": (0.35, 0.4),
    "prefill.cpu_quantized": (0.25, 0.5),
    "prefill.cpu_power": (0.7, 0.3),
    "prefill.compiled": (0.6, 0.3),
    "prefill.attention": (0.2, 0.5),
    "prefill.attention_fused": (0.35, 0.5),
    "prefill.attention_metal": (0.25, 0.5),
    "prefill.attention_metal_fused": (0.5, 0.5),
    "prefill.moe": (0.7, 0.4),
    "prefill.moe_fill": (30.0, 0.5),
    "prefill.moe_width": (500.0, 0.5),
    "prefill.mlx_moe": (0.8, 0.4),
    "prefill.apu": (0.7, 0.4),
    "prefill.unified": (0.7, 0.4),
    "prefill.stream": (0.7, 0.5),
    "prefill.fixed": (2e-4, 0.5),
    "prefill.pipeline_power": (0.8, 0.2),
}

PLANS: Mapping[str, Mapping[str, Centre]] = {"training": TRAINING, "decode": DECODE, "prefill": PREFILL}

LEFT_OUT_BY: Mapping[str, str] = {"training": "source", "decode": "source", "prefill": "source"}
"""What is left out together: a source. Its tables have one author's script, build and habits whatever the card."""
