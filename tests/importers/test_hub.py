"""Models of the hub: configuration and headers from a small server that speaks as the hub does, well and badly."""

from __future__ import annotations

import json
import os
import struct
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import gguf_files
import pytest

import llmfeas
from llmfeas.errors import DataError
from llmfeas.importers.stores import hub

CONFIG = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "intermediate_size": 128,
    "vocab_size": 100,
    "max_position_embeddings": 256,
    "tie_word_embeddings": False,
}


def tensors() -> dict[str, list[int]]:
    shapes = {"model.embed_tokens.weight": [100, 64], "model.norm.weight": [64], "lm_head.weight": [100, 64]}
    for layer in range(2):
        at = f"model.layers.{layer}."
        shapes |= {f"{at}self_attn.{name}_proj.weight": [64, 64] for name in "qkvo"}
        shapes |= {f"{at}mlp.{name}_proj.weight": [128, 64] for name in ("gate", "up")}
        shapes |= {f"{at}mlp.down_proj.weight": [64, 128]}
        shapes |= {f"{at}{name}_layernorm.weight": [64] for name in ("input", "post_attention")}
    return shapes


def weights(shapes: dict[str, list[int]], promised: int = 0) -> bytes:
    """A file of safetensors with its weights; `promised`: bytes that it says its header has."""
    written, place = {}, 0
    for name, shape in shapes.items():
        size = 2
        for side in shape:
            size *= side
        written[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [place, place + size]}
        place += size
    header = json.dumps(written).encode()
    return struct.pack("<Q", promised or len(header)) + header + bytes(place)


class Hub(BaseHTTPRequestHandler):
    """Files by their names, or what goes wrong with one of them; the library asks for things of its own besides."""

    files: ClassVar[dict[str, bytes]] = {}
    status: ClassVar[dict[str, int]] = {}
    elsewhere: ClassVar[dict[str, str]] = {}
    """Where a redirect leads."""
    ranges: ClassVar[bool] = True
    slow: ClassVar[bool] = False
    asked: ClassVar[list[tuple[str, str, str]]] = []
    sent: ClassVar[int] = 0

    def do_GET(self) -> None:
        name = self.path.rsplit("/", 1)[-1]
        Hub.asked.append((self.path, self.headers.get("Range", ""), self.headers.get("Authorization", "")))
        if name in self.elsewhere:
            self.send_response(302)
            self.send_header("Location", self.elsewhere[name])
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        body = self.files.get(name)
        status = self.status.get(name, 404 if body is None else 206 if self.ranges else 200)
        self.send_response(status)
        body = body or b""
        if status == 206:
            first, last = self.headers["Range"].removeprefix("bytes=").split("-")
            body = body[int(first) : int(last) + 1]
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        for start in range(0, len(body), 1000):
            if self.slow:
                time.sleep(0.05)
            try:
                self.wfile.write(body[start : start + 1000])
            except OSError:
                return
            Hub.sent += 1000

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Hub]]:
    pytest.importorskip("huggingface_hub", reason="the extra llmfeas[hub] is not installed")
    Hub.files = {"config.json": json.dumps(CONFIG).encode(), "model.safetensors": weights(tensors())}
    Hub.status, Hub.elsewhere, Hub.ranges, Hub.slow, Hub.asked, Hub.sent = {}, {}, True, False, [], 0
    running = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{running.server_port}")
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    hub.folder_from_hub.cache_clear()
    yield Hub
    running.shutdown()
    running.server_close()


