"""How much of a device a process can take."""

from __future__ import annotations

import pytest

from llmfeas.memory.usable import usable_bytes
from llmfeas.units import GIB, MIB
from serving_rows import serving

ASKED = {"model": "gpt2"}


def test_the_drivers_figure_counts_where_it_is_known() -> None:
    assert usable_bytes(serving(ASKED, device="rtx-4090")) == 24564 * MIB


def test_a_given_size_replaces_the_capacity() -> None:
    assert usable_bytes(serving(ASKED, device="rtx-4090", memory_bytes=48 * GIB)) == 0.97 * 48 * GIB


@pytest.mark.parametrize(("gib", "share"), [(8, 2 / 3), (32, 2 / 3), (36, 2 / 3), (48, 0.75), (192, 0.75)])
def test_metal_lends_two_thirds_or_three_quarters(gib: int, share: float) -> None:
    found = usable_bytes(serving(ASKED, device="m2-ultra", memory_bytes=gib * GIB))
    assert found == pytest.approx(share * gib * GIB, rel=1e-4)


def test_a_cpu_leaves_a_tenth_to_the_system() -> None:
    assert usable_bytes(serving(ASKED, device="ryzen-9-7950x", memory_bytes=32 * GIB)) == 0.9 * 32 * GIB


def test_unified_memory_is_shared_with_the_system() -> None:
    found = usable_bytes(serving(ASKED, device="gb10"))
    assert found == pytest.approx(0.9 * 128 * GIB, rel=0.08)
