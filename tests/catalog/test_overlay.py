from __future__ import annotations

import os
from pathlib import Path

import pytest

from llmfeas.catalog.overlay import OverlaidCatalog, use_overlays, with_overlays
from llmfeas.catalog.overlay_file import read_overlay
from llmfeas.catalog.places import overlay_paths, project_file, user_folder
from llmfeas.catalog.search import find_device
from llmfeas.catalog.store import Catalog, built_in, catalog
from llmfeas.errors import DataError
from llmfeas.settle import resolution
from llmfeas.units import GIB


def overlaid(folder: Path, *texts: str) -> Catalog:
    paths = []
    for number, text in enumerate(texts):
        paths.append(folder / f"overlay{number}.yaml")
        paths[-1].write_text(text, encoding="utf-8")
    return with_overlays(built_in(), paths)


def refusal(folder: Path, text: str) -> DataError:
    with pytest.raises(DataError) as caught:
        found = overlaid(folder, text)
        assert isinstance(found, OverlaidCatalog)
        for error in found.problems():
            raise error
    assert caught.value.exit_code == 3
    assert "overlay0.yaml:" in caught.value.message
    return caught.value


def test_an_overlay_that_says_nothing_changes_nothing(tmp_path: Path) -> None:
    found = overlaid(tmp_path, "devices:\nmodels: []\n")
    told = resolution({"model": "gpt2", "device": "t4"}, found).warnings
    assert len(found.overlay_paths) == 1 and not any(note.code == "overlay" for note in told)


def test_without_overlays_it_is_the_catalog_itself() -> None:
    assert with_overlays(built_in(), []) is built_in()


def test_an_entry_is_changed_in_place(tmp_path: Path) -> None:
    found = overlaid(tmp_path, "devices:\n- extends: rtx-4090\n  power_w: 300\n  tflop_per_s: {bf16: 150}\n")
    before, after = built_in().devices["rtx-4090"], found.devices["rtx-4090"]
    assert (after.power_w, after.tflop_per_s.bf16) == (300, 150)
    assert after.tflop_per_s.fp32 == before.tflop_per_s.fp32
    assert after.aliases == before.aliases
    assert len(found.devices) == len(built_in().devices)
    assert built_in().devices["rtx-4090"].power_w == before.power_w
    assert found.devices["rtx-3090"] == built_in().devices["rtx-3090"]


def test_a_new_entry_extends_another_without_taking_its_names(tmp_path: Path) -> None:
    found = overlaid(tmp_path, "devices:\n- {id: my-48gb, name: Modded 4090, extends: rtx-4090, memory_gib: 48}\n")
    device = found.devices["my-48gb"]
    assert (device.memory_gib, device.generation, device.aliases) == (48, "ada", ())
    assert find_device("Modded 4090", found).record is device
    assert find_device("RTX 4090", found).record.id == "rtx-4090"
    assert len(found.devices) == len(built_in().devices) + 1


@pytest.mark.parametrize(
    "entry",
    [
        "{id: mine, name: Mine, extends: rtx-4090, memory_gib: 48}",
        "{id: mine, name: Mine, extends: rtx-3080-10gb, memory_gib: 48}",
        "{id: mine, name: Mine, extends: m4-max-40c, memory_gib: 48}",
        "{id: mine, name: Mine, extends: strix-halo, memory_gib: 48}",
        "{id: mine, name: Mine, generation: generic-cpu, kind: cpu, memory_gib: 48, memory_type: DDR4-3200,"
        " memory_channels: 2, cores: 6, clock_ghz: 3.5, simd: avx2}",
    ],
)
def test_the_memory_that_an_entry_says_is_what_it_has(tmp_path: Path, entry: str) -> None:
    """Whatever its base reports or is sold with."""
    found = resolution({"model": "gpt2", "device": "mine"}, overlaid(tmp_path, f"devices:\n- {entry}\n")).scenario
    assert found.memory_bytes == 48 * GIB
    assert found.device.reported_bytes in (None, 48 * GIB)


