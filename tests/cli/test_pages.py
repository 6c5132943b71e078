"""Pages and pictures: one file that is valid and fetches nothing, in which names from outside stay text."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import llmfeas
from llmfeas.catalog.store import catalog
from llmfeas.planning.answer import bare_answer
from llmfeas.planning.curves import memory_over_length, speed_over_batch
from llmfeas.render.curves import further
from llmfeas.render.drawing import Picture, Scale
from llmfeas.render.formats import html, svg
from llmfeas.render.pages.sweep import MOST_ROWS, Summary
from llmfeas.render.pictures import pictures
from llmfeas.render.report import Bar, Column, Heading, Pair, Phrase, Report, Table, Topic, Verbatim

EMPTY = {"meta", "rect", "line", "path", "polyline", "polygon"}
HOSTILE = "</title><script>alert(1)</script>\"'&<img src=x onerror=y>"
ASKS = (
    ("estimate", "-m", "gpt2-xl", "-d", "rtx-4070ti"),
    ("estimate", "-m", "llama-3-8b", "-d", "rtx-4090", "-t", "inference", "--explain"),
    ("estimate", "-m", "llama-3-70b", "-d", "64xh100-sxm", "-t", "pretrain", "--pp", "4"),
    ("compare", "-m", "gpt2", "-d", "t4", "-d", "a100-sxm-40gb", "-d", "h100-sxm", "-t", "lora"),
    ("plan", "-m", "gpt2-xl", "-d", "rtx-4070ti"),
    ("solve", "max-batch", "-m", "gpt2", "-d", "t4"),
    ("models", "search", "gpt2"),
)


class Tags(HTMLParser):
    """The elements of a page, which are closed in the order in which they were opened."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.seen: dict[str, int] = {}
        self.ids: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        assert not {name for name in named if name.startswith("on") or name in ("src", "href")}, tag
        self.seen[tag] = self.seen.get(tag, 0) + 1
        if named.get("id"):
            self.ids.append(str(named["id"]))
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in EMPTY:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag not in EMPTY:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def read(page: str) -> Tags:
    tags = Tags()
    tags.feed(page)
    tags.close()
    assert tags.open == []
    assert len(set(tags.ids)) == len(tags.ids)
    assert "script" not in tags.seen and "link" not in tags.seen
    assert not any(word in page for word in ("http:", "https:", "@import", "url("))
    return tags


@pytest.mark.parametrize("ask", ASKS, ids=" ".join)
def test_an_answer_is_one_small_valid_page(run: Any, ask: tuple[str, ...]) -> None:
    result = run(*ask, "-f", "html")
    assert (result.code, result.err) == (0, "")
    assert len(result.out.encode()) < 150_000
    tags = read(result.out)
    assert tags.seen["h1"] == tags.seen["main"] == 1
    told = " ".join(" ".join(tags.words).split())
    for line in run(*ask).out.splitlines():
        for word in line.split():
            if word.isalpha() and len(word) > 3:
                assert word in told, word


SWEPT = (
    {"id": HOSTILE, "model": "gpt2", "device": "t4", "task": "lora"},
    {"id": 2, "model": "gpt2x", "device": "t4"},
    {"id": 3, "model": "llama-3-70b", "device": "rtx-4090", "task": "lora"},
    {"id": 4, "model": "bge-m3", "device": "2xt4", "task": "inference"},
)


@pytest.mark.parametrize("format", ["html", "table", "markdown"])
def test_a_sweep_has_a_summary(run: Any, tmp_path: Path, format: str) -> None:
    path, target = tmp_path / "in.ndjson", tmp_path / "out"
    path.write_text("".join(json.dumps(row) + "\n" for row in SWEPT), encoding="utf-8")
    result = run("sweep", str(path), "--format", format, "-o", str(target))
    assert (result.code, result.out) == (3, "")
    text = target.read_text(encoding="utf-8")
    if format == "html":
        tags = read(text)
        assert "img" not in tags.seen
        text = "".join(tags.words)
        assert HOSTILE in text
    for words in ("Sweep of 4 scenarios", "2 feasible", "1 infeasible", "1 not answered", "unknown model 'gpt2x'"):
        assert words in text.replace("\N{NO-BREAK SPACE}", " ")


