"""What optimizers hold, in bytes a trained parameter."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.model.setup import Recipe, Setup
from llmfeas.optimizers import OPTIMIZERS
from llmfeas.walk.fold import peak_candidates
from llmfeas.walk.inventory import Inventory, RankWeight, inventory_of, stage_weights

IMPLEMENTATIONS = catalog().tables.implementations


def inventory(**recipe: int) -> Inventory:
    a = catalog().models["llama-2-7b"].architecture
    settings = Recipe(**{"weight_bytes": 4, **recipe}, autocast=False)  # type: ignore[arg-type]
    return peak_candidates(
        Setup(architecture=a, implementation=IMPLEMENTATIONS.public(a.implementation), recipe=settings)
    ).inventory


@pytest.mark.parametrize(
    ("name", "states", "temporaries"),
    [
        ("adamw", 8, 0),
        ("adamw-foreach", 8, 4),
        ("adamw-bf16", 4, 0),
        ("adamw-8bit", 2.03, 0),
        ("adafactor", 0.002, 0.08),
        ("sgd", 0, 0),
        ("sgd-momentum", 4, 0),
        ("lion", 4, 0.08),
        ("muon", 4.16, 0.037),
        ("adamw-schedule-free", 8, 4),
        ("adam-mini", 4, 0.16),
    ],
)
def test_states_and_temporaries_are_as_published(name: str, states: float, temporaries: float) -> None:
    weights = inventory()
    found = OPTIMIZERS[name]
    assert found.states(weights, 4) / weights.trained == pytest.approx(states, rel=0.02, abs=0.002)
    assert found.temporaries(weights, 4) / weights.trained == pytest.approx(temporaries, rel=0.3, abs=0.002)


def test_a_fused_step_counts_on_the_device_a_block_a_tensor() -> None:
    weights = inventory()
    more = replace(weights, trained_tensors=weights.trained_tensors + 1)
    assert OPTIMIZERS["adamw"].states(more, 4) - OPTIMIZERS["adamw"].states(weights, 4) == 512


def test_small_tensors_keep_full_states_under_eight_bits() -> None:
    weights = replace(inventory(), trained=1000, trained_small=1000)
    assert OPTIMIZERS["adamw-8bit"].states(weights, 4) == 8000


def test_only_adapters_count_in_an_adapted_model() -> None:
    weights = inventory(adapters=16, weight_bytes=2)
    assert weights.trained == 39_976_960
    assert weights.trained_width == 4
    assert OPTIMIZERS["adamw"].states(weights, 4) == pytest.approx(8 * weights.trained, rel=0.01)


@pytest.mark.parametrize("name", ["galore", "apollo"])
def test_states_of_a_low_rank_are_those_of_projected_gradients(name: str) -> None:
    rank, hidden, between, vocab, layers = 128, 4096, 11008, 32000, 32
    weights, sides = inventory(), 4 * hidden + 3 * between
    moments = 2 * rank * layers * sides + 2 * (2 * vocab * hidden + (2 * layers + 1) * hidden)
    projection = {2: rank * 7 * layers * hidden, 4: 7 * layers * hidden * (hidden if name == "galore" else rank)}
    for width, held in projection.items():
        assert OPTIMIZERS[name].states(weights, width) == width * (moments + held)
    assert OPTIMIZERS[name].states(weights, 2) < 0.2 * OPTIMIZERS["adamw"].states(weights, 2)


def trained(*shapes: tuple[int, int]) -> Inventory:
    weights = [RankWeight(shape=shape, width=4, place=1, routed=False, trains=True, gradient=0) for shape in shapes]
    return inventory_of(stage_weights(weights, [1]))


def test_soap_holds_the_squares_of_sides_that_are_not_too_long() -> None:
    """As pytorch_optimizer's SOAP (4.1) held them: 28 and 8.1707 bytes an element; 12 and 5 elements more in a step."""
    soap = OPTIMIZERS["soap"]
    for shape, bytes_an_element, most in (
        ((512, 1024), 28, 99),
        ((12000, 256), 8.170666666666667, 6),
        ((512, 512), 24, 12),
    ):
        weights = trained(shape)
        assert soap.states(weights, 4) / weights.trained == pytest.approx(bytes_an_element)
        assert soap.temporaries(weights, 4) / weights.largest <= 4 * most


def test_shampoo_cuts_matrices_into_blocks() -> None:
    found, one, small = OPTIMIZERS["shampoo"], trained((4096, 2048)), trained((512, 256))
    assert found.states(one, 4) / one.trained == 8 + 8 * 2
    assert found.states(small, 4) == 8 * 512 * 256 + 8 * (512**2 + 256**2)
    rest = trained((1024 + 512, 1024))
    assert found.states(rest, 4) == 8 * rest.trained + 8 * (1024**2 + 512**2 + 2 * 1024**2)
