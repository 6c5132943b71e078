from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from llmfeas.catalog.document import read_yaml
from llmfeas.catalog.files import Section
from llmfeas.catalog.hardware import find_hardware
from llmfeas.catalog.integrity import TABLES, problems
from llmfeas.catalog.names.devices import machines
from llmfeas.catalog.names.machines import _providers as providers
from llmfeas.catalog.names.model_index import index_of_models
from llmfeas.catalog.names.model_search import _models as index_of_names
from llmfeas.catalog.overlay import with_overlays
from llmfeas.catalog.packing import TOLD, packed
from llmfeas.catalog.records import merged
from llmfeas.catalog.search import index_of
from llmfeas.catalog.store import Catalog, catalog, data_directory
from llmfeas.contract import plain
from llmfeas.errors import DataError

DEVICE = """
- id: {id}
  name: Some Card
  generation: some
  kind: consumer
  memory_gib: 8
  memory_type: GDDR6
  bandwidth_gb_per_s: 100
  tflop_per_s: {{fp32: 10, fp16: 10, fp16_matrix: 40, fp16_matrix_fp32: 20, bf16: 20}}
"""
GENERATIONS = "generations:\n  some: {vendor: nvidia, backend: cuda, target: '8.9', devices_per_node: 8}\n"


def hardware(tmp_path: Path, text: str) -> Catalog:
    (tmp_path / "hardware.yaml").write_text(text, encoding="utf-8")
    return Catalog(tmp_path)


def one_device(tmp_path: Path, old: str = "", new: str = "") -> Catalog:
    return hardware(tmp_path, GENERATIONS + "devices:" + DEVICE.format(id="card").replace(old, new) + "offers: []\n")


def refusal(tmp_path: Path, old: str, new: str) -> DataError:
    with pytest.raises(DataError) as caught:
        one_device(tmp_path, old, new).devices["card"]
    assert caught.value.exit_code == 3
    return caught.value


def test_an_entry_inherits_from_its_generation(tmp_path: Path) -> None:
    card = one_device(tmp_path, "  kind:", "  devices_per_node: 2\n  kind:").devices["card"]
    assert (card.vendor, card.backend, card.target, card.devices_per_node) == ("nvidia", "cuda", "8.9", 2)


def test_merging_goes_deep_and_alters_neither() -> None:
    base, changes = {"a": {"b": 1, "c": 2}, "d": [1]}, {"a": {"c": 3}, "d": [2], "e": None}
    assert merged(base, changes) == {"a": {"b": 1, "c": 3}, "d": [2], "e": None}
    assert base == {"a": {"b": 1, "c": 2}, "d": [1]}


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ("per_s: 100", "per_s: 0", 10, "devices[card].bandwidth_gb_per_s: must be greater than 0, not 0"),
        ("per_s: 100", "per_s: -3", 10, "devices[card].bandwidth_gb_per_s: must be greater than 0, not -3"),
        ("per_s: 100", "per_s: '100'", 10, 'devices[card].bandwidth_gb_per_s: must be a number, not "100"'),
        ("  bandwidth_gb_per_s: 100\n", "", 4, "devices[card].bandwidth_gb_per_s: is missing"),
        ("kind: consumer", "kind: gamer", 7, "devices[card].kind: must be 'consumer', 'workstation'"),
        ("fp32: 10", "fp32: {a: 1}", 11, "devices[card].tflop_per_s.fp32: must be a number"),
        ("bf16: 20", "bf16: 20, fp8: 161", 4, "devices[card]: tflop_per_s.fp8 (161) is above 80"),
        ("bf16: 20", "bf16: 20, int8: 161", 4, "devices[card]: tflop_per_s.int8 (161) is above 80"),
        ("_fp32: 20", "_fp32: 80", 4, "devices[card]: tflop_per_s.fp16_matrix_fp32 (80) is above 40"),
        ("gib: 8", "gib: 8\n  memory_reported_mib: 8193", 4, "devices[card]: memory_reported_mib (8193) is above"),
        ("name: Some Card", "name: ''", 5, "devices[card].name: must not be empty"),
        ("name: Some Card", "name: S\n  released: 2019", 6, "devices[card].released: must be text"),
    ],
)
def test_what_no_device_can_be_is_refused_with_file_line_and_field(
    tmp_path: Path, old: str, new: str, line: int, says: str
) -> None:
    assert refusal(tmp_path, old, new).message.startswith(f"hardware.yaml:{line}: {says}")


