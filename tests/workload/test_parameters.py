from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from llmfeas.catalog.architecture import Model
from llmfeas.catalog.store import catalog
from llmfeas.workload.parameters import block_parameters, parameters

ROWS = {
    row["id"]: row
    for row in json.loads((Path(__file__).parent.parent / "data" / "param_counts.json").read_text())["rows"]
}


WITHOUT_A_CLASS = {
    "gte-multilingual-reranker-base",
    "minicpm-reranker",
    "qwen3-vl-reranker-2b",
    "qwen3-vl-reranker-8b",
    "mimo-7b",
    "kimi-vl-a3b",
    "kimi-k2-0905",
    "kimi-k2-thinking",
    "exaone-3.5-2.4b",
    "exaone-3.5-7.8b",
    "exaone-3.5-32b",
    "ling-mini-2.0",
    "ling-flash-2.0",
    "ling-1t",
    "internlm2.5-7b",
    "internlm2.5-20b",
    "minicpm4-8b",
    "minicpm4.1-8b",
    "sarvam-30b",
    "step-3.5-flash",
    "baichuan2-7b",
    "baichuan2-13b",
    "chatglm3-6b",
    "grok-1",
    "grok-2",
    "voxtral-small-24b",
    "internlm2.5-1.8b",
    "smallthinker-4b-a0.6b",
    "nemotron-3-nano-omni-30b-a3b",
}
"""Models whose public code is no class of transformers, so that nothing counted them but this project."""
WITH_MORE_IN_THEIR_FILES = {
    "cosmos-reason2-2b",
    "dbrx",
    "deepseek-llm-7b",
    "h2o-danube3-500m",
    "h2o-danube3-4b",
    "kanana-nano-2.1b",
    "rnj-1-8b",
    "salamandra-2b",
    "salamandra-7b",
    "mimo-v2.5",
    "mimo-v2.6-flash",
    "mistral-small-22b",
    "ornith-1.0-35b",
    "ornith-1.0-9b",
    "ornith-1.5-35b-a3b",
    "ornith-1.5-397b",
    "ornith-1.5-9b",
    "qwen3-vl-embedding-2b",
    "qwen3-vl-embedding-8b",
    "step-3.7-flash",
}
"""Models whose published files hold more or less than the model (a head written twice, MTP, no encoder), or were not
found: their architecture is that of a counted one, or of a config.
"""
OF_A_TABLE = {
    "bge-reranker-v2.5-gemma2",
    "camembert-base",
    "e5-base-v2",
    "e5-large-v2",
    "e5-small-v2",
    "krikri-8b",
    "ling-lite-1.5",
    "llama-3.1-minitron-4b-depth",
    "llama-3.1-minitron-4b-width",
    "mimo-vl-7b",
    "minerva-7b",
    "minicpm-o-4.5",
    "minicpm4-0.5b",
    "ms-marco-minilm-l12-v2",
    "santacoder",
    "starcoderbase-1b",
    "allam-7b",
    "arabert-base",
    "biobert-base",
    "colbert-v2",
    "deepseek-prover-v2-7b",
    "deepseek-vl2-27b",
    "deepseek-vl2-tiny",
    "eeve-10.8b",
    "fastvlm-7b",
    "glm-4.7-flash-reap-23b-a3b",
    "granite-embedding-125m",
    "herbert-base",
    "indobert-base",
    "internvl2-1b",
    "joycaption-beta-one",
    "kobert-base",
    "llm-jp-3-1.8b",
    "llm-jp-3-150m",
    "llm-jp-4-33b",
    "maya1-3b",
    "molmo2-o-7b",
    "mxbai-embed-de-large",
    "nv-embed-v2",
    "oellm-9b",
    "opencoder-8b",
    "ovis2.5-9b",
    "paraphrase-multilingual-minilm-l12-v2",
    "riva-translate-4b",
    "rubert-base",
    "sarashina2.2-3b",
    "sbert-large-nlu-ru",
    "step3-vl-10b",
    "teuken-7b",
    "typhoon-7b",
    "vibevoice-1.5b",
    "glm-4.7-reap-218b-a32b",
    "mmbert-base",
    "mmbert-small",
    "seallm-7b-v2",
    "mistral-7b-openorca",
    "nemotron-nano-12b-v2-vl",
    "llama-guard-4-12b",
    "snowflake-arctic",
    "a.x-4.0-72b",
    "internvl3.5-241b-a28b",
    "intern-s1-mini",
    "intern-s1",
    "granite-4.0-tiny-preview",
    "apriel-1.6-15b",
    "ministral-org-3b",
    "a.x-4.0-light",
    "alia-40b",
    "all-minilm-l12-v2",
    "amd-llama-135m",
    "apertus-v1.5-70b",
    "apertus-v1.5-8b",
    "ax-k2",
    "baichuan-7b",
    "beam-1.0-501b-a23b",
    "bge-en-icl",
    "bge-multilingual-gemma2",
    "chandra-ocr",
    "chandra-ocr-2",
    "chatglm2-6b",
    "codeqwen1.5-7b",
    "command-a-plus",
    "command-a-vision",
    "aya-23-35b",
    "command-r-35b",
    "cosmos-reason1-7b",
    "cosmos-reason2-32b",
    "deepseek-llm-67b",
    "deepseek-v4-flash-vision",
    "deepseek-v4.1-flash",
    "deepseek-vl2-small",
    "e5-mistral-7b",
    "edge0-8b-a1b",
    "eurobert-2.1b",
    "eurobert-210m",
    "eurobert-610m",
    "eurollm-1.7b",
    "exaone-3.0-7.8b",
    "falcon-h1-1.5b-deep",
    "foundation-sec-8b",
    "llm-jp-4-8b",
    "falcon-h1r-7b",
    "falcon2-11b",
    "glm-4.5-air-reap-82b",
    "glm-4.6-reap-218b-a32b",
    "glm-4.6-reap-268b-a32b",
    "glm-ocr",
    "goliath-120b",
    "granite-20b-code",
    "granite-34b-code",
    "granite-3b-code",
    "granite-8b-code",
    "granite-docling-258m",
    "granite-embedding-278m",
    "granite-embedding-311m-multilingual-r2",
    "granite-embedding-97m-multilingual-r2",
    "granite-embedding-english-r2",
    "granite-embedding-small-english-r2",
    "granite-swash-2b",
    "granite-swash-3b-a600m",
    "granite-vision-4.1-4b",
    "gte-base",
    "gte-base-en-v1.5",
    "gte-large-en-v1.5",
    "gte-qwen2-7b",
    "gte-small",
    "harrier-oss-v1-270m",
    "harrier-oss-v1-27b",
    "helium-1-2b",
    "hunyuan-ocr",
    "hy4-preview",
    "hyperclovax-seed-0.5b",
    "hyperclovax-seed-think-14b",
    "hyperclovax-seed-think-32b",
    "idefics2-8b",
    "internlm-7b",
    "internlm2-20b",
    "internlm2-7b",
    "internvl2-26b",
    "internvl2.5-2b",
    "internvl2.5-4b",
    "internvl2.5-8b",
    "internvl3-9b",
    "internvl3.5-14b",
    "internvl3.5-1b",
    "internvl3.5-gpt-oss-20b",
    "jais-2-70b",
    "jina-embeddings-v5-text-nano",
    "k-exaone-2.0-750b-a37b",
    "kanana-2-30b-a3b",
    "koe5",
    "kolibri-1",
    "kure-v1",
    "laguna-m.1",
    "lfm2-vl-1.6b",
    "lfm2-vl-3b",
    "lfm2.5-vl-3b",
    "lfm2.5-vl-450m",
    "lfm3-1.7b",
    "lfm3-vl-2b",
    "ling-2.5-1t",
    "ling-2.6-1t",
    "ling-3.0-flash",
    "ling-3.0-flash-vl",
    "ling-3.0-tiny",
    "llama-160m",
    "llama-68m",
    "llama-embed-nemotron-8b",
    "llama-nemotron-embed-1b-v2",
    "llava-llama-3-8b",
    "llava-phi-3-mini",
    "midm-2.0-base",
    "midm-2.0-mini",
    "mimo-v2.5-pro",
    "mimo-v2.6-distill-qwen-9b",
    "mimo-v2.6-pro",
    "mineru2.5-1.2b",
    "minicpm-2b",
    "minimax-m2-reap-162b-a10b",
    "minimax-m2-reap-172b-a10b",
    "minimax-m2.5-reap-172b-a10b",
    "minimax-m2.7-reap-172b-a10b",
    "minimax-vl-01",
    "mistral-large-4",
    "molmo-7b-d",
    "muse-spark-816b-a42b",
    "nanbeige4-3b",
    "nemotron-4-340b",
    "nemotron-minitron-8b",
    "nemotron-ultra-253b",
    "north-micro-vision",
    "olmo-hybrid-7b",
    "open-llama-3b",
    "orion-14b",
    "paddleocr-vl",
    "paraphrase-multilingual-mpnet-base-v2",
    "phi-3-vision",
    "pplx-embed-v1-0.6b",
    "pplx-embed-v1-4b",
    "pythia-14m",
    "qianfan-ocr",
    "qwen1-1.8b",
    "qwen1-14b",
    "qwen1-72b",
    "qwen1-7b",
    "qwen1-vl",
    "qwen1.5-110b",
    "qwen2-audio-7b",
    "qwen3-coder-reap-246b-a35b",
    "qwen3-coder-reap-25b-a3b",
    "qwen3-coder-reap-363b-a35b",
    "sarashina2.2-0.5b",
    "sarvam-105b",
    "sfr-embedding-2-r",
    "sfr-embedding-code-400m",
    "sfr-embedding-mistral",
    "smoldocling-256m",
    "snowflake-arctic-embed-l",
    "starcoder-15.5b",
    "surya-ocr-2",
    "tri-7b",
    "tulu-3.1-8b",
    "typhoon-ocr-1.5-2b",
    "unlimited-ocr",
    "userlm-8b",
    "viking-33b",
    "voyage-4-nano",
    "yi-coder-1.5b",
}
"""Models whose shape and count are those of a table of published checkpoints; nothing of transformers counted them."""
COUNTED = {replace(catalog().models[name].architecture, embeds=False) for name in ROWS if name in catalog().models}


