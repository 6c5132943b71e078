from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmfeas.catalog.hardware import find_hardware
from llmfeas.catalog.named import find_model
from llmfeas.catalog.search import find_backend, find_device, find_offer, search
from llmfeas.catalog.store import catalog
from llmfeas.errors import UsageError

CATALOG = catalog()


@pytest.mark.parametrize(
    "name",
    [
        "rtx-4070ti",
        "RTX 4070 Ti",
        "rtx-4070-ti",
        "rtx_4070_ti",
        "4070ti",
        "4070 TI",
        "NVIDIA GeForce RTX 4070 Ti",
        "RTX4070Ti",
    ],
)
def test_spellings_of_one_card_mean_that_card(name: str) -> None:
    assert find_device(name, CATALOG).record.id == "rtx-4070ti"


@pytest.mark.parametrize(
    ("name", "device"),
    [
        ("NVIDIA A100-SXM4-40GB", "a100-sxm-40gb"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("Tesla T4", "t4"),
        ("Apple M4 Max", "m4-max-40c"),
        ("m4", "m4"),
        ("7900 XTX", "rx-7900xtx"),
        ("Intel(R) Core(TM) i9-12900K CPU @ 3.20GHz", "core-i9-12900k"),
        ("AMD EPYC 9654", "epyc-9654"),
        ("Gaudi 2", "gaudi2"),
        ("DGX Spark", "gb10"),
    ],
)
def test_names_as_drivers_and_people_write_them(name: str, device: str) -> None:
    assert find_device(name, CATALOG).record.id == device


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("gpt2-small", "gpt2"),
        ("GPT-2 XL", "gpt2-xl"),
        ("llama3 8b", "llama-3-8b"),
        ("Meta-Llama-3-8B", "llama-3-8b"),
        ("meta-llama/Meta-Llama-3-8B-Instruct", "llama-3-8b"),
        ("opt-1.3b", "opt-1.3b"),
        ("OPT 13B", "opt-13b"),
        ("Qwen/Qwen2.5-7B", "qwen2.5-7b"),
    ],
)
def test_models_are_found_as_people_write_them(name: str, model: str) -> None:
    assert find_model(name, CATALOG).record.id == model


def test_a_family_means_its_declared_variant_and_says_so() -> None:
    found = find_device("A100", CATALOG)
    assert found.record.id == "a100-sxm-80gb"
    assert found.note == "took 'a100-sxm-80gb' for 'A100'; there are also a100-sxm-40gb, a100-pcie-40gb, a100-pcie-80gb"
    assert found.others == ("a100-sxm-40gb", "a100-pcie-40gb", "a100-pcie-80gb")


def test_an_exact_name_needs_no_note() -> None:
    assert find_device("RTX 3090", CATALOG).note is None


def test_what_can_mean_several_is_refused_with_all_of_them() -> None:
    with pytest.raises(UsageError) as caught:
        find_device("titan", CATALOG)
    assert caught.value.code == "ambiguous-device"
    assert {"titan-v", "titan-rtx"} <= set(caught.value.candidates)