def test_an_unknown_key_is_met_with_the_near_one(tmp_path: Path) -> None:
    error = refusal(tmp_path, "bandwidth_gb_per_s: 100", "bandwith_gb_per_s: 100")
    assert "devices[card].bandwith_gb_per_s: unknown key" in error.message
    assert "Did you mean 'bandwidth_gb_per_s'" in error.hint
    error = refusal(tmp_path, "bf16: 20", "bf16: 20, fp16_matrx: 3")
    assert error.message.startswith("hardware.yaml:11: devices[card].tflop_per_s.fp16_matrx: unknown key")
    assert "Did you mean 'fp16_matrix'" in error.hint


def test_a_wrong_default_is_found_where_it_stands(tmp_path: Path) -> None:
    text = GENERATIONS.replace("devices_per_node: 8", "devices_per_node: none") + "devices:" + DEVICE.format(id="card")
    with pytest.raises(
        DataError, match=r"hardware.yaml:2: generations\[some\].devices_per_node: must be a whole number"
    ):
        hardware(tmp_path, text).devices["card"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("devices:" + DEVICE.format(id="x") + DEVICE.format(id="x"), "hardware.yaml:11: devices[1]: duplicate id 'x'"),
        ("devices: 3", "hardware.yaml:1: devices: must be a list of entries"),
        ("devices:\n- name: x\n", "hardware.yaml:2: devices[0]: an entry needs an id"),
        ("- 1\n- 2\n", "hardware.yaml:1: not a mapping of sections"),
        ("", "hardware.yaml:1: not a mapping of sections"),
        ("devices:\n\t- id: x", "hardware.yaml:2: a tab where YAML wants spaces"),
    ],
)
def test_a_file_that_is_no_catalog_is_refused(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(DataError) as caught:
        list(hardware(tmp_path, text).devices)
    assert caught.value.message.startswith(says)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"hardware.yaml: there is no such file"):
        list(Catalog(tmp_path).devices)


def test_whole_directories_are_checked_for_names_and_references(tmp_path: Path) -> None:
    devices = DEVICE.format(id="one").replace("name: Some", "aliases: [shared name]\n  name: Some") + DEVICE.format(
        id="two"
    ).replace("name: Some", "aliases: [Shared-Name]\n  name: Some")
    offers = "offers:\n- {id: deal, name: A deal, provider: somebody, device: thre}\n"
    (tmp_path / "models.yaml").write_text("models: []\n")
    (tmp_path / "backends.yaml").write_text("backends: []\n")
    (tmp_path / "offers.yaml").write_text(offers)
    hardware(tmp_path, GENERATIONS.replace("some:", "other:") + "devices:" + devices)
    found = [error.message for error in problems(tmp_path)]
    assert any("devices[two]: the name 'sharedname' belongs to 'one'" in message for message in found)
    assert any("devices[one].generation: there is no generation 'some'" in message for message in found)
    assert any("offers[deal].device: there is no device 'thre'" in message for message in found)


def test_the_shipped_catalog_is_valid() -> None:
    assert [error.message for error in problems(data_directory())] == []


def numbers(record: object) -> str:
    """What a record looks like with each number as it is written: 80 is no 80.0."""
    return json.dumps(plain(record), default=str)


