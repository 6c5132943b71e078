"""`llmfeas mcp`, asked by the SDK's own client, by none, and by one that sends nonsense."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import Outcome
from jsonschema import Draft202012Validator

import llmfeas
from llmfeas.cli.commands.schema import schemas
from llmfeas.cli.tools import MOST_ROWS, tools
from llmfeas.options import OPTIONS

Run = Callable[..., Outcome]
PAGE = (Path(__file__).parent.parent.parent / "docs" / "agents.md").read_text(encoding="utf-8")
QUESTION = {"model": "gpt2", "device": "rtx-4090", "task": "finetune"}


def answers(use: Callable[[Any], Awaitable[Any]]) -> Any:
    """What a client finds out that is connected to the server in this process."""
    mcp = pytest.importorskip("mcp", reason="pip install 'llmfeas[mcp]'")
    from llmfeas.cli.commands.mcp import server

    async def connected() -> Any:
        async with mcp.Client(server()) as client:
            return await use(client)

    return asyncio.run(connected())


def called(name: str, /, **arguments: object) -> Any:
    async def use(client: Any) -> Any:
        await client.list_tools()  # whose schemas the client then holds the answer to
        return await client.call_tool(name, arguments)

    return answers(use)


def refused(name: str, /, **arguments: object) -> dict[str, Any]:
    answer = called(name, **arguments)
    assert answer.is_error
    error = answer.structured_content["error"]
    assert error["message"][1:] in answer.content[0].text
    return error  # type: ignore[no-any-return]


def test_the_tools_are_those_of_the_page_and_take_all_settings() -> None:
    known = tools()
    assert set(re.findall(r"`(\w+)`", "".join(line for line in PAGE.splitlines() if line.startswith("| `")))) >= set(
        known
    )
    for tool in known.values():
        Draft202012Validator.check_schema(tool.schema)
        assert tool.writes in schemas()
    assert {option.name for option in OPTIONS} <= set(known["estimate"].schema["properties"])
    assert {"models", "task"} <= set(known["compare"].schema["properties"]) >= {"devices"}
    assert "model" not in known["compare"].schema["properties"]


def test_an_agent_need_not_read_much_before_its_first_question() -> None:
    assert sum(len(json.dumps([tool.schema, tool.written])) for tool in tools().values()) < 50_000


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("estimate", {**QUESTION, "explain": True}),
        ("compare", {"models": ["gpt2"], "devices": ["t4", "rtx-4090"], "task": "lora", "sort": "cost", "top": 1}),
        ("plan", {"model": "llama-3-8b", "device": "rtx-4090", "task": "finetune", "keep": ["precision"], "shown": 2}),
        ("solve", {"question": "max-batch", **QUESTION}),
        ("search_models", {"query": "llama", "limit": 2}),
        ("show_model", {"name": "gpt2"}),
        ("search_devices", {"min_memory": "100 GiB", "backend": "rocm"}),
        ("search_offers", {}),
        ("show_backend", {"name": "metal"}),
    ],
)
def test_a_question_is_answered_in_words_and_as_the_schema_says(name: str, arguments: dict[str, object]) -> None:
    answer = called(name, **arguments)
    assert not answer.is_error
    assert answer.content[0].text.startswith("## ")
    Draft202012Validator(schemas()[tools()[name].writes]()).validate(answer.structured_content)


def test_the_answer_is_that_of_the_command() -> None:
    assert called("estimate", **QUESTION).structured_content == llmfeas.estimate(**QUESTION).to_dict()  # type: ignore[arg-type]
    ranking = called("compare", models=["gpt2"], devices=["t4", "rtx-4090"], task="lora", top=1)
    assert [row["device"] for row in ranking.structured_content["result"]["rows"]] == ["rtx-4090"]
    found = called("search_devices", min_memory="100GiB", vendor="amd").structured_content["result"]["rows"]
    assert found
    assert all(row["vendor"].lower() == "amd" and row["memory_gib"] >= 100 for row in found)


def test_a_long_listing_says_that_there_is_more() -> None:
    answer = called("search_devices")
    assert len(answer.structured_content["result"]["rows"]) == MOST_ROWS
    assert answer.structured_content["warnings"][0]["code"] == "rows-left-out"
    assert answer.content[0].text.endswith("more match.")


def test_schemas_are_resources() -> None:
    async def use(client: Any) -> Any:
        names = {str(each.uri).rpartition("/")[2] for each in (await client.list_resources()).resources}
        return names, (await client.read_resource("llmfeas://schema/solve")).contents[0].text

    names, text = answers(use)
    assert names == {tool.writes for tool in tools().values()}
    assert json.loads(text)["title"] == "llmfeas solve"


def test_what_is_wrong_is_an_error_that_helps() -> None:
    assert refused("estimate", model="gpt2", device="rtx-4095")["candidates"] == ["rtx-4090", "rtx-4090d"]
    assert "device" in refused("estimate", model="gpt2")["message"]
    assert refused("estimate", **QUESTION, contxt=5)["code"] == "unknown-setting"
    assert refused("compare", models=["gpt2"], model="gpt2")["candidates"] == ["models"]
    for name, arguments in (
        ("compare", {"models": "gpt2"}),
        ("compare", {"models": [5]}),
        ("compare", {"models": ["gpt2"], "top": 0}),
        ("solve", {"question": "max-fun"}),
        ("search_models", {"querry": "llama"}),
        ("show_model", {"name": ""}),
    ):
        assert refused(name, **arguments)["code"] == "bad-arguments"


@pytest.mark.parametrize(
    "value", [None, True, -1, 1e400, "", "\x1b[31m", ["a"] * 9, {"value": {}}, "9" * 5000, "../" * 2000]
)
def test_nonsense_values_are_errors_or_answers_and_never_bugs(value: object) -> None:
    for name in ("model", "device", "task", "tokens", "micro_batch", "fsdp", "explain"):
        answer = called("estimate", **{**QUESTION, name: value})
        assert not answer.is_error or answer.structured_content["error"]["code"] != "bug", (name, answer)
        assert "\x1b" not in answer.content[0].text


def test_an_unforeseen_error_is_told_and_the_server_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(request: object, explain: bool = False) -> object:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("llmfeas.planning.answer.answer", broken)

    async def use(client: Any) -> Any:
        return [await client.call_tool("estimate", QUESTION), await client.call_tool("show_device", {"name": "t4"})]

    wrong, right = answers(use)
    assert wrong.structured_content["error"]["code"] == "bug"
    assert not right.is_error


def served(*lines: bytes, until: int) -> tuple[int, list[dict[str, Any]]]:
    """What the server writes to these lines, up to the answer of a request, after which stdin ends; its exit code."""
    pytest.importorskip("mcp", reason="pip install 'llmfeas[mcp]'")
    command = [sys.executable, "-m", "llmfeas", "mcp"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        watchdog = threading.Timer(300, process.kill)
        watchdog.start()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"".join(lines))
        process.stdin.flush()
        written: list[dict[str, Any]] = []
        while not written or written[-1]["id"] != until:
            written.append(json.loads(process.stdout.readline()))
        process.stdin.close()
        code = process.wait()
        watchdog.cancel()
    return code, written


def message(id: int, method: str, **params: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode() + b"\n"


def test_nonsense_lines_are_answered_with_errors_and_nothing_ends() -> None:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a test", "version": "1"}}
    code, written = served(
        b"nonsense\n",
        b"\xff\xfe\x00\n",
        b"[" * 100_000 + b"\n",
        b'{"jsonrpc": "1.0"}\n',
        b"x" * 9_000_000 + b"\n",
        message(1, "initialize", **hello),
        b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n',
        message(2, "tools/call", name="nonsense"),
        message(3, "tools/call", name="show_device", arguments="t4"),
        message(4, "nonsense/method"),
        message(5, "tools/call", name="show_device", arguments={"name": "t4"}),
        until=5,
    )
    assert code == 0
    assert [each["error"]["code"] for each in written if each.get("id") is None] == [-32700] * 4 + [-32600]
    by_id = {each["id"]: each for each in written if each.get("id") is not None}
    assert all("error" in by_id[id] for id in (2, 3, 4))
    assert by_id[5]["result"]["structuredContent"]["result"]["id"] == "t4"


def test_without_the_sdk_one_message_says_how_to_install_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    outcome = run("mcp")
    assert outcome.code == 2
    assert "pip install 'llmfeas[mcp]'" in outcome.err


def test_the_code_of_the_page_runs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mcp", reason="pip install 'llmfeas[mcp]'")
    monkeypatch.setenv("PATH", os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])))
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(code, "docs/agents.md", "exec"), {"__name__": "__main__"})
    shown = capsys.readouterr().out
    assert shown.startswith("feasible\nTrue Error: unknown device 'rtx-4095'. Did you mean")