def test_names_that_begin_as_asked_come_first() -> None:
    with pytest.raises(UsageError) as caught:
        find_model("smollm2", CATALOG)
    assert all(key.startswith("smollm2-") for key in list(caught.value.candidates)[:6])


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("gtp2", "gpt2"),
        ("lamma3", "llama-3-8b"),
        ("falcon9b", "falcon-7b"),
        ("mixtrel", "mixtral-8x7b"),
    ],
)
def test_a_slip_is_met_with_what_was_meant(name: str, near: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_model(name, CATALOG)
    assert next(iter(caught.value.candidates)) == near


def test_an_unknown_device_is_met_with_its_neighbours() -> None:
    with pytest.raises(UsageError) as caught:
        find_device("rtx-4075", CATALOG)
    error = caught.value
    assert (error.code, error.exit_code) == ("unknown-device", 2)
    assert error.message == "unknown device 'rtx-4075'"
    assert error.hint == "Did you mean 'rtx-4070' or 'rtx-4070-super'? See 'llmfeas devices search 407'."
    assert error.candidates == ("rtx-4070", "rtx-4070-super")


@pytest.mark.parametrize(("find", "code"), [(find_model, "model"), (find_backend, "backend"), (find_offer, "offer")])
def test_unknown_names_of_every_kind_are_usage_errors(find, code: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UsageError) as caught:
        find("no such thing at all", CATALOG)
    assert caught.value.code == f"unknown-{code}"


@pytest.mark.parametrize(
    ("name", "device", "count"),
    [
        ("8xh100-sxm", "h100-sxm", 8),
        ("2 x T4", "t4", 2),
        ("4×rtx 3090", "rtx-3090", 4),
        ("7900xtx", "rx-7900xtx", None),
    ],
)
def test_a_count_may_stand_in_front(name: str, device: str, count: int | None) -> None:
    found = find_hardware(name, CATALOG)
    assert (found.device.id, found.count) == (device, count)


def test_no_device_at_all_is_refused() -> None:
    with pytest.raises(UsageError, match="no device at all"):
        find_hardware("0xh100-sxm", CATALOG)


def test_an_offer_is_a_device_with_its_count() -> None:
    found = find_hardware("kaggle-2xt4", CATALOG)
    assert found.offer is not None
    assert (found.device.id, found.count, found.offer.memory_gib, found.offer.hours_per_week) == ("t4", 2, 15, 30)
    colab = find_hardware("colab-t4", CATALOG)
    assert colab.offer is not None and colab.offer.id == "colab-free-t4"


@pytest.mark.parametrize(
    "name", ["", " ", "x" * 100_000, "\x1b[31mred\x1b[0m", "[bold]x[/bold]", "\u202ertx", "9" * 50 + "xh100"]
)
def test_hostile_names_are_echoed_harmlessly(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_hardware(name, CATALOG)
    assert caught.value.message.isprintable()
    assert caught.value.hint.isprintable()
    assert len(caught.value.message) < 200


@given(st.text(max_size=40))
def test_any_name_is_found_or_refused(name: str) -> None:
    try:
        found = find_hardware(name, CATALOG)
    except UsageError as error:
        assert error.message.isprintable()
    else:
        assert found.device.id in CATALOG.devices


@pytest.mark.parametrize("kind", ["devices", "models", "backends", "offers"])
def test_every_entry_is_found_by_all_of_its_names(kind: str) -> None:
    records = getattr(CATALOG, kind)
    find = {"devices": find_device, "models": find_model, "backends": find_backend, "offers": find_offer}[kind]
    for key, record in records.items():
        assert find(key, CATALOG).record is record
        assert find(key.upper(), CATALOG).record is record
        for alias in record.aliases:
            assert find(alias, CATALOG).record.id == record.id, alias


def test_search_lists_what_holds_every_word() -> None:
    found = search(CATALOG.devices, "407")
    assert {"rtx-4070", "rtx-4070-super", "rtx-4070ti", "rtx-4070ti-super"} <= set(found)
    assert all("407" in key for key in found)
    assert {"m3", "m3-pro", "m3-max-40c", "m3-ultra"} <= set(search(CATALOG.devices, "apple m3"))
    assert "mi300x" in search(CATALOG.devices, "rocm cdna3")


@pytest.mark.parametrize(
    ("asked", "maker", "instead"),
    [
        ("gpt-4o-mini", "OpenAI", "gpt-oss-20b"),
        ("GPT 5.2", "OpenAI", "gpt-oss-20b"),
        ("Claude Sonnet 4.5", "Anthropic", None),
        ("gemini-3-pro", "Google", "gemma-4-31b"),
        ("grok 4", "xAI", "grok-2"),
    ],
)
def test_whose_maker_keeps_the_weights_is_told_so(asked: str, maker: str, instead: str | None) -> None:
    with pytest.raises(UsageError, match=f"are not published by {maker}") as caught:
        find_model(asked, CATALOG)
    assert caught.value.code == "unknown-model"
    assert set(caught.value.candidates) <= set(CATALOG.models)
    assert instead is None or instead in caught.value.candidates


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("qwen9", "qwen3."),
        ("llama 7 70b", "llama-4"),
        ("google/gemma-9-4b-it", "gemma-4"),
        ("deepseek-v9", "deepseek-v4"),
        ("kimi-k9", "kimi-k3"),
        ("minimax m9", "minimax-m"),
        ("glm9", "glm-5"),
    ],
)
def test_a_version_later_than_all_is_told_the_last(asked: str, meant: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_model(asked, CATALOG)
    assert caught.value.code == "unknown-model"
    assert all(name.startswith(meant) for name in caught.value.candidates)
    assert caught.value.candidates


def test_a_version_behind_other_words_is_not_the_family_s() -> None:
    with pytest.raises(UsageError) as caught:
        find_model("zephir-9b-instruct-v9", CATALOG)
    assert not any("mistral" in name for name in caught.value.candidates)


def test_search_without_a_hit_gives_what_is_spelled_alike() -> None:
    assert search(CATALOG.devices, "rtx-4075")[0] == "rtx-4070"


def test_an_offer_cannot_be_multiplied() -> None:
    with pytest.raises(UsageError, match="one at a time") as caught:
        find_hardware("8xkaggle-2xt4", CATALOG)
    assert "16xt4" in caught.value.hint


@pytest.mark.parametrize("name", ["gemma 5", "gemma5", "Gemma-5", "qwen 4", "qwen 7", "llama 8", "mistral 7"])
def test_a_version_is_no_size(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_model(name, CATALOG)
    assert caught.value.code == "unknown-model"


@pytest.mark.parametrize(("name", "model"), [("gemma 3 4", "gemma-3-4b"), ("opt 13", "opt-13b"), ("phi 4", "phi-4")])
def test_a_number_behind_a_version_or_a_large_one_is_a_size(name: str, model: str) -> None:
    assert find_model(name, CATALOG).record.id == model
