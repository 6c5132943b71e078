"""How kinds of layers follow each other."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from llmfeas.catalog.store import catalog
from llmfeas.model.setup import Recipe, Setup
from llmfeas.walk.pattern import Outline, outline_of, outlined, repeated_pattern


@given(
    st.lists(st.sampled_from("abc"), max_size=4),
    st.lists(st.sampled_from("abc"), min_size=1, max_size=5),
    st.integers(1, 6),
    st.lists(st.sampled_from("abc"), max_size=4),
)
def test_a_repeated_pattern_is_found_with_at_most_its_own_length(
    prefix: list[str], period: list[str], times: int, suffix: list[str]
) -> None:
    kinds: list[object] = [*prefix, *period * times, *suffix]
    start, length, end = repeated_pattern(kinds)
    assert start + length + len(kinds) - end <= len(prefix) + len(period) + len(suffix)
    assert all(kinds[i] == kinds[i + length] for i in range(start, end - length))


def test_what_ends_unlike_it_goes_on_leaves_the_pattern() -> None:
    """As in a model of linear attention whose last two layers attend: 16 layers are walked, not one of each run."""
    found = outlined("d" + "kkka" * 20 + "kka" + "a")
    assert len(found.walked) < 14
    assert found.walked[0] == 0 and found.walked[-1] == 84


def test_the_ends_of_a_run_of_like_layers_stand_for_all() -> None:
    assert outlined("aaaaaa") == Outline((0, 5), (0, 1, 1, 1, 1, 1))
    assert outlined("abbbb") == Outline((0, 1, 4), (0, 1, 2, 2, 2))


def test_the_first_of_a_kind_and_the_last_period_stand_for_all() -> None:
    found = outlined("aaab" * 4)
    assert found.walked == (0, 2, 3, 12, 14, 15)
    assert found.like == (0, 1, 1, 2, *(3, 4, 4, 5) * 3)


def test_layers_before_the_first_of_another_kind_stand_for_none_behind_it() -> None:
    """With adapters in some kinds alone nothing before the first of them needs a gradient."""
    found = outlined("aaabaaab")
    assert not {found.like[layer] for layer in range(3)} & {found.like[layer] for layer in range(3, 8)}


def test_layers_that_follow_each_other_without_a_period_are_not_all_walked() -> None:
    """As in a hybrid whose few layers of attention stand where a search put them."""
    kinds = "mememamemema" * 2 + "memememamemememamememe"
    found = outlined(kinds)
    assert len(found.walked) < 15 < len(kinds)
    assert [kinds[layer - 1 : layer + 1] for layer in (found.walked[at] for at in found.like[1:])] == [
        kinds[layer : layer + 2] for layer in range(len(kinds) - 1)
    ]


def test_a_last_layer_that_is_unlike_its_kind_stands_for_itself_alone() -> None:
    assert outlined("aaaaa", tail=2) == Outline((0, 3, 4), (0, 1, 1, 1, 2))
    assert outlined("abababab", tail=2) == Outline((0, 1, 4, 5, 6, 7), (0, 1, 2, 3, 2, 3, 4, 5))


@given(st.lists(st.sampled_from("ab"), min_size=1, max_size=40), st.integers(1, 2))
def test_every_layer_is_like_a_walked_one_of_its_kind_and_a_walked_one_like_itself(kinds: list[str], tail: int) -> None:
    found = outlined(tuple(kinds), tail)
    assert [kinds[found.walked[at]] for at in found.like] == kinds
    assert [found.like[layer] for layer in found.walked] == list(range(len(found.walked)))


def test_like_layers_of_an_encoder_are_walked_once() -> None:
    a = catalog().models["whisper-large-v3"].architecture
    traits = catalog().tables.implementations.public(a.implementation)
    asked = Setup(architecture=a, implementation=traits, recipe=Recipe(weight_bytes=4, autocast=True))
    outline = outline_of(asked, tail=2)
    encoder = asked.reading.depth if asked.reading else 0
    assert encoder == 32
    assert len([place for place in outline.walked if place < encoder]) < 5
    assert encoder in outline.walked, "what stands between is like no layer"
    assert len(outline.like) == encoder + 1 + a.layers
