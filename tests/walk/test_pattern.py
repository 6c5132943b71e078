"""How kinds of layers follow each other."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from llmfeas.walk.pattern import repeated_pattern, telling_places


@given(
    st.lists(st.sampled_from("abc"), max_size=4),
    st.lists(st.sampled_from("abc"), min_size=1, max_size=5),
    st.integers(1, 6),
)
def test_a_repeated_pattern_is_found_with_at_most_its_own_length(
    prefix: list[str], period: list[str], times: int
) -> None:
    kinds: list[object] = [*prefix, *period * times]
    start, length = repeated_pattern(kinds)
    assert start + length <= len(prefix) + len(period)
    assert all(kinds[i] == kinds[i + length] for i in range(start, len(kinds) - length))


def test_the_ends_of_a_run_of_like_layers_tell() -> None:
    assert telling_places(["a"] * 6) == frozenset((0, 1, 2, 6, 7))
    assert telling_places(["a", "b", "b", "b", "b"]) == frozenset((0, 1, 2, 5, 6))