def test_weights_are_those_of_the_headers(server: type[Hub], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_of_mine")
    found = llmfeas.estimate(model="hf:org/small", device="rtx-4090", task="inference")
    stored = found.scenario.stored
    assert stored is not None
    assert found.scenario.model.name == "org/small"
    elements = sum(side[0] * (side[1] if len(side) > 1 else 1) for side in tensors().values())
    assert found.scenario.model.architecture.layers == 2
    assert stored.tables + stored.head + stored.rest + sum(stored.layers) == 2 * elements
    assert {(token, asked[:8]) for path, asked, token in server.asked if "/resolve/" in path} == {
        ("Bearer hf_of_mine", "bytes=0-")
    }


def test_all_shards_of_an_index_are_read(server: type[Hub]) -> None:
    shapes = tensors()
    names = list(shapes)
    half = {name: shapes[name] for name in names[:10]}, {name: shapes[name] for name in names[10:]}
    files = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    index = {"weight_map": {name: files[place] for place, part in enumerate(half) for name in part}}
    server.files = {
        "config.json": server.files["config.json"],
        "model.safetensors.index.json": json.dumps(index).encode(),
    }
    server.files |= dict(zip(files, map(weights, half), strict=True))
    stored = llmfeas.estimate(model="hf:org/parts", device="rtx-4090", task="inference").scenario.stored
    assert stored is not None
    assert len(stored.layers) == 2


def test_a_configuration_alone_will_do(server: type[Hub]) -> None:
    del server.files["model.safetensors"]
    found = llmfeas.estimate(model="hf:org/bare", device="rtx-4090", task="inference")
    assert found.scenario.stored is None


def test_without_ranges_no_weights_are_read(server: type[Hub], monkeypatch: pytest.MonkeyPatch) -> None:
    server.ranges = False
    server.files["model.safetensors"] += bytes(50_000_000)
    hub.folder_from_hub("hf:org/plain")
    assert server.sent < 40_000_000


WRONG = {
    "page": ({"config.json": b"<html>sign in</html>"}, {}, "a page in place of config.json"),
    "no-json": ({"config.json": b"[1, 2]"}, {}, "something else in place of config.json"),
    "denied": ({}, {"config.json": 401}, "not to be read"),
    "absent": ({}, {"config.json": 404}, "has no config.json"),
    "broken": ({}, {"config.json": 503}, "answers with 503"),
    "lie": ({"model.safetensors": weights(tensors(), promised=10**7)}, {}, "says that its header has 10000000 bytes"),
    "huge": ({"model.safetensors": weights(tensors(), promised=2**60)}, {}, "says that its header has"),
    "short": ({"model.safetensors": b"123"}, {}, "no usable header"),
    "outside": (
        {"model.safetensors.index.json": b'{"weight_map": {"a": "../../x.safetensors"}}'},
        {},
        "no plain files",
    ),
    "long": ({"config.json": b"{" + b" " * (9 * 2**20)}, {}, "more than 8 MiB"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_bad_answer_gives_one_message(server: type[Hub], case: str) -> None:
    files, status, message = WRONG[case]
    server.files |= files
    server.status = status
    with pytest.raises(DataError, match=message):
        llmfeas.estimate(model=f"hf:org/{case}", device="rtx-4090", task="inference")


def gguf_repository(server: type[Hub], *names: str) -> None:
    """Files of one small Llama under these names, and the list of them."""
    head, place = gguf_files.header(*gguf_files.llama())
    server.files = {name.rsplit("/", 1)[-1]: head + bytes(place) for name in names}
    server.files["main"] = json.dumps({"siblings": [{"rfilename": name} for name in ("README.md", *names)]}).encode()


@pytest.mark.parametrize(
    ("text", "names", "taken"),
    [
        ("hf:org/tiny-GGUF", ["tiny-Q8_0.gguf", "tiny-UD-Q4_K_M.gguf", "tiny-Q4_K_M.gguf"], "tiny-Q4_K_M.gguf"),
        ("hf:org/tiny-GGUF:q8_0", ["tiny-Q8_0.gguf", "tiny-Q4_K_M.gguf"], "tiny-Q8_0.gguf"),
        ("hf:org/alone-GGUF", ["alone-IQ2_M.gguf", "mmproj-F16.gguf"], "alone-IQ2_M.gguf"),
        ("hf:org/tiny@main:BF16", ["BF16/tiny-BF16.gguf", "tiny-Q4_K_M.gguf"], "tiny-BF16.gguf"),
    ],
)
def test_a_file_in_gguf_is_known_by_its_header(server: type[Hub], text: str, names: list[str], taken: str) -> None:
    gguf_repository(server, *names)
    folder = hub.folder_from_hub(text)
    assert [file.name for file in folder.iterdir()] == [taken]
    head, _ = gguf_files.header(*gguf_files.llama())
    assert head.startswith((folder / taken).read_bytes())
    found = llmfeas.estimate(model=text, device="rtx-4090", task="inference")
    written = gguf_files.write(folder.parent / "whole.gguf", *gguf_files.llama())
    whole = llmfeas.estimate(model=str(written), device="rtx-4090", task="inference")
    assert found.to_dict()["result"]["memory"] == whole.to_dict()["result"]["memory"]


@pytest.mark.parametrize(
    ("text", "names", "said"),
    [
        ("hf:org/none-GGUF", [], "neither a config.json nor a file in GGUF"),
        ("hf:org/some-GGUF:Q5_K_M", ["some-Q4_K_M.gguf"], "no file of Q5_K_M"),
        ("hf:org/several-GGUF", ["a-Q8_0.gguf", "a-Q6_K.gguf"], "no file of Q4_K_M"),
        ("hf:org/part-GGUF", ["a-Q4_K_M-00001-of-00002.gguf"], "lacks parts"),
        ("hf:org/climbs-GGUF", ["../../a-Q4_K_M.gguf"], "neither"),
    ],
)
def test_what_no_file_in_gguf_answers_is_said(server: type[Hub], text: str, names: list[str], said: str) -> None:
    gguf_repository(server, *names)
    with pytest.raises(DataError, match=said):
        hub.folder_from_hub(text)


def test_a_header_in_gguf_that_is_none_is_said(server: type[Hub]) -> None:
    gguf_repository(server, "a-Q4_K_M.gguf")
    for content in (b"<html>", b"GGUF" + bytes(20) + b"\xff" * 40, server.files["a-Q4_K_M.gguf"][:300]):
        server.files["a-Q4_K_M.gguf"] = content
        hub.folder_from_hub.cache_clear()
        with pytest.raises(DataError, match=r"a-Q4_K_M\.gguf"):
            hub.folder_from_hub("hf:org/a-GGUF")


def test_a_slow_hub_is_given_up(server: type[Hub], monkeypatch: pytest.MonkeyPatch) -> None:
    server.slow = True
    server.files["config.json"] += b" " * 100_000
    monkeypatch.setattr(hub, "SECONDS", 0.2)
    with pytest.raises(DataError, match="takes the hub more than"):
        hub.folder_from_hub("hf:org/slow")


def test_nobody_there_is_said(server: type[Hub], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(DataError, match="cannot be asked"):
        hub.folder_from_hub("hf:org/nobody")


def test_offline_and_ids_need_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(DataError, match="HF_HUB_OFFLINE is set"):
        hub.folder_from_hub("hf:org/name-offline")
    for text in ("hf:", "hf:name", "hf:../../etc", "hf:a/b/c", "hf:a b/c"):
        with pytest.raises(DataError, match="no id of the hub"):
            hub.folder_from_hub(text)


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setitem(__import__("sys").modules, "huggingface_hub", None)
    with pytest.raises(DataError, match="takes huggingface_hub") as caught:
        hub.folder_from_hub("hf:org/without")
    assert "llmfeas[hub]" in caught.value.hint


def test_a_redirect_leads_to_no_file_here_and_takes_no_token_along(
    server: type[Hub], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    server.elsewhere = {"config.json": "file:///etc/hostname"}
    with pytest.raises(DataError, match="cannot be asked"):
        llmfeas.estimate(model="hf:org/to-a-file", device="rtx-4090", task="inference")
    port = int(os.environ["HF_ENDPOINT"].rpartition(":")[2])
    server.elsewhere, server.asked = {"config.json": f"http://localhost:{port}/other"}, []
    with pytest.raises(DataError, match=r"has no config\.json"):
        llmfeas.estimate(model="hf:org/to-another", device="rtx-4090", task="inference")
    tokens = {path: token for path, _, token in server.asked}
    assert tokens["/other"] == "" and "secret" in tokens["/org/to-another/resolve/main/config.json"]