def test_a_field_is_told_as_the_overlays_leave_it(tmp_path: Path) -> None:
    entries = ("{extends: rtx-4090, memory_gib: 30}", "{id: my-48gb, name: Mine, extends: rtx-4090, memory_gib: 48}")
    devices, before = overlaid(tmp_path, "devices:\n- " + "\n- ".join(entries)).devices, built_in().devices
    assert [devices.peek(key, "memory_gib") for key in ("rtx-4090", "my-48gb")] == [30, 48]
    assert devices.peek("my-48gb", "backend") == devices.peek("rtx-4090", "backend") == "cuda"
    assert devices.tells("my-48gb", "prices") == before.tells("rtx-4090", "prices")
    assert devices.peek("rtx-3090", "memory_gib") == before.peek("rtx-3090", "memory_gib")


def test_the_same_id_replaces_and_takes_its_generations_defaults(tmp_path: Path) -> None:
    entry = "{id: rtx-4090, name: Mine, generation: ada, kind: consumer, memory_gib: 20, memory_type: GDDR6X,"
    entry += " bandwidth_gb_per_s: 900, tflop_per_s: {fp32: 70}}"
    device = overlaid(tmp_path, f"devices:\n- {entry}\n").devices["rtx-4090"]
    assert (device.name, device.vendor, device.target, device.prices) == ("Mine", "nvidia", "8.9", ())


def test_later_files_win_and_build_on_earlier_ones(tmp_path: Path) -> None:
    first = "devices:\n- {extends: rtx-4090, power_w: 300, launch_usd: 1}\n- {id: mine, name: M, extends: rtx-4090}\n"
    found = overlaid(tmp_path, first, "devices:\n- {extends: rtx-4090, power_w: 200}\n")
    assert (found.devices["rtx-4090"].power_w, found.devices["rtx-4090"].launch_usd) == (200, 1)
    assert found.devices["mine"].power_w == 200


def test_models_prices_defaults_and_efficiencies(tmp_path: Path) -> None:
    found = overlaid(
        tmp_path,
        "models:\n- {id: my-llama, name: My Llama, extends: llama-3-8b, architecture: {layers: 40}}\n"
        "devices:\n- {extends: l4, prices: [{provider: us, usd_per_hour: 0.1}]}\n"
        "generations:\n  ada: {devices_per_node: 2}\n"
        "efficiency:\n  parameters: {}\n",
    )
    assert found.models["my-llama"].architecture.layers == 40
    assert found.devices["l4"].prices[0].usd_per_hour == 0.1
    assert found.devices["rtx-4090"].devices_per_node == 2
    assert found.raw("efficiency") == built_in().raw("efficiency")


def test_the_digest_names_the_overlays(tmp_path: Path) -> None:
    found = overlaid(tmp_path, "devices: []\n")
    assert found.digest.startswith(built_in().digest + " + ")
    assert "overlay0.yaml@" in found.digest


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("- 1\n", 1, "mapping of sections"),
        ("device: []\n", 1, "unknown section"),
        ("devices: {}\n", 1, "list of entries"),
        ("models: []\ndevices:\n- 3\n", 3, "mapping"),
        ("devices:\n- {name: x}\n", 2, "id or extends"),
        ("devices:\n- {id: 3}\n", 2, "text"),
        ("devices:\n- {id: a}\n- {id: a}\n", 3, "duplicate id"),
        ("devices:\n- {id: a, extends: rtx-9999}\n", 2, "no 'rtx-9999'"),
        ("devices:\n- {id: a, extends: b}\n- {id: b, extends: a}\n", 3, "leads back"),
        ("devices:\n- {id: a, extends: a}\n", 2, "no 'a' to extend"),
        ("devices:\n- extends: rtx-4090\n  bandwidth_gb_per_s: 0\n", 3, "greater than 0"),
        ("devices:\n- extends: rtx-4090\n  bandwith: 3\n", 3, "unknown key"),
        ("efficiency: {parameters: {x: {value: 1, nonsense: 2}}}\n", 1, "x.nonsense: unknown key"),
    ],
)
def test_what_is_wrong_is_said_with_file_and_line(tmp_path: Path, text: str, line: int, says: str) -> None:
    error = refusal(tmp_path, text)
    assert says in error.message
    assert f"overlay0.yaml:{line}:" in error.message