def test_of_a_long_sweep_all_are_counted_and_the_first_shown() -> None:
    summary = Summary()
    line = json.dumps({"id": 1, "error": {"message": "no", "hint": ""}})
    summary.add(f"{line}\n" * (MOST_ROWS + 5))
    assert (summary.counts.total(), len(summary.rows)) == (MOST_ROWS + 5, MOST_ROWS)
    assert "205 not answered" in summary.report().context


def test_names_from_outside_stay_text() -> None:
    phrase = Phrase(HOSTILE, "tight", signed=True)
    blocks = (
        Topic(label=HOSTILE, paragraphs=((phrase,),), bars=(Bar(7.0, HOSTILE, HOSTILE),), items=((phrase,),)),
        Topic(label="", pairs=(Pair(HOSTILE, (phrase,)), Pair(f"--{HOSTILE}", ()))),
        Table(columns=(Column(title=HOSTILE), Column(title="bar")), rows=((phrase, Bar(-1.0)),)),
        Verbatim(label=HOSTILE, text=HOSTILE),
        Heading(title=HOSTILE, verdict=phrase, context=(HOSTILE,)),
    )
    tags = read(html.rendered(Report(title=HOSTILE, verdict=phrase, context=(HOSTILE,), blocks=blocks)))
    assert "".join(tags.words).count(HOSTILE) == 19
    assert "img" not in tags.seen


def test_every_picture_stands_alone_and_says_in_words_what_it_shows() -> None:
    cluster = llmfeas.estimate("llama-3-8b", "16xh100-sxm", task="finetune", pp=2)
    ranking = llmfeas.compare(["gpt2"], ["t4", "a100-sxm-40gb", "h100-sxm"], task="lora")
    shown = (*pictures(cluster.to_dict()), *pictures(ranking.to_dict()))
    assert [picture.name for picture in shown] == ["memory", "layout", "devices"]
    stand_alone(shown)


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (
            {"device": "16xh100-sxm", "task": "finetune", "pp": 2},
            "8 data-parallel ranks of this side by side, pipeline 2",
        ),
        ({"device": "16xh100-sxm", "task": "finetune", "tp": 8, "pp": 2}, "tensor parallel 8, pipeline 2"),
        (
            {"device": "8xh100-sxm", "task": "inference", "tp": 2, "pp": 1},
            "4 copies of this side by side, tensor parallel 2",
        ),
        (
            {"model": "qwen3-30b-a3b", "device": "8xh100-sxm", "task": "inference", "tp": 1, "pp": 1, "ep": 8},
            "8 data-parallel ranks of this side by side, expert parallel 8",
        ),
    ],
    ids=str,
)
def test_a_cluster_is_copies_only_where_each_holds_the_whole_model(ask: dict[str, object], said: str) -> None:
    found = bare_answer({"model": "llama-3-8b", **ask}).to_dict()
    layout = next(picture for picture in pictures(found) if picture.name == "layout")
    count = str(ask["device"]).split("x")[0]
    assert layout.summary == f"{count} devices: {said}."


@pytest.mark.parametrize(
    ("ask", "names"),
    [
        ({"model": "llama-3-8b", "device": "rtx-4090", "task": "qlora"}, ["step", "length", "speed", "roofline"]),
        (
            {"model": "llama-3-8b", "device": "h100-sxm", "task": "inference", "concurrency": 16},
            ["length", "speed", "waits", "roofline"],
        ),
        ({"model": "qwen3-8b", "device": "8xh100-sxm", "task": "grpo"}, ["step", "length", "speed", "roofline"]),
        ({"model": "bge-m3", "device": "rtx-4090", "task": "inference"}, ["length", "roofline"]),
        (
            {"model": "qwen3-8b", "device": "rtx-4070ti", "task": "inference", "gpu_layers": 0},
            ["length", "speed", "waits"],
        ),
    ],
    ids=["qlora", "server", "grpo", "encoder", "host"],
)
def test_a_question_is_followed_further(ask: dict[str, Any], names: list[str]) -> None:
    shown = (*further(ask, llmfeas.estimate(**ask), catalog()),)
    assert [picture.name for picture in shown] == names
    stand_alone(shown)


