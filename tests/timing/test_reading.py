"""Models that read texts and write nothing: how fast, in what batches, and when a corpus is done."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import pytest

from llmfeas.catalog.store import built_in
from llmfeas.evidence.compare import scenario_of
from llmfeas.evidence.measurements import Measurement, read_measurements
from llmfeas.feasibility.result import Estimate
from llmfeas.planning.answer import bare_answer
from llmfeas.planning.launch import usual
from llmfeas.planning.plan import plan
from llmfeas.planning.solve import solved
from llmfeas.record import replace
from llmfeas.render.formats.table import rendered
from llmfeas.render.pages.solve import report
from llmfeas.timing.inference import InferenceTime, inference_time
from llmfeas.timing.reading import forward_of, pass_seconds

MEASURED = Path(__file__).parents[2] / "data" / "measurements" / "reading.yaml"


def rows() -> list[Measurement]:
    found, errors = read_measurements([MEASURED])
    assert errors == []
    return [row for row in found if row.weight]


def asked(**more: object) -> Estimate:
    return bare_answer({"model": "bge-large-en-v1.5", "device": "h100-sxm", "task": "inference", **more})


def time_of(found: Estimate) -> InferenceTime:
    assert isinstance(found.time, InferenceTime)
    return found.time


def test_speeds_of_measured_texts_are_met() -> None:
    errors, inside = [], 0
    for row in rows():
        measured = row.measured.prefill_tokens_per_second or 0.0
        speed = inference_time(scenario_of(row)).prefill_tokens_per_second
        errors.append(abs(speed.expected / measured - 1))
        inside += speed.low <= measured <= speed.high
    assert len(errors) > 50
    assert statistics.median(errors) < 0.15
    assert inside > 0.8 * len(errors)


def test_memory_of_measured_texts_is_met() -> None:
    for row in rows():
        if row.measured.peak_bytes:
            found = bare_answer(row.scenario)
            tensors = found.memory.peak_bytes.expected - found.memory.components["runtime_bytes"]
            # beside a workspace of products; ModernBERT's masks over the square of a text are not counted
            least = 0.6 if row.scenario["model"] == "modernbert-base" else 0.92
            assert least * row.measured.peak_bytes - 5e7 < tensors < 1.02 * row.measured.peak_bytes, row.id


def test_texts_are_read_by_what_people_take_in_its_usual_batches() -> None:
    found = asked().scenario
    assert (found.engine, found.concurrency, found.origins["concurrency"]) == ("sentence-transformers", 32, "default")
    assert asked(concurrency=1).scenario.concurrency == 1
    assert asked(model="bge-m3", prompt=8192).scenario.concurrency == 2, "longer texts, fewer of them"
    assert asked(quant="q8_0").scenario.engine == "llama.cpp"
    assert asked(engine="tei").scenario.concurrency == 1


@pytest.mark.parametrize("model", ["qwen3-embedding-0.6b", "gte-qwen2-7b", "mxbai-rerank-large-v2"])
def test_decoders_that_are_asked_for_vectors_write_nothing(model: str) -> None:
    found = asked(model=model)
    assert time_of(found).decode_tokens_per_second.expected == 0.0
    assert found.memory.components["logits_bytes"] == 0.0
    assert found.scenario.output is None


def test_a_server_of_texts_launches_what_public_code_does() -> None:
    server, library = (time_of(asked(engine=name, concurrency=32)) for name in ("vllm", "sentence-transformers"))
    assert server.prefill_tokens_per_second.expected > 0.5 * library.prefill_tokens_per_second.expected


def test_a_batch_hides_the_launches_of_one_text() -> None:
    alone, together = (time_of(asked(concurrency=many, prompt=64)) for many in (1, 64))
    assert alone.prefill_bound_by == "host"
    assert together.prefill_tokens_per_second.expected > 10 * alone.prefill_tokens_per_second.expected


def test_a_pass_takes_what_its_kernels_or_their_launches_take() -> None:
    scenario = asked(engine="transformers", prompt=512).scenario
    host = forward_of(scenario, 512).host_seconds
    short, long = (sum(pass_seconds(scenario, tokens, 512).values()) for tokens in (16.0, 1e6))
    assert host < short < 1.2 * host
    assert long > 100 * host


def test_words_take_time_only_where_texts_are_given() -> None:
    given, texts = (asked(engine=name, concurrency=32) for name in ("transformers", "sentence-transformers"))
    assert time_of(given).prefill_tokens_per_second.expected > time_of(texts).prefill_tokens_per_second.expected


def test_a_corpus_is_done_when_all_its_tokens_are_read() -> None:
    found = asked(tokens="10B", deadline="1h", budget=1)
    speed = time_of(found).prefill_tokens_per_second
    assert found.total_seconds is not None
    assert found.total_seconds.expected == pytest.approx(1e10 / speed.expected)
    assert found.cost.usd is not None and found.cost.price is not None
    rent = found.cost.price.usd_per_device_hour * found.total_seconds.expected / 3600
    assert found.cost.usd.expected == pytest.approx(rent)
    assert (found.verdict.time, found.verdict.budget) == ("over_deadline", "over_budget")
    assert found.result()["time"]["total_seconds"]["expected"] == found.total_seconds.expected


def test_without_a_corpus_there_is_no_end() -> None:
    found = asked()
    assert found.total_seconds is None
    assert found.result()["time"]["total_seconds"] is None


@pytest.mark.parametrize("name", ["tokens", "deadline", "budget"])
def test_what_writes_has_no_corpus(name: str) -> None:
    found = asked(model="llama-3.1-8b", **{name: {"tokens": "1B", "deadline": "1h", "budget": 5}[name]})
    assert [note.code for note in found.warnings if name in note.message] == ["option-unused"]
    assert found.total_seconds is None


@pytest.mark.parametrize("model", ["t5-base", "whisper-small", "bart-large", "t5gemma-s-s", "led-base"])
def test_an_encoder_alone_reads_prompts_and_a_decoder_alone_writes_answers(model: str) -> None:
    scenario = asked(model=model, engine="transformers").scenario
    architecture = scenario.model.architecture
    assert architecture.source is not None
    source = replace(architecture.source, layers=2 * architecture.source.layers)
    found, deeper, short = (
        inference_time(replace(scenario, model=replace(scenario.model, architecture=each)))
        for each in (architecture, replace(architecture, source=source), replace(architecture, layers=1))
    )
    read, twice = (sum(each.prefill_parts.values()) for each in (found, deeper))
    assert 1.8 < twice / read < 2.05
    assert deeper.decode_tokens_per_second == found.decode_tokens_per_second
    assert short.prefill_parts == found.prefill_parts
    faster = short.decode_tokens_per_second.expected / found.decode_tokens_per_second.expected
    assert 0.9 * architecture.layers < faster <= 1.01 * architecture.layers


def test_products_in_tiles_are_a_few_times_as_fast_as_in_fp32() -> None:
    wide, narrow = (
        time_of(asked(device="c7i.4xlarge", precision=precision)).prefill_parts["matrix"]
        for precision in ("fp32", "bf16")
    )
    assert 3 < wide / narrow < 4.2


def test_a_way_to_yes_for_a_corpus_costs_what_the_job_costs() -> None:
    request = {"model": "bge-m3", "device": "rtx-4090", "task": "inference", "tokens": "100B", "deadline": "1d"}
    found = plan({**request, "budget": 1000}, built_in()).result()
    assert found.plans
    for way in found.plans:
        assert way.total_seconds is not None and way.usd is not None
        assert way.usd_per_million_tokens is None


def test_what_is_not_read_in_time_is_said() -> None:
    request = {"model": "bge-m3", "device": "rtx-4090", "task": "inference", "tokens": "100B", "deadline": "1d"}
    found = json.dumps(plan(request, built_in()).to_dict())
    assert "fewer tokens than 100 B: the rest is not read" in found


@pytest.mark.parametrize("task", ["inference", "embed"])
def test_what_reads_for_people_is_launched(task: str) -> None:
    assert usual({"model": "bge-m3", "device": "l4", "task": task}, built_in()).id == "sentence-transformers"


def test_each_device_reads_texts_of_its_own() -> None:
    one, four = (bare_answer({"model": "bge-m3", "device": device, "task": "inference"}) for device in ("l4", "4xl4"))
    assert (four.scenario.tp, four.scenario.pp, four.scenario.concurrency) == (1, 1, 4 * one.scenario.concurrency)
    assert four.memory.peak_bytes.expected == one.memory.peak_bytes.expected
    assert isinstance(one.time, InferenceTime) and isinstance(four.time, InferenceTime)
    four_times = one.time.prefill_tokens_per_second.expected * 4
    assert four.time.prefill_tokens_per_second.expected == pytest.approx(four_times)


def test_the_cheapest_hardware_for_a_corpus_is_priced_by_the_job() -> None:
    request = {"model": "bge-m3", "task": "inference", "tokens": "10B", "deadline": "1d"}
    found = solved("cheapest", request, built_in()).to_dict()
    answer = found["result"]["answer"]
    assert answer["usd_per"] == "job" and 0 < answer["seconds"] <= 86400
    assert "Time" in rendered(report(found, ""))
    endless = solved("cheapest", {"model": "bge-m3", "task": "inference"}, built_in()).to_dict()
    assert endless["result"]["answer"]["usd_per"] == "million tokens"
