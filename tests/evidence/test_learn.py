"""What a log tells: each program's figures, whatever stands around them, and nothing that it does not say."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.errors import LlmfeasError, UsageError
from llmfeas.evidence.learn import Learned, learned
from llmfeas.evidence.logs import LONGEST_LINE, ReadLog, parsers, read_log
from llmfeas.evidence.printed_options import PrintedOptions

LOGS = Path(__file__).parent.parent / "data" / "logs"
NAMES = sorted(path.name for path in LOGS.iterdir() if path.suffix != ".md")


def text(name: str) -> bytes:
    return (LOGS / name).read_bytes()


def read(data: bytes) -> ReadLog:
    return read_log(io.BytesIO(data))


def told(data: bytes, **given: object) -> Learned:
    return learned(io.BytesIO(data), "a log", given, catalog())


def figures(found: ReadLog) -> dict[str, dict[str, float]]:
    return {
        run.what: {name: pytest.approx(value, rel=1e-3) for name, value in run.measured.items()} for run in found.runs
    }


def test_vllm() -> None:
    found = read(text("vllm.log"))
    room = {"kv_pool_tokens": 452992, "kv_pool_bytes": 55.3 * 2**30, "requests_at_once": 55.3}
    assert figures(found) == {"start-up": room, "decoding 8 requests of 1585 tokens": {"decode_tokens_per_second": 636}}
    start, decoding = found.runs
    assert start.settings["engine_version"] == "0.10.1" and start.settings["context"] == 8192
    assert start.settings["gpu_memory_utilization"] == 0.9 and start.settings["num_devices"] == 1
    assert decoding.settings["concurrency"] == 8 and decoding.samples == 3
    assert found.about["model"] == "meta-llama/Meta-Llama-3-8B-Instruct"


def test_vllm_before_v1() -> None:
    start, decoding = read(text("vllm-0.6.log")).runs
    assert start.measured == {"kv_pool_tokens": 9400 * 16, "requests_at_once": 36.72}
    assert start.settings["enforce_eager"] == "true"
    assert decoding.measured == {"decode_tokens_per_second": 71.5}  # the first window may have begun before the request


def test_sglang() -> None:
    start, decoding = read(text("sglang.log")).runs
    assert start.measured == pytest.approx({"kv_pool_tokens": 392640, "kv_pool_bytes": 53.92 * 2**30})
    assert start.settings["gpu_memory_utilization"] == 0.88 and start.settings["context"] == 40960
    assert decoding.measured == {"decode_tokens_per_second": 137.24} and decoding.samples == 3


def left_out(data: bytes) -> list[tuple[str, int, int]]:
    return [(each.why.split(",")[0], each.line, each.lines) for each in read(data).skipped]


def test_speeds_without_a_figure_are_said() -> None:
    assert left_out(text("vllm.log")) == [
        ("prompts were read in the same ten seconds", 8, 1),
        ("no request ran at their end", 12, 1),
    ]
    busy = text("vllm.log").replace(b"prompt throughput: 0.0", b"prompt throughput: 9.5")
    assert [each.lines for each in read(busy).skipped] == [4, 1] and len(read(busy).runs) == 1
    drafted = text("vllm.log") + b"SpecDecoding metrics: Mean acceptance length: 2.84\n"
    assert [run.what for run in read(drafted).runs] == ["start-up"] and len(read(drafted).skipped) == 3
    assert left_out(text("sglang.log")) == [("their time holds that of a prompt", 6, 1)]
    assert left_out(b"Avg prompt throughput: 1.0 tokens/s, 8 at work\n") == [
        ("their form is not known: one line says reading", 1, 1)
    ]
    with pytest.raises(UsageError, match="prompts were read"):
        told(b"".join(line for line in busy.splitlines(keepends=True) if b"Avg" in line))


def test_sglang_of_today() -> None:
    """0.5.23: arguments as a dictionary, the type of the cache before its tokens."""
    start = (
        b"server_args={'model_path': 'Qwen/Qwen3-8B', 'tp_size': 2, 'mem_fraction_static': 0.88}\n"
        b"KV Cache is allocated. dtype: torch.bfloat16, #tokens: 392640, K size: 26.96 GB, V size: 26.96 GB\n"
    )
    (run,) = read(start).runs
    assert run.measured == pytest.approx({"kv_pool_tokens": 392640, "kv_pool_bytes": 53.92 * 2**30})
    assert run.settings["tp"] == 2 and read(start).about["model"] == "Qwen/Qwen3-8B"


def test_llama_bench() -> None:
    found = read(text("llama-bench.log"))
    assert figures(found) == {
        "pp512": {"prefill_tokens_per_second": 4600.12},
        "tg128": {"decode_tokens_per_second": 131.4},
        "tg128 @ d4096": {"decode_tokens_per_second": 118},
    }
    deep = found.runs[2].settings
    assert (deep["prompt"], deep["context"], deep["quant"], deep["attention"]) == (4096, 4224, "q4_k_m", "flash")
    assert found.about["device"] == "NVIDIA GeForce RTX 3090"
    for json_lines in (text("llama-bench.json"), text("llama-bench.json").replace(b",\n    ", b", ")):
        assert figures(read(json_lines)) == {
            "pp512": {"prefill_tokens_per_second": 10800.12},
            "tg128": {"decode_tokens_per_second": 157.3},
        }


def test_llama_cpp() -> None:
    (run,) = read(text("llama-server.log")).runs
    rates = {"prefill_tokens_per_second": 1024 / 0.28022, "decode_tokens_per_second": 512 / 4.1}
    assert run.measured == pytest.approx({**rates, "peak_bytes": 5685.99 * 2**20})
    assert run.settings["gpu_layers"] == 33 and run.settings["quant"] == "q4_k_m" and run.memory_kind == "allocated"


def test_trainer() -> None:
    (run,) = read(text("trainer.log")).runs
    assert run.measured == pytest.approx({"tokens_per_second": 1.03e6 / 560.5})
    assert run.settings == {
        "model": "meta-llama/Meta-Llama-3-8B",
        "micro_batch": 2,
        "global_batch": 8,
        "seq_len": 490,
    }
    (old,) = read(text("trainer-4.log")).runs
    assert old.measured == pytest.approx({"step_seconds": 1 / 3.925}) and old.settings["global_batch"] == 8


def test_megatron() -> None:
    (run,) = read(text("megatron.log")).runs
    assert run.measured == {"step_seconds": 0.248, "peak_bytes": 11464.34 * 2**20}
    assert run.settings["seq_len"] == 1024 and run.settings["micro_batch"] == 4 and run.settings["num_devices"] == 1


@pytest.mark.parametrize("name", ["nvidia-smi.log", "nvidia-smi.csv"])
def test_nvidia_smi(name: str) -> None:
    found = read(text(name))
    assert found.about["device"] == "NVIDIA GeForce RTX 4090"
    assert found.runs[0].measured == {"peak_bytes": 15803 * 2**20}
    (run,) = read(text("trainer-4.log") + text(name)).runs
    assert run.measured["peak_bytes"] == 15803 * 2**20 and run.measured["step_seconds"] > 0


def test_every_parser_has_a_log_that_it_alone_reads() -> None:
    names = {type(parser).__module__ for parser in parsers()}
    assert len(names) == len(parsers()) >= 7
    assert {run.engine for name in NAMES for run in read(text(name)).runs} >= {
        "vllm",
        "sglang",
        "llama.cpp",
        "megatron",
    }


@pytest.mark.parametrize("name", NAMES)
def test_what_stands_around_changes_nothing(name: str) -> None:
    """Escape codes, carriage returns, other encodings, other programs' lines, a line that ends nowhere."""
    plain = read(text(name))
    lines = text(name).splitlines(keepends=True)
    coloured = b"".join(b"\x1b[32m" + line.rstrip(b"\r\n") + b"\x1b[0m\r\n" for line in lines)
    utf16 = text(name).decode().encode("utf-16")
    noisy = b"\x00 noise\n" + b"INFO: 127.0.0.1 - GET /health 200 OK\n".join(lines)
    for data in (coloured, utf16, noisy, text(name) + b"\n" + lines[0][:-1]):
        assert figures(read(data)) == figures(plain)