@pytest.fixture(scope="module")
def of_a_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data as a wheel carries them."""
    folder = tmp_path_factory.mktemp("wheel")
    for name, text in packed(data_directory()).items():
        (folder / f"{name}.json").parent.mkdir(exist_ok=True)
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
    return folder


def test_packed_json_gives_the_same_records(of_a_wheel: Path) -> None:
    ready, checked = Catalog(of_a_wheel), catalog()
    for kind in ("devices", "models", "backends", "offers"):
        ours, theirs = getattr(ready, kind), getattr(checked, kind)
        assert list(ours) == list(theirs)
        assert all(ours[key] == theirs[key] for key in ours)
        if kind != "backends":
            assert all(numbers(ours[key]) == numbers(theirs[key]) for key in ours)
        assert dict(ours.names()) == dict(theirs.names())
    for name in TABLES:
        assert json.loads(json.dumps(ready.raw(name), default=dict)) == checked.raw(name)


def test_packed_data_tell_fields_as_their_entries_do(of_a_wheel: Path) -> None:
    plain = catalog()
    for kind, fields in (("devices", TOLD["devices"]), ("offers", TOLD["offers"])):
        ours, theirs = getattr(Catalog(of_a_wheel), kind), getattr(plain, kind)
        for field in fields:
            if field.endswith("?"):
                ask = field[:-1]
                assert [ours.tells(key, ask) for key in ours] == [theirs.tells(key, ask) for key in theirs]
            else:
                assert [ours.peek(key, field) for key in ours] == [theirs.peek(key, field) for key in theirs]
        assert all(isinstance(each, Section) for each in ours._raw.values())


def test_packed_names_are_taken_apart_as_they_are_at_each_start(of_a_wheel: Path) -> None:
    told = json.loads((of_a_wheel / "names.json").read_text(encoding="utf-8"))
    entries = dict(catalog().models.names())
    assert entries.keys() <= told.keys()
    assert index_of_models(entries.items(), told) == index_of_models(entries.items())
    with pytest.raises(ValueError):
        index_of_models(entries.items(), {name: said[:2] for name, said in told.items()})


def test_packed_names_are_looked_up_as_those_of_a_working_tree(of_a_wheel: Path) -> None:
    ready, checked = Catalog(of_a_wheel), catalog()
    for kind in ("models", "devices", "offers"):
        ours, theirs = getattr(ready, kind), getattr(checked, kind)
        assert ours.indexed()
        assert not theirs.indexed()
        assert index_of(ours).to_dict() == index_of(theirs).to_dict()
        assert index_of(ours).names == index_of(theirs).names
    ours, theirs = (index_of_names(each.models) for each in (ready, checked))
    assert ours.names == theirs.names
    assert ours.to_dict() == json.loads(json.dumps(theirs.to_dict()))
    assert machines(ready.devices) == machines(checked.devices)
    assert providers(ready) == providers(checked)


def test_names_of_an_overlay_are_found_beside_packed_ones(of_a_wheel: Path, tmp_path: Path) -> None:
    overlay = tmp_path / "own.yaml"
    overlay.write_text("devices:\n  - {id: my-card, extends: rtx-4090, name: Purple Card}\n", encoding="utf-8")
    laid_over = with_overlays(Catalog(of_a_wheel), [overlay])
    assert find_hardware("purple card", laid_over).device.id == "my-card"
    assert find_hardware("RTX 3090", laid_over).device.id == "rtx-3090"


def test_packed_data_needs_neither_yaml_nor_pydantic(tmp_path: Path) -> None:
    (tmp_path / "hardware.json").write_text(json.dumps(read_yaml(data_directory() / "hardware.yaml").data))
    script = (
        "import sys; from pathlib import Path; from llmfeas.catalog.store import Catalog;"
        "from llmfeas.catalog.hardware import find_hardware;"
        f"found = find_hardware('RTX 4070 Ti', Catalog(Path({str(tmp_path)!r})));"
        "print(found.device.memory_gib, sorted({'yaml', 'pydantic', 'rich', 'click'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "12 []"


def test_the_digest_tells_catalogs_apart(tmp_path: Path) -> None:
    first = one_device(tmp_path).digest
    assert first == Catalog(tmp_path).digest
    assert first != one_device(tmp_path, "memory_gib: 8", "memory_gib: 9").digest
    assert len(first) == 12


def test_other_files_are_given_as_plain_data(tmp_path: Path) -> None:
    (tmp_path / "claims.yaml").write_text("claims: [{id: one}]\n")
    assert Catalog(tmp_path).raw("claims") == {"claims": [{"id": "one"}]}


WINDOWED = {
    *("mistral-7b", "openchat-3.5", "zephyr-7b", "hermes-2-pro-mistral-7b", "openhermes-2.5-mistral-7b", "idefics2-8b"),
    *("e5-mistral-7b", "sfr-embedding-mistral", "sfr-embedding-2-r", "gritlm-7b", "bge-en-icl"),
    "openai-privacy-filter",
    *(
        "phi-3-mini",
        "phi-mini-moe",
        "llava-phi-3-mini",
        "recurrentgemma-2b",
        "recurrentgemma-9b",
        "lara-4-mini",
        "lfm3-1.7b",
    ),
    *("lfm3-vl-2b", "starcoder2-3b", "starcoder2-7b", "starcoder2-15b", "phi-3-medium"),
    *("starling-lm-7b", "mistrallite-7b", "mistral-7b-openorca", "seallm-7b-v2", "longformer-base", "longformer-large"),
    *("phi-4-mini-flash", "nemotron-labs-dory-4b", "typhoon-7b", "voxtral-mini-4b-realtime"),
}
"""Mistral 7B v0.1 and what came of it, Phi-3 for 4096 tokens, layers between recurrent ones, and Longformer."""


def test_windows_over_all_attention_are_published_ones() -> None:
    # the class MistralConfig has a window of 4096 where a configuration says null, as all since v0.2 do
    for model in catalog().models.values():
        window, pressed = model.architecture.window, model.architecture.compressed_attention
        if window is not None and window.full == 0 and window.size < (model.context or 0) and not pressed:
            assert model.id in WINDOWED
