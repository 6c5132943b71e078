"""Models are found by the names that people have for them: hub ids, other people's uploads, tags, files, words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llmfeas.catalog.named import find_model
from llmfeas.catalog.names.models import typed
from llmfeas.catalog.store import catalog
from llmfeas.errors import UsageError

NAMES = json.loads((Path(__file__).parent.parent / "data" / "model_names.json").read_text())


@pytest.mark.parametrize(("name", "model", "quant"), NAMES["names"])
def test_a_name_is_a_model_in_a_format(name: str, model: str, quant: str) -> None:
    found = find_model(name, catalog()).record
    assert (found.id, found.published_quant) == (model, quant)


@pytest.mark.parametrize(("name", "code"), NAMES["not_answered"])
def test_a_name_that_is_no_models_or_several_is_not_answered(name: str, code: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_model(name, catalog())
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("name", "forbidden"),
    [
        ("prophetnet-large", "gpt2-large"),
        ("llava-1.7-13b", "gpt2-xl"),
        ("funnel-base", "gpt2"),
        ("Qwen4-8B", "qwen2.5-7b"),
        ("google/t5gemma-3-4b-4b", "gemma-3-4b"),
        ("EAGLE3-llama", "llama-3-8b"),
    ],
)
def test_no_other_family_is_suggested(name: str, forbidden: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_model(name, catalog())
    assert forbidden not in caught.value.candidates


def test_every_id_name_and_alias_is_its_own_model() -> None:
    for key, entry in catalog().models.names():
        for name in (key, entry["name"], *entry.get("aliases", ())):
            assert find_model(name, catalog()).record.id == key, name


def test_what_a_name_was_taken_for_is_said_with_its_format() -> None:
    note = find_model("unsloth/Qwen3-8B-unsloth-bnb-4bit", catalog()).note
    assert note == "took 'qwen3-8b' for 'unsloth/Qwen3-8B-unsloth-bnb-4bit', in nf4"


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("qwen:7b", "qwen1.5-7b"),
        ("cogito:8b-v1-preview-llama-q8_0", "cogito-v1-8b"),
        ("deepseek-v2", "deepseek-v2-lite"),
        ("granite3-dense", "granite-3.0-2b"),
        ("wizard-math:70b", "llama-2-70b"),
    ],
)
def test_what_ollama_pulls_means_what_the_same_tag_means(name: str, model: str) -> None:
    assert find_model(name, catalog(), pulled=True).record.id == model
    assert find_model(name if ":" in name else f"{name}:latest", catalog()).record.id == model


@pytest.mark.parametrize(
    ("name", "needed", "quant"),
    [
        ("gemma 4", ("gemma", "4"), ""),
        ("Llama-3_3-Nemotron-Super-49B-v1_5", ("llama", "3.3", "nemotron", "super", "49b"), ""),
        ("Qwen3-Coder-480B-A35B-Instruct-1M-GGUF", ("qwen", "3", "coder", "480b", "a35b"), ""),
        ("command-r7b-12-2024", ("command", "r", "7b", "12"), ""),
        ("model-00001-of-00003.safetensors", ("model",), ""),
        ("Mixtral-8x7B-Instruct-v0.1-4.0bpw-h6-exl2", ("mixtral", "8x7b"), "exl2-4.0bpw"),
    ],
)
def test_versions_sizes_dates_and_formats_are_told_apart(name: str, needed: tuple[str, ...], quant: str) -> None:
    found = typed(name)
    assert (found.needed, found.format) == (needed, quant)


@pytest.mark.parametrize(
    ("name", "makes"),
    [
        ("Qwen/Qwen-Image", "images"),
        ("black-forest-labs/FLUX.1-dev", "images"),
        ("stable-diffusion-xl-base-1.0", "images"),
        ("Wan-AI/Wan2.2-T2V-A14B", "videos"),
    ],
)
def test_what_writes_no_text_is_said_to_be_no_language_model(name: str, makes: str) -> None:
    with pytest.raises(UsageError, match=f"makes {makes}: it is no language model") as caught:
        find_model(name, catalog())
    assert not caught.value.candidates


@pytest.mark.parametrize(("name", "model", "context"), NAMES["contexts"])
def test_the_context_is_that_of_the_weights_that_are_named(name: str, model: str, context: int) -> None:
    found = find_model(name, catalog())
    assert (found.record.id, found.record.context) == (model, context)
    differs = context != catalog().models[model].context
    assert (f"with a context of {context:,} tokens" in (found.note or "")) == differs


def test_contexts_of_names_differ_from_those_of_their_models() -> None:
    for key in catalog().models:
        model = catalog().models[key]
        assert all(named.context != model.context for named in model.contexts), key


def test_a_size_with_an_active_part_that_no_family_is_named_for_says_whose_it_is() -> None:
    with pytest.raises(UsageError) as caught:
        find_model("ReadyArt/Melody1437-26B-A4B", catalog())
    assert caught.value.candidates[0] == "gemma-4-26b-a4b"


def test_what_a_known_model_was_tuned_by_is_not_what_it_is() -> None:
    with pytest.raises(UsageError, match="unknown model"):
        find_model("DavidAU/gemma-3-12b-it-vl-GPT-5.1-High", catalog())
