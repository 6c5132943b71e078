"""The table of settings is whole, and every value of a request is read by it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmfeas.catalog.store import catalog
from llmfeas.errors import UsageError
from llmfeas.options import BY_NAME, OPTIONS, TASKS, Option, flag_of
from llmfeas.request import parsed, value_of
from llmfeas.units import GIB

FORMATS = catalog().tables.quantization


def option(name: str) -> Option:
    return BY_NAME[name]


def test_every_name_belongs_to_one_setting() -> None:
    names = [name for row in OPTIONS for name in row.names]
    shorts = [row.short for row in OPTIONS if row.short]
    assert len(names) == len(set(names))
    assert len(shorts) == len(set(shorts))


@pytest.mark.parametrize("row", OPTIONS, ids=lambda row: row.name)
def test_every_row_is_consistent(row: Option) -> None:
    assert row.name.isidentifier()
    assert row.help.endswith((".", "..."))
    assert row.default
    assert row.minimum <= row.maximum
    assert row.tasks <= set(TASKS)
    assert row.kind == "text" or not row.choices
    assert set(row.synonyms.values()) <= set(row.choices)
    for value in row.switches.values():
        assert value_of(row, value, FORMATS) is not None
    for choice in row.choices:
        assert value_of(row, choice, FORMATS) == choice


@pytest.mark.parametrize("row", [row for row in OPTIONS if row.kind != "text"], ids=lambda row: row.name)
def test_numbers_are_bounded_on_both_sides(row: Option) -> None:
    assert value_of(row, row.minimum, FORMATS) == pytest.approx(row.minimum)
    assert value_of(row, row.maximum, FORMATS) == pytest.approx(row.maximum)
    for wrong in (row.minimum - 1, row.maximum * 2, float("nan"), float("inf"), True, [1], "", "x", "-1", "1e999"):
        with pytest.raises(UsageError, match=f"^{row.flag}: "):
            value_of(row, wrong, FORMATS)


def test_a_request_is_read_in_base_units() -> None:
    request = {"model": " gpt2 ", "tokens": "10B", "memory": "16GiB", "deadline": "2d", "mfu": "40%", "num_devices": 8}
    assert parsed(request, FORMATS) == {
        "model": "gpt2",
        "tokens": 1e10,
        "memory": 16 * GIB,
        "deadline": 172800,
        "mfu": 0.4,
        "num_devices": 8,
    }


def test_what_was_read_can_be_read_again() -> None:
    first = parsed({"tokens": "3.3e9", "memory": "24GB", "deadline": "1y", "dropout": 0.1, "quant": "Q4_K_M"}, FORMATS)
    assert parsed(first, FORMATS) == first


def test_auto_none_and_switches_that_are_off_mean_not_said() -> None:
    assert parsed({"tokens": None, "quant": "auto", "fsdp": False}, FORMATS) == {}


@pytest.mark.parametrize(
    ("request_", "values"),
    [
        ({"fsdp": True}, {"zero": 3}),
        ({"fsdp": True, "zero": 3}, {"zero": 3}),
        ({"gradient_checkpointing": True}, {"checkpointing": "full"}),
        ({"gradient_checkpointing": "selective"}, {"checkpointing": "selective"}),
        ({"ctx_size": "8k"}, {"context": 8000}),
        ({"max_model_len": 4096}, {"context": 4096}),
        ({"task": "train"}, {"task": "pretrain"}),
        ({"quant": "AWQ_INT4"}, {"quant": "awq-int4"}),
        ({"quant": "Q4_K"}, {"quant": "q4_k_m"}),
        ({"task": "Fine-tuning"}, {"task": "finetune"}),
        ({"precision": "fp8", "attention": "flash_attention_2"}, {"precision": "fp8-mixed", "attention": "flash"}),
        ({"precision": "bfloat16", "kv_dtype": "fp8_e4m3"}, {"precision": "bf16", "kv_dtype": "fp8"}),
        ({"checkpointing": "on", "optimizer": "adam8bit"}, {"checkpointing": "full", "optimizer": "adamw-8bit"}),
    ],
)
def test_other_names_and_spellings(request_: dict[str, object], values: dict[str, object]) -> None:
    assert parsed(request_, FORMATS) == values


def test_one_setting_with_two_values_is_a_contradiction() -> None:
    with pytest.raises(UsageError, match="--zero is given twice: as zero and as fsdp") as caught:
        parsed({"zero": 1, "fsdp": True}, FORMATS)
    assert caught.value.code == "contradiction"


def test_an_unknown_name_brings_near_ones() -> None:
    with pytest.raises(UsageError, match="unknown setting 'micro_bach'") as caught:
        parsed({"micro_bach": 1}, FORMATS)
    assert caught.value.candidates[0] == "micro_batch"


def test_a_wrong_choice_brings_near_ones_and_hides_control_characters() -> None:
    with pytest.raises(UsageError) as caught:
        parsed({"quant": "q4_k\x1b[31m"}, FORMATS)
    assert "\x1b" not in caught.value.message
    with pytest.raises(UsageError) as caught:
        parsed({"optimizer": "adamw9bit"}, FORMATS)
    assert "adamw-8bit" in caught.value.candidates


VALUES = st.one_of(st.text("0159.-+eE kMBTiG%\x1b€", max_size=8), st.integers(), st.floats(), st.none())


@given(st.dictionaries(st.sampled_from(sorted(BY_NAME)), VALUES, max_size=3))
def test_nothing_but_usage_errors_comes_out(request_: dict[str, object]) -> None:
    try:
        values = parsed(request_, FORMATS)
    except UsageError:
        return
    assert set(values) <= {flag.name for flag in OPTIONS}
    assert parsed(dict(values), FORMATS) == values


def test_flags_are_spelled_with_dashes() -> None:
    assert flag_of("micro_batch") == "--micro-batch"


@pytest.mark.parametrize(
    ("raw", "read"), [("iq3_m", "iq3_m"), ("EXL2-4.0bpw", "exl2-4.0bpw"), ("mlx_q5_g64", "mlx-5bit")]
)
def test_formats_that_only_the_catalog_names_are_choices_too(raw: str, read: str) -> None:
    assert value_of(option("quant"), raw, FORMATS) == read


def test_a_near_format_is_suggested() -> None:
    with pytest.raises(UsageError) as caught:
        value_of(option("quant"), "iq3_q", FORMATS)
    assert "iq3_m" in caught.value.candidates