def test_a_missing_overlay_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        read_overlay(tmp_path / "none.yaml")


def test_where_overlays_are_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr("sys.platform", "linux")
    project = tmp_path / "project"
    inside = project / "deep" / "er"
    inside.mkdir(parents=True)
    (project / ".git").mkdir()
    monkeypatch.chdir(inside)
    (tmp_path / "env.yaml").write_text("{}")
    monkeypatch.setenv("LLMFEAS_CATALOG", str(tmp_path / "env.yaml"))
    assert overlay_paths() == [tmp_path / "env.yaml"]
    (project / "llmfeas.yaml").write_text("{}")
    folder = user_folder("linux", {"XDG_CONFIG_HOME": str(tmp_path / "config"), "HOME": "/"})
    folder.mkdir(parents=True)
    (folder / "catalog.yaml").write_text("{}")
    given = overlay_paths(["x.yaml"])
    assert given[-3:] == [project / "llmfeas.yaml", tmp_path / "env.yaml", Path("x.yaml")]
    assert overlay_paths(["x.yaml"], user=False) == [project / "llmfeas.yaml", Path("x.yaml")]


@pytest.mark.parametrize(("name", "says"), [("none.yaml", "does not exist"), (".", "is a folder")])
def test_a_file_that_the_variable_names_wrongly_is_told_with_the_variable(
    name: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLMFEAS_CATALOG", str(tmp_path / name))
    with pytest.raises(DataError, match=f"LLMFEAS_CATALOG names .*{says}") as caught:
        overlay_paths()
    assert "--no-user-catalog" in caught.value.hint
    assert overlay_paths(user=False) == []


def test_a_pipe_in_llmfeas_catalog_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setenv("LLMFEAS_CATALOG", str(tmp_path / "pipe"))
    with pytest.raises(DataError, match="which is no file"):
        overlay_paths()
    monkeypatch.setenv("LLMFEAS_CATALOG", os.devnull)
    assert Path(os.devnull) in overlay_paths()


def test_a_project_file_above_the_repository_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "llmfeas.yaml").write_text("{}")
    inside = tmp_path / "elsewhere"
    inside.mkdir()
    assert project_file(inside) is None
    assert project_file(tmp_path) == tmp_path / "llmfeas.yaml"


@pytest.mark.parametrize(
    ("platform", "environment", "expected"),
    [
        ("linux", {"HOME": "/home/me"}, "/home/me/.config/llmfeas"),
        ("linux", {"HOME": "/home/me", "XDG_CONFIG_HOME": "/cfg"}, "/cfg/llmfeas"),
        ("linux", {"HOME": "/home/me", "XDG_CONFIG_HOME": "relative"}, "/home/me/.config/llmfeas"),
        ("darwin", {"HOME": "/Users/me"}, "/Users/me/Library/Application Support/llmfeas"),
    ],
)
def test_the_users_folder(platform: str, environment: dict[str, str], expected: str) -> None:
    assert user_folder(platform, environment).as_posix() == expected


