"""Storages: rounded, counted while something refers to them, as numbers or as polynomials."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from llmfeas.autograd.storage import (
    ACTIVATIONS,
    BLOCK_BYTES,
    GRADIENTS,
    LOGITS,
    SYMBOLIC,
    WORKSPACE,
    Ledger,
    Storage,
    numeric_sizes,
    packed_fields,
    stored,
)


def test_a_storage_is_rounded_up_to_a_block_and_gone_with_its_last_reference() -> None:
    ledger = Ledger()
    storage = stored(ledger, 513, ACTIVATIONS)
    other = storage
    assert packed_fields(ledger.level, ACTIVATIONS)[0] == 1024
    del storage
    assert packed_fields(ledger.level, ACTIVATIONS)[0] == 1024
    del other
    assert ledger.level == 0


def test_every_local_maximum_is_marked_once_with_the_moment_of_its_last_allocation() -> None:
    ledger = Ledger()
    first = stored(ledger, 512, ACTIVATIONS)
    ledger.begin("loss")
    second = stored(ledger, 512, LOGITS)
    ledger.begin("backward")
    del first, second
    assert [(packed_fields(level, LOGITS)[0], moment) for level, moment, _ in ledger.marks] == [(512, "loss")]


def test_moving_a_storage_moves_its_bytes_between_components() -> None:
    ledger = Ledger()
    storage = stored(ledger, 512, WORKSPACE)
    storage.move(GRADIENTS)
    assert packed_fields(ledger.level, WORKSPACE)[0] == 0
    assert packed_fields(ledger.level, GRADIENTS)[0] == 512
    del storage
    assert ledger.level == 0


@given(
    st.lists(st.tuples(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(1, 10**6)), min_size=1, max_size=8),
    st.integers(1, 64),
    st.integers(1, 512),
)
def test_symbolic_levels_are_the_polynomials_of_the_numeric_ones(
    tensors: list[tuple[int, int, int]], b: int, s: int
) -> None:
    def held(sizes_of: object) -> list[Storage]:
        return [
            stored(ledger, n_b * sizes.b * BLOCK_BYTES + n_bs * sizes.bs * BLOCK_BYTES + n_bss * sizes.bss * 512, 0)
            for n_b, n_bs, n_bss in tensors
        ]

    ledger, sizes = Ledger(), SYMBOLIC
    kept = held(sizes)
    coefficients = packed_fields(ledger.level, 0)
    ledger, sizes = Ledger(), numeric_sizes(b, s)
    kept = held(sizes)
    powers = (1, b, s, b * s, s * s, b * s * s)
    assert sum(c * p for c, p in zip(coefficients, powers, strict=True)) == packed_fields(ledger.level, 0)[0]
    assert len(kept) == len(tensors)