def test_every_catalog_model_has_a_row_and_every_row_a_model(models: dict[str, Model]) -> None:
    recent = json.loads((Path(__file__).parent.parent / "data" / "recent_counts.json").read_text())["rows"]
    pairs = json.loads((Path(__file__).parent.parent / "data" / "pair_counts.json").read_text())["catalog"]
    counted = set(ROWS) | {row["id"] for row in (*recent, *pairs)}
    others = {name: replace(models[name].architecture, embeds=False) for name in set(models) - counted}
    outside = {name for name, architecture in others.items() if architecture not in COUNTED}
    assert set(ROWS) <= set(models)
    assert outside == WITHOUT_A_CLASS | WITH_MORE_IN_THEIR_FILES | OF_A_TABLE


@pytest.mark.parametrize("name", ROWS)
def test_counts_equal_those_of_the_public_classes(models: dict[str, Model], name: str) -> None:
    row, found = ROWS[name], parameters(models[name])
    assert (found.total, found.embedding) == (row["total"], row["token_embedding"])
    most = row.get("active", row["total"] - row.get("towers", 0))
    expected = row.get("active_expected", most)
    assert (found.active_min, found.active, found.active_max) == (row.get("active_min", most), expected, most)
    if "active" in row:
        assert found.active_without_input_embedding == row["active_without_input_embedding"] - (most - expected)