@pytest.mark.parametrize("name", NAMES)
def test_a_log_cut_anywhere_gives_figures_or_none(name: str) -> None:
    data, whole = text(name), read(text(name))
    for end in range(0, len(data), max(1, len(data) // 60)):
        for run in (*read(data[:end]).runs, *read(data[end:]).runs):
            assert all(value > 0 for value in run.measured.values())
    assert whole.runs


def test_what_no_engine_prints_is_an_error() -> None:
    for data in (b"", b"\x00" * 100_000, bytes(range(256)) * 99, b"tokens per second: 5\n", b"{" * 50_000):
        with pytest.raises(UsageError) as error:
            told(data, model="gpt2", device="t4")
        assert error.value.code == "nothing-learned"


HOSTILE = (
    b"prompt eval time = 0.00 ms / 99999999999 tokens\n       eval time = 1e-300 ms / 500 tokens\n",
    b"eval time = " + b"9" * 400 + b" ms / 512 tokens\n",
    b"| model | test | t/s |\n" + b"| llama 8B Q4_K - Medium | tg128 | 1e308 |\n" * 900,
    b"Initializing a V1 LLM engine (v0.1) with config: model='../../../etc/passwd', max_seq_len=99999999999999\n"
    b"GPU KV cache size: 1,0,0,0 tokens\n",
    b"INFO engine (v9) model='" + b"a" * 5000 + b"', tensor_parallel_size=-5\nGPU KV cache size: 5 tokens\n",
    b"{'train_runtime': 1e-99, 'train_samples_per_second': 1e99, 'train_steps_per_second': 1e-99}\n",
    b"Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 1e999 tokens/s, Running: 1e999 reqs\n" * 4,
    b"elapsed time per iteration (ms): 0.0 | global batch size: 0 |\n" * 9,
    b"[x] Decode batch. #running-req: 1, #token: 1e99, gen throughput (token/s): 5\n" * 4,
)


@pytest.mark.parametrize("data", HOSTILE)
def test_hostile_logs_end_in_errors_or_figures(data: bytes) -> None:
    try:
        found = told(data, model="llama-3-8b", device="rtx-4090", task="inference")
    except LlmfeasError as error:
        assert error.message.isprintable()
        return
    for run in found.runs:
        assert run.problem is not None or run.figures


def test_a_log_of_megabytes_and_of_endless_lines_is_read_to_its_end() -> None:
    line = b"x" * (20 * LONGEST_LINE) + b"\n"
    noise = b"INFO 127.0.0.1:1234 - POST /v1/chat/completions HTTP/1.1 200 OK " + b"#" * 80 + b"\n"
    found = read(line + noise * 20_000 + text("vllm.log"))
    assert figures(found) == figures(read(text("vllm.log"))) and found.lines > 20_000


def test_only_so_much_of_a_log_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llmfeas.evidence.logs.MOST_BYTES", 65536)
    assert read(b"noise\n" * 50_000).cut
    assert not read(text("vllm.log")).cut


def test_figures_stand_beside_ours_under_the_settings_of_the_log() -> None:
    start, decoding = told(text("vllm.log"), device="h100-sxm").runs
    assert start.scenario["context"] == 8192 and decoding.scenario["concurrency"] == 8
    (figure,) = decoding.figures
    assert figure.measured == 636 and figure.found.low < figure.found.expected < figure.found.high
    assert decoding.row is not None and decoding.row["measured"] == {"decode_tokens_per_second": 636}


def test_given_settings_go_before_those_of_the_log() -> None:
    (run,) = told(text("llama-server.log"), context=4096, quant="q8_0", device="rtx-4090").runs
    assert (run.scenario["context"], run.scenario["quant"], run.scenario["device"]) == (4096, "q8_0", "rtx-4090")


@pytest.mark.parametrize(
    ("name", "given", "code", "said"),
    [
        ("vllm.log", {}, "missing-option", "--device"),
        ("trainer-4.log", {"device": "rtx-4090"}, "missing-option", "--model and --task and --seq-len are missing"),
        ("llama-bench.log", {"model": "llama-3-70b"}, "impossible-measurement", "times what reading"),
    ],
)
def test_what_is_missing_or_cannot_be_is_said(name: str, given: dict[str, Any], code: str, said: str) -> None:
    problem = told(text(name), **given).runs[-1].problem
    assert problem is not None and problem.code == code and said in problem.message + problem.hint


def test_no_file_that_a_log_names_is_opened(tmp_path: Path) -> None:
    """A model of that name would be read, were it given on the command line."""
    trap = tmp_path / "model" / "config.json"
    trap.parent.mkdir()
    trap.write_text("{", encoding="utf-8")
    data = text("vllm.log").replace(b"meta-llama/Meta-Llama-3-8B-Instruct", str(trap.parent).encode())
    problem = told(data, device="h100-sxm").runs[0].problem
    assert problem is not None and problem.code == "unknown-model"


def test_options_that_trainers_print() -> None:
    """Dumps of configurations and banners; what is written first counts."""
    (axolotl,) = read(text("axolotl.log")).runs
    assert axolotl.missing == () and axolotl.settings == {
        "engine": "axolotl",
        "model": "NousResearch/Meta-Llama-3-8B",
        "task": "qlora",
        "quant": "nf4",
        "lora_rank": 32,
        "precision": "bf16-mixed",
        "checkpointing": "full",
        "optimizer": "adamw-8bit",
        "micro_batch": 2,
        "global_batch": 8,
        "seq_len": 4096,
    }
    (unsloth,) = told(text("unsloth.log"), model="llama-3-8b").runs
    assert unsloth.problem is None and unsloth.scenario["device"] == "t4"
    said = {name: unsloth.scenario[name] for name in ("engine", "transformers", "precision", "optimizer", "lora_rank")}
    assert said == {
        "engine": "unsloth",
        "transformers": "4.48",
        "precision": "fp16-mixed",
        "optimizer": "adamw-8bit",
        "lora_rank": 16,
    }


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("--finetuning_type full --optim adamw_torch", {"task": "finetune", "optimizer": "adamw-foreach"}),
        ("tuner_type='lora', lora_rank=8, quant_bits=4", {"task": "qlora", "quant": "nf4", "lora_rank": 8}),
        ("--finetuning_type lora --quantization_bit 8", {"task": "qlora", "quant": "int8"}),
        ("load_in_4bit=True", {}),
        ("max_length=2048, packing=False", {}),
        ("max_length=2048, packing=True", {"seq_len": 2048}),
        ("optim=<OptimizerNames.LION: 'lion_32bit'>", {"optimizer": "lion"}),
        ("optim=no-such-thing lora_r=0 bf16=maybe", {}),
        ("Transformers version: 4.57.1", {"transformers": "4"}),
    ],
)
def test_an_option_is_what_a_trainer_means_by_it(line: str, expected: dict[str, object]) -> None:
    options = PrintedOptions()
    options.take(line)
    assert options.settings() == expected