def stand_alone(shown: tuple[Picture, ...]) -> None:
    """Hold that each picture is whole by itself and stays within its frame."""
    for picture in shown:
        root = ElementTree.fromstring(svg.rendered(shown, picture.name))
        title, words, style, *marks = root
        assert (title.text, words.text) == (picture.title, picture.summary)
        assert style.text and len(marks) > 5
        _, _, width, height = map(float, root.attrib["viewBox"].split())
        for mark in marks:
            assert -1 <= float(mark.get("x", "0")) <= width, mark.attrib
            assert -1 <= float(mark.get("y", "0")) <= height, mark.attrib


def test_the_parts_of_memory_are_as_long_as_they_are_large() -> None:
    found = llmfeas.estimate("gpt2-xl", "rtx-4070ti", task="finetune")
    root = ElementTree.fromstring(svg.rendered(pictures(found.to_dict())))
    widths = [float(each.attrib["width"]) for each in root.iter() if each.get("height") == "44.0"]
    sizes = sorted((size for size in found.memory.components.values() if size), reverse=True)
    assert [round(width / widths[0], 2) for width in widths] == [round(size / sizes[0], 2) for size in sizes]


def test_a_picture_is_asked_for_by_its_name(run: Any, tmp_path: Path) -> None:
    ask = ("estimate", "-m", "gpt2", "-d", "t4", "-t", "lora", "--picture")
    assert "Memory over tokens" in run(*ask, "length", "-f", "svg").out
    missing = run(*ask, "beauty", "-f", "svg", "-o", str(tmp_path / "x.svg"))
    assert (
        missing.code == 2
        and "There is memory, step, length, speed, roofline." in missing.err
        and not [*tmp_path.iterdir()]
    )
    assert run(*ask, "memory").code == 2
    assert run("compare", "-m", "gpt2", "-d", "t4", "-f", "svg").code == 2


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (0.0, 13.7), (2.0, 9e9), (0.0, 0.0)])
@pytest.mark.parametrize("powers", [False, True])
def test_an_axis_has_a_few_round_ticks_within_it(low: float, high: float, powers: bool) -> None:
    axis = Scale(low or (1e-3 if powers else 0.0), high or (2e-3 if powers else 0.0), 0, 100, powers=powers)
    ticks = [*axis.ticks()]
    assert 1 <= len(ticks) <= 12
    assert all(-0.5 <= axis(tick) <= 100.5 for tick in ticks)


def test_a_notebook_shows_the_page() -> None:
    shown = llmfeas.estimate("gpt2", "t4", task="lora")._repr_html_()
    assert shown.startswith("<iframe") and "Memory of one device" in shown


@pytest.mark.parametrize(
    "ask",
    [
        {"model": "qwen3-8b", "device": "rtx-4090", "task": "inference"},
        {"model": "llama-3-70b", "device": "64xh100-sxm", "task": "pretrain"},
    ],
    ids=["inference", "training"],
)
def test_memory_grows_with_the_length(ask: dict[str, Any]) -> None:
    """All else stays as the answer has it: the format of the weights, the layout, the batch."""
    found = llmfeas.estimate(**ask)
    name, points = memory_over_length(ask, found, catalog())
    sizes = [memory.peak_bytes.expected for _, memory in points]
    assert len(points) > 4 and sizes == sorted(sizes)
    assert dict(points)[float(getattr(found.scenario, name))] == found.memory


def test_what_is_worked_on_at_once_ends_where_memory_does() -> None:
    ask = {"model": "llama-3-8b", "device": "rtx-4090", "task": "lora"}
    found = llmfeas.estimate(**ask)
    name, answers = speed_over_batch(ask, found, catalog())
    assert name == "micro_batch" and dict(answers)[float(found.scenario.micro_batch)].memory == found.memory
    assert all(one.memory.peak_bytes.expected <= one.memory.usable_bytes for _, one in answers)
