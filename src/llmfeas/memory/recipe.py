"""The recipe of a walk: types and switches of the step that a scenario asks for, none that its program ignores."""

from __future__ import annotations

from ..adapters import ADAPTERS
from ..autograd.loss import TILE_ROWS
from ..catalog.device import FULL_PRECISION, NARROW, is_mixed
from ..catalog.implementation import Implementation
from ..catalog.parts import Dropout
from ..findings import cached_across_batches
from ..model.setup import Recipe
from ..record import replace
from ..scenario import Scenario
from ..workload.kernels import (
    code_of,
    has_host,
    launched_singly,
    multiplies_integers,
    packs_stacks,
    runs_fused,
    runs_public_code,
    runs_wide,
    traits_of,
)
from ..workload.parameters import bare_layers, lifts_input
from .training_layout import Layout, holds_inputs, reference_of
from .written import filled_tokens


def recipe_of(scenario: Scenario, traits: Implementation, layout: Layout) -> Recipe:
    """Types and switches of the walk for a scenario; only written out do adapters leave types to autocast."""
    a, precision, kind = scenario.model.architecture, scenario.precision, scenario.adapter_kind
    eager, adapted = _is_eager(scenario, traits), kind is not None
    width, fp8 = _base_bytes(scenario, layout, traits), precision in NARROW and layout.scheme.narrow_inputs
    loss, drops = loss_program(scenario, traits), _dropped(scenario, traits)
    return Recipe(
        weight_bytes=4 if runs_wide(scenario) else width,
        unpacked_bytes=width,
        autocast=is_mixed(precision) and not layout.pure and not (adapted and traits.adapters != "written"),
        fp8=fp8,
        adapters=0 if kind is None else scenario.lora_rank if kind.pairs else 1,
        kind=kind or ADAPTERS["lora"],
        virtual_tokens=0 if kind is None else scenario.virtual_tokens,
        adapt_mlp=scenario.lora_targets == "all-linear",
        bare_layers=bare_layers(scenario),
        input_gradients=lifts_input(scenario),
        eager=eager,
        single=_is_single(scenario, eager),
        checkpointing=layout.checkpointing,
        **drops,
        windowed=_is_windowed(scenario),
        filled=0 if traits.recurrence == "kernel" else filled_tokens(scenario),
        tp=scenario.tp,
        expert_tp=scenario.expert_tp,
        sequence_parallel=layout.sequence_parallel and _divides(scenario, traits),
        rank_experts=0 if a.experts is None else -(-a.experts.count // scenario.ep),
        **_few_bits(scenario),
        narrow_frozen=fp8 and scenario.method == "lora" and traits.narrow_frozen,
        folds_tiles=TILE in (loss or traits.loss) and scenario.device.backend not in GPUS,
        flash_in_fp32=_takes_flash_in_fp32(scenario) and not eager and a.kv_heads < a.heads,
        scores_at_once=eager and scenario.device.backend == "hpu",  # its graphs fuse them, as time has it (score_bytes)
        wide_masks=any(drops.values()) and scenario.device.backend == "cpu" and runs_public_code(scenario),
        softmax_widens=precision.startswith("fp16") and _runs_softmax(scenario, eager),
        narrow_activations=fp8 and traits.narrow_activations,
        offloads=scenario.offload == "activations" and has_host(scenario),
        holds_inputs=holds_inputs(scenario, layout),
        loss=loss,
        reference=reference_of(scenario) != "none" and scenario.objective is not None and scenario.objective.beside,
    )


def _takes_flash_in_fp32(scenario: Scenario) -> bool:
    """Whether PyTorch's flash kernel of processors runs. As tiles and masks a recipe has it only where there are any:
    what nothing sees would have the same step walked again for each backend.
    """
    return scenario.precision == "fp32" and scenario.device.backend == "cpu" and launched_singly(scenario)


def in_kernels(scenario: Scenario, recipe: Recipe) -> Recipe | None:
    """The recipe with what kernels write out beside tensors; None where that is nothing of size."""
    return replace(recipe, softmax_writes=True) if _runs_softmax(scenario, recipe.eager) else None


def _runs_softmax(scenario: Scenario, eager: bool) -> bool:
    """Whether scores go through the softmax that PyTorch has for GPUs."""
    return eager and scenario.device.backend in GPUS and code_of(scenario) in ("public", "patched")


def program_of_batch(scenario: Scenario) -> tuple[bool, str]:
    """What of a recipe the batch decides: whether eager code meets a single sequence, and the program of the loss."""
    eager, traits = _code(scenario)
    return _is_single(scenario, eager), loss_program(scenario, traits)


@cached_across_batches
def _code(scenario: Scenario) -> tuple[bool, Implementation]:
    traits = traits_of(scenario)
    return _is_eager(scenario, traits), traits


def _is_single(scenario: Scenario, eager: bool) -> bool:
    return eager and scenario.sequences_together == 1


def _base_bytes(scenario: Scenario, layout: Layout, traits: Implementation) -> int:
    """Bytes of a weight as products find it, before autocast: of 16 bits where blocks are gathered in those."""
    full, mixed = scenario.precision in FULL_PRECISION, is_mixed(scenario.precision)
    adapted, gathers = scenario.adapter_kind is not None, runs_fused(scenario) and traits.adapters != "written"
    sixteen = adapted and (scenario.base_dtype != "fp32" or gathers)
    return 2 if not full and (sixteen or not mixed or layout.pure) else 4


def _is_eager(scenario: Scenario, traits: Implementation) -> bool:
    """Whether attention is written out: PyTorch's fused kernel for CPUs takes no dropout (sdp_utils_cpp.cpp)."""
    unfused = scenario.device.backend == "cpu" and _drops_attention(scenario, traits)
    # Code with sinks runs fused kernels where it is told to, which the scenario says.
    alone = traits.eager_only and not scenario.model.architecture.sinks
    return scenario.attention == "eager" or alone or unfused


def _dropped(scenario: Scenario, traits: Implementation) -> dict[str, bool]:
    """Where dropout is at work: switches of the recipe."""
    asked, rates = scenario.dropout, scenario.model.architecture.dropout
    return {
        "adapter_dropout": scenario.adapter_kind is not None and scenario.lora_dropout > 0,
        "drop_embedding": traits.drops_embedding and _drops(asked, rates, rates.embedding),
        "drop_attention": _drops_attention(scenario, traits),
        "drop_residual": traits.drops_residual and _drops(asked, rates, rates.residual),
    }


def _few_bits(scenario: Scenario) -> dict[str, bool]:
    """What of a frozen base is in few bits, and how it is multiplied."""
    base = scenario.method == "qlora"
    return {
        "quantized": base,
        "packs_stacks": base and packs_stacks(scenario),
        "integers": multiplies_integers(scenario),
    }


def _drops_attention(scenario: Scenario, traits: Implementation) -> bool:
    rates = scenario.model.architecture.dropout
    return traits.drops_attention and _drops(scenario.dropout, rates, rates.attention)


def _is_windowed(scenario: Scenario) -> bool:
    """Whether the sequence reaches the window of code that masks it."""
    a = scenario.model.architecture
    reaches = a.window is not None and scenario.rank_tokens >= a.window.size
    # Kernels with sinks are told the window.
    return reaches and not runs_fused(scenario) and not (a.sinks and scenario.attention == "flash")


def _divides(scenario: Scenario, traits: Implementation) -> bool:
    """Whether tensor-parallel ranks can divide the stream: evenly, and adapters with it."""
    plain = scenario.adapter_kind is not None and traits.adapters != "parallel"
    return not plain and scenario.model.architecture.hidden % scenario.tp == 0


TILE = "tile"
"""In the names of losses that run in tiles."""
GPUS = frozenset({"cuda", "rocm", "xpu"})
"""Backends on which trl's kernels run (trl 1.16, kernels/chunked_logprob.py, _use_triton), and where PyTorch's softmax
writes `grad * output` out in backward (ATen/native/cuda/SoftMax.cu, softmax_backward_cuda_out; XPUs too)."""


def _drops(asked: float | None, rates: Dropout, published: float) -> bool:
    """Whether a place drops: as published unless another rate is asked for, which replaces all rates."""
    if asked is None or asked in (rates.embedding, rates.attention, rates.residual):
        return published > 0 and asked != 0
    return asked > 0


COPIES_LOGITS = "4.48"
"""The last release of transformers whose loss copies the logits that it shifts (pull request 35646)."""


def _in_rows(scenario: Scenario) -> str:
    """The program of the loss of litgpt 0.5.13: of finetune/lora.py, pretrain.py, or finetune/full.py, which leaves out
    each sequence's last logits: a view of a single one.
    """
    if scenario.trains_adapters:
        return "in-rows-of-each"
    return "in-shifted-rows" if scenario.method == "finetune" and scenario.sequences_together > 1 else "in-rows"


def loss_program(scenario: Scenario, traits: Implementation) -> str:
    """The program of the head and the loss, where it is not the implementation's own."""
    objective = scenario.objective
    if objective is None and traits.loss == "in-rows":
        return _in_rows(scenario)
    if objective is None and traits.loss != "in-tiles":
        copies = scenario.transformers == COPIES_LOGITS and traits.loss == "written"
        return "shifted" if copies and scenario.sequences_together > 1 else ""
    loss = traits.loss if objective is None else objective.loss
    if scenario.model.architecture.last_token:
        return "of-last-token"
    few = scenario.sequences_together * scenario.rank_tokens <= TILE_ROWS
    return loss.replace("tiles", "one-tile") if few else loss
