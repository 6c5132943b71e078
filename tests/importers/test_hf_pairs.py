"""Encoder-decoders: what their classes hold and compute, what a training step keeps, and what requests to them take."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import llmfeas
from llmfeas.catalog.architecture import Model
from llmfeas.catalog.store import catalog
from llmfeas.errors import DataError, UsageError
from llmfeas.importers.hf.config import model_from_config
from llmfeas.importers.hf.families import family, table
from llmfeas.memory.training import training_memory
from llmfeas.record import replace
from llmfeas.scenario import Scenario
from llmfeas.workload.cache import kv_cache_bytes
from llmfeas.workload.flops import inference_flop, step_flop
from llmfeas.workload.parameters import parameters
from training_scenarios import CARD

DATA = json.loads((Path(__file__).parent.parent / "data" / "pair_counts.json").read_text())


def read(folder: Path, config: dict[str, Any]) -> Model:
    (folder / "config.json").write_text(json.dumps({"is_encoder_decoder": True, **config}))
    return model_from_config(folder)


def kind(row: dict[str, Any]) -> str:
    return str(row["config"]["model_type"])


def test_every_type_is_counted() -> None:
    pairs = {kind for kind in table()["families"] if (record := family(kind)) and record.encoder_decoder}
    counted_with_encoders = {"cohere_asr", "canary_decoder", "moonshine"}  # tower_counts.json: parameters alone
    assert pairs - counted_with_encoders == {kind(row) for row in (*DATA["types"], *DATA["counted"])}


@pytest.mark.parametrize("row", DATA["counted"], ids=kind)
def test_parameters_equal_those_of_the_class(tmp_path: Path, row: dict[str, Any]) -> None:
    assert parameters(read(tmp_path, row["config"])).total == row["parameters"]


def test_experts_of_an_encoder_are_held_and_few_of_them_run(models: dict[str, Model]) -> None:
    few, many = (models[key].architecture for key in ("switch-base-8", "switch-base-128"))
    assert few.reader is not None
    assert many.reader is not None
    assert parameters(many.reader).total > 10 * parameters(few.reader).total
    assert parameters(many.reader).active - parameters(few.reader).active == 6 * 120 * 768  # the routers alone


@pytest.mark.parametrize("row", DATA["types"], ids=kind)
def test_parameters_and_work_equal_those_of_the_class(tmp_path: Path, row: dict[str, Any]) -> None:
    model = read(tmp_path, row["config"])
    assert parameters(model).total == row["parameters"]
    found = step_flop(model.architecture, 1, row["tokens"], kernel="eager", dropout=0.0)
    assert found.forward == row["forward"]
    # the first convolution over sound has no input that a gradient goes to
    assert found.backward == pytest.approx(row["backward"], rel=0.015 if kind(row) == "whisper" else 1e-12)


@pytest.mark.parametrize("row", DATA["catalog"], ids=lambda row: str(row["id"]))
def test_the_catalog_counts_as_the_class(models: dict[str, Model], row: dict[str, Any]) -> None:
    model = models[row["id"]]
    assert parameters(model).total == row["total"]
    assert row["of"] in model.aliases
    assert row["head"] is not model.architecture.tied or model.architecture.tied


def step(row: dict[str, Any]) -> str:
    keys = ("precision", "attention", "checkpointing", "micro_batch", "seq_len")
    return "-".join((kind(row), *(str(row[key]) for key in keys)))


@pytest.mark.parametrize("row", DATA["memory"], ids=step)
def test_tracked_training_steps_are_met(tmp_path: Path, row: dict[str, Any]) -> None:
    """T5's norms in plain 16 bits keep what is not modelled, and what Whisper's encoder gave has a name until the loss
    exists; all else is within half a percent."""
    model = read(tmp_path, row["config"])
    settings = {key: value for key, value in row.items() if key not in ("config", "peak_tensor_bytes")}
    model = replace(model, architecture=model.architecture.reading(row["seq_len"]))
    asked = Scenario(
        model=model,
        device=CARD,
        tables=catalog().tables,
        memory_bytes=80e9,
        host_memory_bytes=256e9,
        task="pretrain",
        global_batch=row["micro_batch"],
        **settings,
    )
    bound = {"t5": 0.03 if row["precision"] == "bf16" else 0.006, "whisper": 0.008, "led": 0.01}.get(kind(row), 0.006)
    assert training_memory(asked).bytes == pytest.approx(row["peak_tensor_bytes"], rel=bound)


def test_both_caches_are_kept(models: dict[str, Model]) -> None:
    """Of each decoder layer the tokens written and all positions of the source, keys and values in 16 bits."""
    whisper, t5 = models["whisper-tiny"].architecture, models["t5-small"].architecture
    assert kv_cache_bytes(whisper, 100) == 4 * 2 * 384 * (100 + 1500) * 2
    assert kv_cache_bytes(t5.reading(300), 100) == 6 * 2 * 512 * (100 + 300) * 2


def test_the_encoder_reads_once_and_the_decoder_writes(models: dict[str, Model]) -> None:
    t5 = models["t5-base"].architecture
    short, long = (inference_flop(t5, prompt, 1).model for prompt in (100, 200))
    one, two = (inference_flop(t5, 100, answer).model for answer in (100, 199))
    assert short is not None and long is not None and one is not None and two is not None
    reader = parameters(t5.reader).total if t5.reader else 0
    # matrices alone, twice each; what the scores add is small beside them
    assert long - short == pytest.approx(2 * 100 * reader, rel=0.07)
    assert two - one == pytest.approx(2 * 99 * (parameters(t5).total - reader), rel=0.07)


def test_what_an_encoder_reads_is_its_prompt() -> None:
    found = llmfeas.estimate(model="flan-t5-base", device="rtx-4090", task="inference", prompt=400, output=50)
    assert (found.scenario.prompt, found.scenario.output, found.scenario.context) == (400, 50, 50)
    sound = llmfeas.estimate(model="whisper-large-v3", device="rtx-4090", task="inference")
    assert (sound.scenario.prompt, sound.scenario.engine) == (1500, "transformers")
    with pytest.raises(UsageError, match="1500 positions of any input"):
        llmfeas.estimate(model="whisper-large-v3", device="rtx-4090", task="inference", prompt=300)


def test_an_encoder_may_read_more_than_its_decoder_writes() -> None:
    found = llmfeas.estimate(model="led-large", device="rtx-4090", task="inference", prompt=16000)
    assert (found.scenario.prompt, found.scenario.context) == (16000, 512)
    with pytest.raises(UsageError, match="beyond the 16384 learned positions"):
        llmfeas.estimate(model="led-large", device="rtx-4090", task="inference", prompt=16385)


def test_engines_without_them_are_refused() -> None:
    found = llmfeas.estimate(model="whisper-large-v3", device="rtx-4090", task="inference", engine="llama.cpp")
    assert found.verdict.status == "unsupported"
    assert any("has no model of the architecture" in note.message for note in found.verdict.reasons)


def test_what_is_not_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"of encoder-decoders t5, .* are known, not fsmt"):
        read(tmp_path, {"model_type": "fsmt"})
    with pytest.raises(DataError, match="two vocabularies"):
        read(tmp_path, {"model_type": "marian", "decoder_vocab_size": 77})
    with pytest.raises(DataError, match="feed_forward_proj"):
        read(tmp_path, {"model_type": "t5", "feed_forward_proj": "tanh"})


@pytest.mark.parametrize("inner", ["bart", "florence2_language"])
def test_what_reads_images_before_an_encoder_is_read_as_its_encoder_decoder(tmp_path: Path, inner: str) -> None:
    sizes = {"d_model": 768, "encoder_layers": 6, "decoder_layers": 6, "encoder_ffn_dim": 3072, "decoder_ffn_dim": 3072}
    heads = {"encoder_attention_heads": 12, "decoder_attention_heads": 12, "vocab_size": 51289}
    found = read(tmp_path, {"model_type": "florence2", "text_config": {"model_type": inner, **sizes, **heads}})
    # Florence2ForConditionalGeneration of transformers 5.24 on the meta device, without its encoder of images
    assert parameters(found).total == 140_206_848


def test_an_encoder_of_images_counts_once_beside_two_stacks(models: dict[str, Model]) -> None:
    architecture = models["florence-2-base"].architecture
    without = replace(architecture, tower_parameters=0)
    assert parameters(architecture).total - parameters(without).total == architecture.tower_parameters
