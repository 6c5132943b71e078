"""The commented example that `llmfeas check --init` writes."""

from __future__ import annotations

EXAMPLE = """\
# Expectations for `llmfeas check`: run it in continuous integration, and it fails (exit code 4) before money is spent.
#
# Each block asks one scenario, in the settings of `llmfeas estimate` (--micro-batch is micro_batch). A list of values
# makes several scenarios: lists are crossed. What a block does not say is assumed as on the command line.
# An expectation is a word, a value with a tolerance, or bounds; `at: worst` takes the pessimistic end of its range.
# Editors complete this file with the schema that `llmfeas schema check` prints.

- id: fine-tune-on-our-cards
  model: gpt2
  device: [rtx-4070ti, rtx-3090]
  task: finetune
  expect:
    fits: true                       # the expected peak; {value: true, at: worst} asks for its high end too
    status: [feasible, tight]        # or infeasible, unsupported
    peak_gib: {max: 20}              # GiB; a text may name the unit: {max: 21 GB}
    total: {max: 12h, at: worst}     # 30s 5m 3h 7d 2w 1y
    parameters: 124.4M +- 0.1 %

- id: serve-the-model
  model: llama-3-8b
  device: rtx-3090
  task: inference
  quant: q4_k_m
  context: 8192
  expect:
    at: worst                        # for all expectations of this block
    fits: true
    decode_tokens_per_second: {min: 20}
    time_to_first_token: {max: 10s}

- id: one-training-run
  model: gpt2-small
  device: 8xa100-sxm-80gb
  task: pretrain
  tokens: 10B
  expect:
    usd: {max: 500}
    total: {max: 3d}
    mfu: {min: 15 %}
"""
