from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmfeas.catalog.document import MAX_BYTES, parse_yaml, read_yaml
from llmfeas.errors import DataError
from llmfeas.record import replace

BILLION_LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n"
    for before, name in zip("abcdefghi", "bcdefghij", strict=True)
)


def refusal(text: str) -> DataError:
    with pytest.raises(DataError) as caught:
        parse_yaml(text, "some.yaml")
    assert caught.value.exit_code == 3
    assert caught.value.message.isprintable()
    assert caught.value.hint
    return caught.value


def test_scalars_follow_yaml_1_2() -> None:
    text = "[yes, 2026-09-25, 3e9, 012, 1_000, 1.5, -.5, ~, '8.9', true, 2022-10, .inf, null, '']"
    expected = ["yes", "2026-09-25", 3e9, "012", 1000, 1.5, -0.5, None, "8.9", True, "2022-10", ".inf", None, ""]
    assert parse_yaml(text, "x").data == expected


def test_aliases_within_reason_are_expanded() -> None:
    assert parse_yaml("a: &x {b: 1}\nc: [*x, *x]", "x").data == {"a": {"b": 1}, "c": [{"b": 1}, {"b": 1}]}


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        (BILLION_LAUGHS, 6, "expands to too many values"),
        ("a: &a [*a]", 1, "names nothing before it"),
        ("a:\n\t- b", 2, "a tab where YAML wants spaces"),
        ("a: 1\nb: 2\na: 3", 3, "duplicate key 'a'"),
        ("!!python/object/apply:os.system ['true']", 1, "has the tag"),
        ("a: !!binary aGk=", 1, "has the tag"),
        ("a: [", 2, "not valid YAML"),
        ("--- a\n--- b", 2, "second document"),
        ("a: 1e999", 1, "out of bounds"),
        ("a: " + "1" * 5000, 1, "out of bounds"),
        ("? [a]\n: b", 1, "key that is no text"),
        ("a: \x00", 1, "not valid YAML"),
        ("a: *x", 1, "names nothing before it"),
    ],
)
def test_what_is_not_plain_data_is_refused_with_its_line(text: str, line: int, says: str) -> None:
    error = refusal(text)
    assert error.message.startswith(f"some.yaml:{line}: ")
    assert says in error.message


@pytest.mark.parametrize("text", ["[" * 100_000, "- " * 100_000, "{a: " * 3000, '["]",\n' * 100_000])
def test_deep_nesting_is_refused_before_anything_recurses(text: str) -> None:
    assert "nests too deeply" in refusal(text).message


def test_escape_codes_in_keys_are_shown_neutralised() -> None:
    assert "\\x1b[31m" in refusal('"\\e[31mx": 1\n"\\e[31mx": 2').message


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such file") as caught:
        read_yaml(tmp_path / "none.yaml")
    assert caught.value.code == "file-missing"


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        read_yaml(tmp_path)
    assert caught.value.code == "file-unreadable"


def test_text_that_is_not_utf8_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "latin.yaml"
    path.write_bytes(b"a: 1\nb: caf\xe9\n")
    with pytest.raises(DataError, match=r"latin.yaml:2: no UTF-8 text"):
        read_yaml(path)


def test_a_byte_order_mark_is_no_content(tmp_path: Path) -> None:
    path = tmp_path / "bom.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert read_yaml(path).data == {"a": 1}


def test_a_huge_file_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "huge.yaml"
    with path.open("wb") as stream:
        stream.truncate(MAX_BYTES + 1)
    with pytest.raises(DataError) as caught:
        read_yaml(path)
    assert caught.value.code == "file-too-large"


def test_lines_are_found_by_key_index_and_id() -> None:
    document = parse_yaml("devices:\n- id: one\n  rates: {a: 1}\n- id: two\n  rates:\n    a: 1\n    b: 2\n", "x.yaml")
    assert document.line(("devices", "two", "rates", "b")) == 7
    assert document.line(("devices", 1)) == 4
    assert document.line(("devices", "two", "absent", "b")) == 4
    assert document.where(("devices", "two", "rates", "b")) == "x.yaml:7: devices[two].rates.b"


class Unsearched(list[object]):
    """A long list, of which nobody may walk through the items."""

    def __iter__(self) -> Iterator[object]:
        raise AssertionError("searched")


def test_an_item_is_found_by_its_index_without_a_search() -> None:
    document = parse_yaml("- a\n- {b: 1}\n", "x.yaml", columns=True)
    found = replace(document, data=Unsearched(document.data))
    assert found.position((1, "b")) == (2, 4)
    assert found.position((2, "b")) == (1, 1)
    assert found.position((-1,)) == (1, 1)


@given(st.text(alphabet=st.sampled_from("ab:-[]{}&*!|>'\"\n\t #,?%@`0.e~<"), max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse_yaml(text, "x.yaml")
    except DataError as error:
        assert error.message.startswith("x.yaml")