def test_an_installed_catalog_is_that_of_the_process(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("devices:\n- {extends: rtx-4090, power_w: 300}\n")
    try:
        use_overlays([path])
        assert catalog().devices["rtx-4090"].power_w == 300
        assert catalog().overlay_paths == (path,)
    finally:
        use_overlays([])
    assert catalog() is built_in()


def test_a_home_that_nobody_has_is_left_as_it_stands() -> None:
    assert overlay_paths(["~no-such-user/mine.yaml"], user=False)[-1] == Path("~no-such-user/mine.yaml")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("devices:\n- {extends: rtx-4090, generation: {a: 1}}\n", ":2: devices[0].generation"),
        ("devices:\n- {extends: rtx-4090, aliases: 5}\n", ":2: devices[0].aliases"),
        ("devices:\n- {extends: rtx-4090, backend: [cuda]}\n", ":2: devices[0].backend"),
        ("models:\n- {extends: gpt2, family: [a]}\n", ":2: models[0].family"),
        ("generations: {ada: {target: [1]}}\n", ":1: generations[ada].target"),
        ("generations: {ada: {memory: 5}}\n", ":1: generations[ada].memory"),
        ("generations: {mine: 5}\n", ":1: generations[mine]"),
        ("families: {llama: {architecture: {layers: 0}}}\n", ":1: families[llama].architecture.layers"),
        ("efficiency:\n  parameters: {training.matrix: {value: 1.58}}\n", "training.matrix is 1.58"),
        ("efficiency:\n  parameters: {memory.stream: {value: 0}}\n", "memory.stream.value: must be greater than 0"),
        ("efficiency:\n  parameters: {memory.stream: {value: null}}\n", "memory.stream.value"),
        ("efficiency:\n  parameters: {memory.stream: {value: -1}}\n", "memory.stream.value"),
        ("efficiency:\n  parametres: {}\n", "parametres"),
        ("efficiency:\n  parameters: {decode.bandwidth.cuda: {value: 3}}\n", "decode.bandwidth.cuda is 3"),
        ("efficiency:\n  parameters: {memory.stream: {spread: 1.0e+20}}\n", "memory.stream.spread"),
        ("devices:\n- {extends: rtx-4090, bandwidth_gb_per_s: 1.0e+25}\n", ":2: devices[0].bandwidth_gb_per_s"),
        ("devices:\n- {extends: rtx-4090, memory_gib: 1.0e+25}\n", ":2: devices[0].memory_gib"),
        ("devices:\n- {extends: rtx-4090, tflop_per_s: {fp32: 1.0e+25}}\n", ":2: devices[0].tflop_per_s.fp32"),
        ('devices:\n- {extends: rtx-4090, vendor: "a\\e[31m"}\n', ":2: devices[0].vendor"),
        ('devices:\n- {id: "a\\e[31m", extends: rtx-4090}\n', ":2: devices[0].id: must be printable"),
        ('models:\n- {extends: gpt2, aliases: ["\\u202ea"]}\n', ":2: models[0].aliases: must be printable"),
    ],
)
def test_whatever_an_overlay_says_is_checked(text: str, place: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    try:
        overlaid = with_overlays(catalog(), [path])
        messages = [error.message for error in getattr(overlaid, "problems", list)()]
    except DataError as error:
        messages = [error.message]
    assert any(place in message for message in messages), messages


OFFER = "{id: mine, name: Mine, provider: me, usd_per_hour: 2, as_of: '2026-01-01'"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"offers:\n- {OFFER}, device: rtx-409}}\n", "offers[0].device: there is no device 'rtx-409'"),
        ("backends:\n- {extends: cuda, engines: [{engine: vlm}]}\n", "backends[0].engines: there is no engine 'vlm'"),
        (
            "backends:\n- {extends: cuda, engines: [{engine: vllm, tasks: [inference]}]}\n",
            "backends[0].engines: nothing is left for what no choice fits",
        ),
    ],
)
def test_names_of_what_there_is_not_are_faults(text: str, says: str, tmp_path: Path) -> None:
    assert says in refusal(tmp_path, text).message


def test_an_offer_may_be_of_a_device_of_another_overlay(tmp_path: Path) -> None:
    device, offer = "devices:\n- {id: mine-card, extends: rtx-4090}\n", f"offers:\n- {OFFER}, device: mine-card}}\n"
    assert overlaid(tmp_path, offer, device).offers["mine"].device == "mine-card"


def test_an_entry_that_cannot_be_used_is_said_of_where_others_are_asked_for(tmp_path: Path) -> None:
    wrong = (
        "models:\n- {id: mine, name: Mine, family: llama-3, context: 9, dtype: bfloat16, architecture: {layers: -1}}\n"
    )
    found = overlaid(tmp_path, wrong)
    told = [
        note.message for note in resolution({"model": "gpt2", "device": "t4"}, found).warnings if note.code == "overlay"
    ]
    assert any("is left out: " in message and "overlay0.yaml:2" in message for message in told)
    assert all(
        "is left out" not in note.message for note in resolution({"model": "gpt2", "device": "t4"}, catalog()).warnings
    )
