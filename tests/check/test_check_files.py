"""Files of expectations: what is refused, with which words, at which line and column."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from llmfeas.catalog.document import MAX_BYTES
from llmfeas.catalog.store import catalog
from llmfeas.check.figures import NAMES
from llmfeas.check.read import MAX_JUDGED, read_checks
from llmfeas.check.run import findings
from llmfeas.errors import DataError

FORMATS = catalog().tables.quantization


HEAD = "model: gpt2\ndevice: rtx-4090\n"


def refusal(folder: Path, text: str) -> list[str]:
    """The faults that a file is refused for, one each, without the folder."""
    path = folder / "c.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        findings([str(path)], catalog())
    assert caught.value.exit_code == 3
    lines = f"{caught.value.message}. {caught.value.hint}".replace(f"{folder}/", "").splitlines()
    return [line.strip() for line in lines if "c.yaml" in line]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("model: gpt2\ndevize: t4\nexpect: {fits: true}", "c.yaml:2:1: unknown key 'devize'. Did you mean 'device'"),
        (HEAD, "c.yaml:1:1: nothing is expected"),
        (f"{HEAD}expect: {{}}", "c.yaml:3:1: nothing is expected"),
        (f"{HEAD}expect: {{at: worst}}", "c.yaml:3:1: nothing is expected"),
        (f"{HEAD}expect: {{total_seconds: 3}}", "unknown expectation 'total_seconds'. Here it is 'total'."),
        (f"{HEAD}lr: 1\nexpect: {{fits: true}}", "unknown key 'lr'. It changes neither memory nor time: leave it out."),
        (f"{HEAD}np: 4\nexpect: {{fits: true}}", "unknown key 'np'. Here it is --concurrency."),
        (f"name: small\n{HEAD}expect: {{fits: true}}", "c.yaml:1:1: unknown key 'name'. Here it is 'id'."),
        (f"{HEAD}expect: {{fitz: true}}", "c.yaml:3:10: unknown expectation 'fitz'. Did you mean 'fits'"),
        (f"{HEAD}expect:\n  peak_gib: 3d", "c.yaml:4:3: peak_gib: '3d' has an unknown unit 'd'"),
        (f"{HEAD}expect:\n  peak_gib: {{max: 3d}}", "c.yaml:4:14: peak_gib: '3d' has an unknown unit 'd'"),
        (f"{HEAD}expect: {{total: {{max: 3GiB}}}}", "c.yaml:3:18: total: '3GiB' has an unknown unit 'gib'"),
        (f"{HEAD}expect: {{total: {{max: long}}}}", "c.yaml:3:18: total: 'long' is no duration"),
        (f"{HEAD}expect: {{usd: {{max: 3 GB}}}}", "c.yaml:3:16: usd: '3 GB' has an unknown unit"),
        (
            f"{HEAD}expect: {{peak_gib: {{maxx: 3}}}}",
            "c.yaml:3:21: expect[peak_gib].maxx: unknown key. Did you mean 'max'",
        ),
        (f"{HEAD}expect: {{peak_gib: {{}}}}", "c.yaml:3:10: peak_gib: nothing is expected"),
        (f"{HEAD}expect: {{peak_gib: null}}", "c.yaml:3:10: nothing is expected"),
        (f"{HEAD}expect: {{peak_gib: [1, 2]}}", "c.yaml:3:10: peak_gib is a number, not a list"),
        (f"{HEAD}expect: {{peak_gib: 22}}", "c.yaml:3:10: peak_gib is never exactly 22. Write '22 +- 1 %'"),
        (f"{HEAD}expect: {{status: []}}", "c.yaml:3:10: status: nothing is expected"),
        (f"{HEAD}expect: {{status: [null]}}", "c.yaml:3:10: status is never 'None'"),
        (f"{HEAD}expect: {{status: feasble}}", "c.yaml:3:10: status is never 'feasble'. Did you mean 'feasible'"),
        (f"{HEAD}expect: {{status: {{min: 3}}}}", "c.yaml:3:10: status is a word, not a number"),
        (
            f"{HEAD}expect: {{status: {{value: tight, at: worst}}}}",
            "c.yaml:3:10: status is a word and has no worst end",
        ),
        (f"{HEAD}expect: {{fits: true, at: best}}", "c.yaml:3:22: 'at' is expected or worst"),
        (f"{HEAD}expect: {{decode_tokens_per_second: {{min: 1}}}}", "means nothing for task pretrain"),
        (
            f"{HEAD}task: inference\nexpect: {{total: {{max: 1d}}}}",
            "c.yaml:4:10: total means nothing for task inference",
        ),
        (f"{HEAD}micro_batch: [1, 0]\nexpect: {{fits: true}}", "c.yaml:3:18: --micro-batch: '0' is below"),
        (f"{HEAD}micro_batch: []\nexpect: {{fits: true}}", "c.yaml:3:1: an empty list"),
        ("device: t4\nexpect: {fits: true}", "c.yaml:1:1: 'model' is missing"),
        ("model: llama9\ndevice: t4\nexpect: {fits: true}", "c.yaml:1:1: unknown model 'llama9'"),
        ("model: gpt2\ndevice: rtx-409000\nexpect: {fits: true}", "c.yaml:2:1: unknown device 'rtx-409000'"),
        (f"{HEAD}task: pretrain\nquant: nf4\nexpect: {{fits: true}}", "c.yaml:4:1: "),
        (f"x: &x {{task: lora}}\n{HEAD}expect: {{fits: true}}", "c.yaml:1:1: unknown key 'x'"),
        (f"<<: {{task: lora}}\n{HEAD}expect: {{fits: true}}", "c.yaml:1:1: merge keys (<<) are not read"),
        ("- 3", "c.yaml:1:3: a scenario must be a mapping"),
        ("[]", "c.yaml:1:1: no scenario"),
        ("", "c.yaml:1:1: a scenario must be a mapping"),
        (f"id: [1]\n{HEAD}expect: {{fits: true}}", "c.yaml:1:1: an id must be text or a number"),
        ("a: 1\na: 2", "c.yaml:2:1: duplicate key 'a'"),
        ("a: !!python/object:os.system x", "c.yaml:1:4: has the tag"),
        ("a: [", "c.yaml:2:1: not valid YAML"),
    ],
)
def test_a_fault_has_a_place_and_a_way_out(tmp_path: Path, text: str, expected: str) -> None:
    (line,) = refusal(tmp_path, text)
    assert expected in line


@pytest.mark.parametrize(
    "expect",
    [
        "{peak_gib: {min: 30, max: 20}}",
        "{peak_gib: {min: 30}, peak_gb: {max: 20}}",
        "{peak_gib: {min: 30}, peak_gb: {max: 20, at: worst}}",
        "{total: {max: 1h}, step: {max: 1s}, fits: true, memory: exceeds}",
        "{fits: true, status: infeasible, memory: exceeds}",
        "{fits: false, status: feasible}",
        "{fits: false, status: [feasible, tight]}",
        "{fits: {value: true, at: worst}, memory: tight}",
        "{status: feasible, memory: tight}",
        "{status: feasible, software: unsupported}",
        "{status: tight, deadline: over_deadline}",
        "{tokens_per_second: {max: 5}, at: worst, mfu: {min: 3 %, max: 2 %}}",
    ],
)
def test_expectations_that_no_estimate_meets_are_refused(tmp_path: Path, expect: str) -> None:
    (line,) = refusal(tmp_path, f"{HEAD}expect: {expect}\n")
    assert "contradicts" in line or "exclude each other" in line


@pytest.mark.parametrize(
    "expect",
    [
        "{peak_gib: {min: 1, max: 20}}",
        "{peak_gib: {min: 1}, peak_gb: {min: 2, at: worst}}",
        "{tokens_per_second: {min: 5}, at: worst}",
        "{fits: true, status: infeasible}",
        "{fits: {value: false, at: worst}, memory: tight}",
        "{status: [feasible, infeasible], memory: exceeds}",
        "{fits: true, memory: [exceeds, tight]}",
    ],
)
def test_expectations_that_can_hold_together_are_taken(tmp_path: Path, expect: str) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(f"{HEAD}expect: {expect}\n", encoding="utf-8")
    assert read_checks(str(path), FORMATS).blocks


def test_every_fault_is_told_at_once(tmp_path: Path) -> None:
    text = "- {id: a, model: gpt2, expect: {fits: 3}}\n- {id: a, model: gpt2, device: t4, expect: {usd: 3d}}\n"
    lines = refusal(tmp_path, text)
    assert [line.split(": ")[0] for line in lines] == ["c.yaml:1:3", "c.yaml:1:33", "c.yaml:2:4", "c.yaml:2:45"]
    assert "duplicate id 'a'" in lines[2]


def test_of_many_unknown_names_the_first_are_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Guessing what a name meant is what takes long; a file of nothing but unknown names stays quick."""
    asked: list[str] = []

    def near(name: str, *rest: object) -> list[str]:
        asked.append(name)
        return ["device"]

    monkeypatch.setattr("llmfeas.check.read.get_close_matches", near)
    monkeypatch.setattr("llmfeas.check.read.MOST_HINTED", 50)
    lines = refusal(tmp_path, f"{HEAD}{''.join(f'key{n}: 1{chr(10)}' for n in range(500))}expect: {{fits: true}}\n")
    assert lines[0].endswith("unknown key 'key0'. Did you mean 'device'?")
    assert len(asked) < 200


