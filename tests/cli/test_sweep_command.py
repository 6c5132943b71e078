"""`llmfeas sweep`: one line out for each scenario in, whatever is in it."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import INFEASIBLE, Outcome, stored, stored_answer

from llmfeas.cli import scenarios
from llmfeas.cli.scenario_items import MAX_LINE_BYTES, Item, ScenarioLine
from llmfeas.cli.scenarios import item_of_line, source
from llmfeas.cli.workers import SweepOptions, answers
from llmfeas.errors import DataError

pytestmark = pytest.mark.usefixtures("stored_answers")
Run = Callable[..., Outcome]
GOOD = '{"id": "a", "model": "x", "device": "rtx-4070ti"}\n'


@pytest.fixture
def sweep(run: Run, tmp_path: Path) -> Callable[..., Outcome]:
    def call(text: str | bytes, *arguments: str, name: str = "in.ndjson") -> Outcome:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return run("sweep", str(path), *arguments)

    return call


def lines(outcome: Outcome) -> list[dict[str, Any]]:
    return [json.loads(line) for line in outcome.out.splitlines()]


def test_a_scenario_is_a_line_with_its_id_first(sweep: Callable[..., Outcome]) -> None:
    result = sweep(GOOD)
    assert (result.code, result.err) == (0, "")
    (row,) = lines(result)
    assert next(iter(row)) == "id"
    assert row == {"id": "a", **stored(INFEASIBLE)}


def test_stdin_is_read(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(GOOD.encode())))
    assert lines(run("sweep", "-"))[0]["id"] == "a"


def test_a_scenario_without_id_has_its_line_number(sweep: Callable[..., Outcome]) -> None:
    result = sweep('\n{"model": "x", "device": "rtx-4070ti"}\n')
    assert [row["id"] for row in lines(result)] == [1]


@pytest.mark.parametrize(
    ("bad", "id_", "code", "said"),
    [
        ("{", None, "bad-line", "is not JSON"),
        ("[1]", None, "bad-line", "is not an object"),
        ('{"id": 7, "model": "x", "device": "rtx-4090", "model": "y"}', None, "bad-line", "says 'model' twice"),
        ('{"id": 7, "model": "x", "device": "nothing"}', 7, "unknown-device", "unknown device"),
        ('{"id": 7, "model": "x", "device": "rtx-4090", "tokens": -1}', 7, "bad-quantity", "--tokens"),
        ('{"id": 7, "model": "x", "device": "rtx-4090", "tokens": NaN}', 7, "bad-quantity", "--tokens"),
        ('{"id": NaN, "model": "x", "device": "rtx-4090"}', None, "bad-line", "id with a number out of bounds"),
        ('{"id": 7, "model": "x", "device": ["rtx-4090"]}', 7, "bad-value", "--device"),
        ('{"id": 7, "model": "x", "micro_bach": 1, "device": "rtx-4090"}', 7, "unknown-setting", "micro_bach"),
        ("[" * 100_000, None, "bad-line", "is not JSON"),
        ('{"id": ' + "9" * 5000 + "}", None, "bad-line", "is not JSON"),
        ('{"id": [' + "9" * 400 + "]}", None, "bad-line", "a huge number"),
        ('{"id":"' + "x" * (MAX_LINE_BYTES + 5) + '"}', None, "bad-line", "longer than"),
    ],
)
def test_a_bad_line_is_answered_and_the_rest_goes_on(
    sweep: Callable[..., Outcome], bad: str, id_: object, code: str, said: str
) -> None:
    result = sweep(GOOD + bad + "\n" + GOOD)
    assert result.code == 3
    first, wrong, last = lines(result)
    assert first["id"] == last["id"] == "a"
    assert (wrong["id"], wrong["line"], wrong["error"]["code"]) == (id_, 2, code)
    assert said in wrong["error"]["message"]
    assert list(wrong) == ["id", "line", "error"]
    assert result.err == "Error: 1 of 3 scenarios are bad. Their lines in the output say why.\n"


def test_a_summary_names_a_line_that_is_no_scenario_by_its_number(sweep: Callable[..., Outcome]) -> None:
    assert "✗ line 2" in sweep(GOOD + "no json\n", "--format", "table").out


def test_bytes_that_are_no_text(sweep: Callable[..., Outcome]) -> None:
    result = sweep(GOOD.encode() + b'{"model": "\xff"}\n')
    assert result.code == 3
    assert lines(result)[1]["error"]["message"] == "the line is not UTF-8."


def test_a_bug_in_one_scenario_ends_with_1_and_the_others_are_answered(tmp_path: Path, capfd: Any) -> None:
    from llmfeas.cli import main

    path = tmp_path / "x"
    path.write_text(GOOD.replace("rtx-4070ti", "boom") + GOOD, encoding="utf-8")
    assert main(["sweep", str(path)]) == 1
    out, err = capfd.readouterr()
    assert [json.loads(line).get("error", {}).get("code") for line in out.splitlines()] == ["bug", None]
    assert "Traceback" not in err


def test_ids_of_any_kind_come_back(sweep: Callable[..., Outcome]) -> None:
    ids = [1, "x", None, {"a": [1]}, "\ud800", 1.5, True]
    text = "".join(json.dumps({"id": id_, "model": "x", "device": "rtx-4090"}) + "\n" for id_ in ids)
    assert [row["id"] for row in lines(sweep(text))] == ids


def test_csv_has_one_header_for_all_rows(sweep: Callable[..., Outcome]) -> None:
    other = GOOD.replace("rtx-4070ti", "rtx-3090").replace('"a"', '"b"')
    result = sweep(GOOD + other + GOOD.replace("rtx-4070ti", "nothing"), "-f", "csv")
    rows = list(csv.DictReader(io.StringIO(result.out)))
    assert [row["id"] for row in rows] == ["a", "b", "a"]
    assert [row["result.verdict.status"] for row in rows] == ["infeasible", "tight", ""]
    assert [row["error.code"] for row in rows] == ["", "", "unknown-device"]
    assert result.code == 3


def test_yaml_lists_are_crossed(sweep: Callable[..., Outcome]) -> None:
    text = "model: x\ndevice: [rtx-4070ti, rtx-4090]\nmicro_batch: [1, 2]\n"
    result = sweep(text, name="in.yaml")
    assert result.code == 0
    assert [row["id"] for row in lines(result)] == [1, 2, 3, 4]


def items(tmp_path: Path, text: str) -> list[Item]:
    path = tmp_path / "in.yaml"
    path.write_text(text, encoding="utf-8")
    return [one for arrival in source(str(path)).arrivals for one in arrival if isinstance(one, Item)]


def test_yaml_has_blocks_and_ids(tmp_path: Path) -> None:
    text = "- {id: a, model: x, device: [d, e]}\n- id: b\n  model: y\n  device: d\n- {model: z, device: d}\n"
    found = items(tmp_path, text)
    assert [(item.id, item.line, item.request["model"]) for item in found] == [
        ("a-1", 1, "x"),
        ("a-2", 1, "x"),
        ("b", 2, "y"),
        (4, 5, "z"),
    ]
    assert "id" not in found[0].request


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("".join(f"k{n}: [{'1, ' * 100}]\n" for n in range(6)), "cross to 1,000,000,000,000 scenarios"),
        ("[]\n", "in.yaml:1: an empty list: no scenario is in the file"),
        ("just text\n", "in.yaml:1: no mapping of settings"),
        ("- model: x\n- 3\n", "in.yaml:2: no mapping of settings"),
        ("model: \tx: y\n", "in.yaml:1:"),
        ("a: &a [x,x]\nb: !!python/object:os.system [*a]\n", "in.yaml:2:"),
    ],
)
def test_yaml_that_cannot_be_used(sweep: Callable[..., Outcome], text: str, said: str) -> None:
    result = sweep(text, name="in.yaml")
    assert (result.code, result.out) == (3, "")
    assert said in result.err


@pytest.mark.parametrize("path", ["missing.ndjson", ".", "a\0b"])
def test_a_file_that_cannot_be_read(run: Run, path: str) -> None:
    result = run("sweep", path)
    assert (result.code, result.out) == (3, "")
    assert "there is no such file" in result.err or "cannot be read" in result.err


def test_an_empty_file_has_no_answers(sweep: Callable[..., Outcome]) -> None:
    assert sweep("") == Outcome(0, "", "")
    checked = sweep("", "--check")
    assert checked.code == 3 and "nothing was checked" in checked.err


def test_output_to_a_file(sweep: Callable[..., Outcome], tmp_path: Path) -> None:
    path = tmp_path / "out"
    assert sweep(GOOD * 3, "-o", str(path)) == Outcome(0, "", "")
    assert len(path.read_text(encoding="utf-8").splitlines()) == 3


def test_nothing_is_read_before_what_is_there_is_answered() -> None:
    read: list[int] = []

    def endless() -> Iterator[list[Item | ScenarioLine]]:
        number = 0
        while True:
            number += 1
            read.append(number)
            yield [Item(number, number, {"model": "x", "device": "rtx-4090"})]

    stream = answers(endless(), SweepOptions())
    assert [json.loads(next(stream).text)["id"] for _ in range(5)] == [1, 2, 3, 4, 5]
    assert read == [1, 2, 3, 4, 5]


def bad(count: int) -> list[Item | ScenarioLine]:
    return [Item(n, n, {}, DataError("x", f"number {n}")) for n in range(count)]


def test_what_is_there_is_answered_a_few_at_a_time() -> None:
    """The first ones come alone, so that something is seen at once."""
    found = [answer.count for answer in answers(iter([bad(800)]), SweepOptions())]
    assert found == [1, 2, 4, 8, 16, 32, 64, 128, 256, 256, 33]
    assert [answer.count for answer in answers(iter([bad(2), bad(5)]), SweepOptions())] == [1, 1, 4, 1]


def test_several_processes_keep_the_order() -> None:
    found = answers(iter([bad(300), bad(1)]), SweepOptions(), 2)
    assert [json.loads(line)["id"] for answer in found for line in answer.text.splitlines()] == [*range(300), 0]


@pytest.mark.parametrize("cut", [1, 7, 1000])
def test_lines_come_whole_however_they_arrive(cut: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(scenarios, "BLOCK_BYTES", cut)
    monkeypatch.setattr(scenarios, "MAX_LINE_BYTES", 40)
    long = b'{"id": "' + b"x" * 50 + b'"}'
    whole = b'{"id": "' + b"y" * 30 + b'"}'
    path = tmp_path / "in"
    path.write_bytes(b'{"id": 1}\n\n' + long + b"\r\n" + whole + b"\n[]\n" + long + b"\n{}")
    found = [one for arrival in source(str(path)).arrivals for one in arrival]
    read = [item_of_line(one.raw, one.number) if isinstance(one, ScenarioLine) else one for one in found]
    assert [(item.line, item.id if item.error is None else item.error.code) for item in read] == [
        (1, 1),
        (3, "bad-line"),
        (4, "y" * 30),
        (5, "bad-line"),
        (6, "bad-line"),
        (7, 7),
    ]


def test_the_limit_of_crossed_scenarios_can_be_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenarios, "MAX_CROSSED", 4)
    assert len(items(tmp_path, "model: [a, b]\ndevice: [c, d]\n")) == 4
    with pytest.raises(DataError, match="cross to 6 scenarios, more than 4"):
        items(tmp_path, "model: [a, b, c]\ndevice: [c, d]\n")


def test_ladder_and_remedies_only_when_asked_for(
    sweep: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, bool]] = []

    def answer(request: dict[str, object], catalog: None, **extras: bool) -> object:
        asked.append(extras)
        return stored_answer(request)

    monkeypatch.setattr("llmfeas.planning.answer.answer", answer)
    assert lines(sweep(GOOD, "--with", "ladder, remedies"))[0]["id"] == "a"
    assert lines(sweep(GOOD, "--with", "remedies"))[0]["id"] == "a"
    assert sweep(GOOD).code == 0
    nothing = {"ladder": False, "remedies": False, "uses": False}
    assert asked == [{**nothing, "ladder": True, "remedies": True}, {**nothing, "remedies": True}]
    wrong = sweep(GOOD, "--with", "lader")
    assert (wrong.code, wrong.out) == (2, "")
    assert "--with: 'lader' is not one of ladder, remedies, uses." in wrong.err


def test_check_fails_where_a_scenario_does_not_work(sweep: Callable[..., Outcome]) -> None:
    works = GOOD.replace("rtx-4070ti", "rtx-4090")
    assert sweep(works, "--check").code == 0
    result = sweep(works + GOOD, "--check")
    assert result.code == 4 and "1 of 2 scenarios do not work" in result.err
    assert len(lines(result)) == 2
    assert sweep(works + GOOD, "--check", "--quiet") == Outcome(4, "", "")
    assert sweep(works + GOOD).code == 0
    assert sweep(GOOD + "{\n", "--check").code == 3


def test_an_id_of_several_parts_is_echoed_in_csv_too(sweep: Callable[..., Outcome]) -> None:
    line = '{"id": {"run": 3, "of": ["a"]}, "model": "gpt2", "device": "rtx-4090"}\n'
    (row,) = csv.DictReader(io.StringIO(sweep(line, "-f", "csv").out))
    assert json.loads(row["id"]) == {"run": 3, "of": ["a"]}


def test_a_broken_first_line_is_answered_like_any_other(
    sweep: Callable[..., Outcome], tmp_path: Path, run: Any
) -> None:
    result = sweep("id: 1, no JSON\n" + GOOD)
    assert result.code == 3
    assert [line.get("error", {}).get("code") for line in lines(result)] == ["bad-line", None]
    (tmp_path / "in.jsonl").write_text("nonsense\n", encoding="utf-8")
    result = run("sweep", str(tmp_path / "in.jsonl"))
    assert [line["error"]["code"] for line in lines(result)] == ["bad-line"]


def test_an_empty_list_crosses_to_nothing_and_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="2: 'device' is an empty list"):
        items(tmp_path, "model: [a, b]\ndevice: []\n")


TABLE = "id,model,device,micro-batch\na,x,rtx-4070ti,4\n\nb,x,rtx-4070ti,\n"


@pytest.mark.parametrize(
    "text", [TABLE, TABLE.replace(",", ";"), TABLE.replace(",", "\t"), "\ufeff" + TABLE.replace("\n", "\r\n")]
)
@pytest.mark.parametrize("name", ["in.csv", "in.txt"])
def test_a_table_is_a_scenario_a_row(sweep: Callable[..., Outcome], text: str, name: str) -> None:
    result = sweep(text, name=name)
    assert (result.code, result.err) == (0, "")
    assert [row["id"] for row in lines(result)] == ["a", "b"]


def test_cells_of_a_table_are_settings_and_empty_ones_say_nothing(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text('model,device,context\n"gpt2, small",t4,"8k"\ngpt2,t4\n', encoding="utf-8")
    (found,) = source(str(path)).arrivals
    first, second = found
    assert isinstance(first, Item) and first.request == {"model": "gpt2, small", "device": "t4", "context": "8k"}
    assert isinstance(second, Item) and (second.id, second.request) == (2, {"model": "gpt2", "device": "t4"})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("model,device,contxt\nx,t4,1\n", "'contxt' is no setting"),
        ("model,device,model\nx,t4,x\n", "twice"),
        ("\x1b[31m,model\nx,y\n", "is no setting"),
        ("model,device\rgpt2,t4\r", "is no setting"),
    ],
)
def test_a_table_under_a_bad_header_is_refused(sweep: Callable[..., Outcome], text: str, said: str) -> None:
    result = sweep(text, name="in.csv")
    assert result.code == 3 and said in result.err and "\x1b" not in result.err


@pytest.mark.parametrize(
    "row", ["x,t4,1,2,3", '"' + "y" * 200_000 + '",t4', "\0,t4", "x" * (MAX_LINE_BYTES + 9) + ",t4"]
)
def test_a_bad_row_of_a_table_spoils_no_other(sweep: Callable[..., Outcome], row: str) -> None:
    result = sweep(f"model,device\n{row}\nx,rtx-4070ti\n", name="in.csv")
    rows = lines(result)
    assert result.code == 3 and "error" in rows[0] and rows[-1]["result"]