def test_dense_models_are_active_as_a_whole(models: dict[str, Model]) -> None:
    found = parameters(models["llama-3-8b"])
    assert found.active == found.active_min == found.active_max == found.total == found.trainable


def test_seeds(models: dict[str, Model]) -> None:
    assert parameters(models["gpt2-xl"]).total == 1_557_611_200
    longcat = parameters(models["longcat-flash"])
    assert longcat.total == 560_664_958_976
    assert longcat.active == 27_954_796_544
    assert longcat.active_min == 19_499_079_680
    assert 32.1e9 < longcat.active_max < 32.2e9
    assert longcat.active_without_input_embedding == pytest.approx(27.15e9, rel=1e-4)


def test_a_tied_table_counts_once_and_stays_active(models: dict[str, Model]) -> None:
    tied = models["gpt2-xl"].architecture
    loose = replace(tied, tied=False)
    assert parameters(loose).total - parameters(tied).total == tied.vocab * tied.hidden
    assert parameters(tied).active_without_input_embedding == parameters(tied).total
    assert parameters(loose).active_without_input_embedding == parameters(tied).total


def test_lora_trains_one_pair_for_each_projection(models: dict[str, Model]) -> None:
    llama = models["llama-2-7b"]
    attention = 32 * 8 * 4 * (4096 + 4096)
    rest = 32 * 8 * 3 * (4096 + 11008)
    assert parameters(llama, 8, "attention").trainable == attention
    assert parameters(llama, 8, "all-linear").trainable == attention + rest


def test_lora_sees_a_fused_projection_as_one(models: dict[str, Model]) -> None:
    gpt2 = models["gpt2"]
    assert parameters(gpt2, 16, "attention").trainable == 12 * 16 * ((768 + 3 * 768) + (768 + 768))


def test_blocks_and_ends_make_the_total(models: dict[str, Model]) -> None:
    for name in ("gpt2-xl", "deepseek-v3", "qwen3-next-80b-a3b", "gemma-2-9b", "llama-4-maverick", "longcat-2.0"):
        architecture = models[name].architecture
        blocks = block_parameters(architecture)
        assert sum(block.repeat for block in blocks) == architecture.layers
        bare = parameters(replace(architecture, layers=1, linear_attention=None, experts=None, ffn=8)).total
        ends = (
            bare
            - block_parameters(replace(architecture, layers=1, linear_attention=None, experts=None, ffn=8))[0].total
        )
        assert parameters(architecture).total == ends + sum(block.repeat * block.total for block in blocks)