def test_an_alias_bomb_is_refused(tmp_path: Path) -> None:
    rows = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    rows += [f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]" for old, new in zip("abcdefgh", "bcdefghi", strict=True)]
    (line,) = refusal(tmp_path, "\n".join(rows))
    assert "expands to too many values" in line


def test_a_huge_file_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    with path.open("wb") as stream:
        stream.truncate(100_000_000)
    with pytest.raises(DataError, match=f"larger than {MAX_BYTES // 10**6} MB"):
        read_checks(str(path), FORMATS)


def test_lists_that_cross_to_too_many_are_refused(tmp_path: Path) -> None:
    axes = "".join(
        f"{name}: [{', '.join(map(str, range(1, 101)))}]\n" for name in ("micro_batch", "seq_len", "lora_rank")
    )
    (line,) = refusal(tmp_path, f"{HEAD}{axes}expect: {{fits: true}}\n")
    assert f"more than {MAX_JUDGED:,}" in line


def test_anchors_are_fine_where_they_are_few(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    block = "{model: gpt2, device: t4, micro_batch: 1, expect: &all {parameters: 124439808}}"
    path.write_text(f"- {block}\n- {{model: gpt2, device: l4, expect: *all}}\n", encoding="utf-8")
    assert [finding.ok for finding in findings([str(path)], catalog()).expectations] == [True, True]


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    for path in (tmp_path / "none.yaml", tmp_path):
        with pytest.raises(DataError):
            read_checks(str(path), FORMATS)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(alphabet=st.sampled_from("amxfit :-[]{},&*!|>'\"\n\t#%+0.e~"), max_size=60))
def test_any_text_is_read_or_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(f"{HEAD}expect: {text}", encoding="utf-8")
    try:
        read_checks(str(path), FORMATS)
    except DataError as error:
        assert "c.yaml" in error.message


SCALARS = st.sampled_from(
    [None, True, False, 0, -1, 1e30, 22, "22", "3d", "24 GB", "1 +- 3 %", "true", "tight", "auto", ""]
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["min", "max", "value", "at", "is"]), inner, max_size=3)
    ),
    max_leaves=4,
)


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.dictionaries(st.sampled_from([*NAMES, "at", "other"]), VALUES, min_size=1, max_size=4))
def test_any_expectation_is_read_or_refused(tmp_path: Path, expect: dict[str, object]) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(json.dumps({"model": "gpt2", "device": "t4", "expect": expect}), encoding="utf-8")
    try:
        assert read_checks(str(path), FORMATS).blocks
    except DataError as error:
        assert "c.yaml:1:" in error.message
