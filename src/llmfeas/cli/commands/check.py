"""`llmfeas check`: expectations for continuous integration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ...contract import envelope, given
from ...errors import CheckFailedError, UsageError
from ...text import printable
from ..output import write as written
from ..parameters import FORMATS, Command, Grouped, Output, outputs, paths

EXAMPLE = "llmfeas check feasibility.yaml"
TEMPLATE = """\
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
  prompt: 6000
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
"""The commented example that `--init` writes."""


def run(files: tuple[str, ...], init: bool, **values: Any) -> None:
    """Judge every expectation of some files.

    Raises:
        UsageError: no file is named.
        DataError: a file cannot be used, or a scenario in it cannot be estimated.
        CheckFailedError: an expectation is broken.
    """
    output = Output.taken(values)
    if init:
        _write_example(files, output)
        return
    if not files:
        hint = f"For example: {EXAMPLE}; 'llmfeas check --init' writes one."
        raise UsageError("missing-argument", "no file of expectations is named.", hint)
    from ...catalog.store import catalog
    from ...check.run import findings

    result = findings(files, catalog())
    answer = envelope("check", catalog().digest, given({"files": files}), result)

    def report() -> Any:
        from ...render.pages.check import report

        return report(answer)

    output.write(answer, report)
    if result.failed:
        raise CheckFailedError("check-failed", f"the check failed: {result.passed} passed, {result.failed} failed")


def _write_example(files: tuple[str, ...], output: Output) -> None:
    """Write the example to stdout, or to a file that does not exist yet.

    Raises:
        UsageError: there is such a file already, or several are named.
    """
    if len(files) > 1:
        raise UsageError("contradiction", "--init writes one file.", "Name one, or none for standard output.")
    path = files[0] if files else output.path
    if path not in (None, "-") and Path(path).exists():
        name = printable(path, 80)
        raise UsageError("file-exists", f"{name} exists already.", "Name another file, or remove it first.")
    if not (output.quiet and path is None):
        written(TEMPLATE, path)


command = Command(
    "check",
    params=[
        click.Argument(["files"], nargs=-1, metavar="FILE...|-", shell_complete=paths),
        Grouped(["init", "--init"], is_flag=True, help="Write a commented example, to FILE or to stdout."),
        *outputs((*FORMATS, "junit", "github")),
    ],
    callback=run,
    help="Hold scenarios against what is expected of them: YAML files of settings with 'expect'. Exit code 4 if an "
    "expectation is broken, 3 if a file is bad. The formats junit and github are for continuous integration.",
    epilog=f"For example: {EXAMPLE}",
)
