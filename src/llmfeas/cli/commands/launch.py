"""`llmfeas launch`: from the verdict to the run."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...contract import envelope
from ...errors import DataError, UsageError, unreadable
from ...record import replace
from ...text import printable
from ...units import MIB
from ..files import write_folder
from ..parameters import Command, Grouped, Output, outputs, paths, settings
from ..wanted import question, said

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from ...planning.launch import Launcher, Prepared

EXAMPLE = "llmfeas launch --engine accelerate --model llama-3-8b --device rtx-4090 --task qlora"
MAX_BYTES = 32 * MIB
READS = ("llmfeas.plan/1", "llmfeas.estimate/1")
"""JSON that a recipe can be taken from."""

CLUSTERS = ("slurm", "kubernetes", "skypilot")
ABOUT_RANGES = ("unmeasured-speed", "unmeasured-memory", "single-source-speed", "thin-evidence")
"""Warnings about figures that a recipe does not show; its JSON holds them."""


def run(**values: Any) -> None:
    """Write a recipe in an engine's own words.

    Raises:
        UsageError: the engine cannot express it, or it cannot be written.
        DataError: no JSON of a plan or an estimate.
        CheckFailedError: with `--verify`, where the engine does not read it.
    """
    output = Output.taken(values)
    names = ("source", "force", "engine", "cluster", "verify")
    source, force, name, cluster, verify = (values.pop(each) for each in names)
    from ...catalog.store import catalog
    from ...planning.launch import launcher, prepared, usual
    from ...render.words import counted, sentence

    request = _request(source, values)
    engine = usual(request, catalog()) if name is None else launcher(name, catalog())
    if output.path not in (None, "-"):
        request["model"] = _whole_path(request["model"])
    recipe = prepared(request, engine, catalog(), cluster)
    read_by = _reader(recipe, engine, output) if verify else None
    answer = _envelope(recipe, engine.id, read_by)
    if name is None:
        output.note(f"Took --engine {engine.id}: nobody named one.")
    for warning in (each for each in recipe.warnings if each.code not in ABOUT_RANGES):
        output.note(sentence(warning.message))
    if output.path is not None and output.path != "-":
        _write(recipe, output, force=force)
        if output.format != "json":
            return
    scenario = recipe.estimate.scenario

    def report() -> Any:
        from ...render.pages.launch import report

        device = counted(scenario.num_devices, scenario.device.name)
        return report(answer, engine.name, scenario.model.name, device)

    replace(output, path=None).write(answer, report)


def _request(source: str | None, values: Mapping[str, Any]) -> dict[str, Any]:
    """The stored request, with what was said beside it."""
    request = recorded(_text(source)) if source is not None else {}
    return question({**request, **said(values)}, EXAMPLE)


def _reader(recipe: Prepared, engine: Launcher, output: Output) -> str | None:
    """Who read the recipe; says whether anybody did."""
    from ...planning.launch.verify import verified

    read_by = verified(engine, recipe.launch)
    output.note(f"Not verified: {engine.name} is not installed here." if read_by is None else f"Read by {read_by}.")
    return read_by


def _write(recipe: Prepared, output: Output, *, force: bool) -> None:
    """Write the files and the script into a folder, all or none."""
    files = (*recipe.launch.files, recipe.launch.script())
    assert output.path is not None
    write_folder({file.name: file.text for file in files}, output.path, force=force)
    output.note(f"Wrote {', '.join(file.name for file in files)} into {printable(output.path, 80)}.")


def _whole_path(model: object) -> object:
    """A model's path as it is right from every folder; a name stays."""
    from ...importers.model_file import is_model_path

    said = model.get("value") if isinstance(model, Mapping) else model
    if not isinstance(said, str) or not is_model_path(said):
        return model
    whole = os.path.abspath(os.path.expanduser(said))  # noqa: PTH100, PTH111 - links keep their names
    return {**model, "value": whole} if isinstance(model, Mapping) else whole


def _envelope(recipe: Prepared, engine: str, read_by: str | None) -> dict[str, Any]:
    from ...feasibility.inputs import inputs
    from ...planning.launch import LaunchResult

    written, estimated = recipe.launch, recipe.estimate
    result = LaunchResult(engine, written.files, written.command, written.notes, read_by)
    return envelope("launch", estimated.catalog, inputs(estimated.scenario), result, recipe.warnings)


def recorded(text: bytes) -> dict[str, Any]:
    """Take the recipe from the JSON of a plan (its first one) or of an estimate, as a request.

    Raises:
        DataError: no JSON, of another command, of another version, a plan without a way, or unusable settings.
    """
    try:
        stored = json.loads(text.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        raise DataError("bad-json", "the recipe is no JSON.", "Pipe 'llmfeas plan ... --json' into it.") from None
    schema = stored.get("schema") if isinstance(stored, dict) else None
    if schema not in READS:
        what = "JSON of something else" if schema is None else repr(printable(schema, 60))
        hint = "Make it with 'llmfeas plan ... --json' or 'llmfeas estimate ... --json' of this version."
        raise DataError("schema-version", f"the recipe is {what}; {' and '.join(READS)} are read.", hint)
    inputs = _inputs(stored, planned=schema == READS[0])
    from ...catalog.store import catalog
    from ...request import parsed, recorded_origins

    try:
        parsed(inputs, catalog().tables.quantization)
        recorded_origins(inputs)
    except UsageError as error:
        raise DataError("bad-recipe", f"the recipe cannot be used: {error.message}", error.hint) from None
    return inputs


def _inputs(envelope: Mapping[str, Any], *, planned: bool) -> dict[str, Any]:
    if not planned:
        inputs = envelope.get("inputs")
    else:
        result = envelope.get("result")
        plans = result.get("plans") if isinstance(result, dict) else None
        if plans == []:
            raise DataError("no-way", "the plan holds no way that works.", "Allow more: see 'llmfeas plan --help'.")
        first = plans[0] if isinstance(plans, list) else None
        inputs = first.get("estimate") if isinstance(first, dict) else None
    if not isinstance(inputs, dict):
        raise DataError("bad-recipe", "the recipe holds no settings.", "Make it again with 'llmfeas plan ... --json'.")
    return inputs


def _text(source: str) -> bytes:
    """Read the recipe; `-` is stdin.

    Raises:
        DataError: it cannot be read, or is too long.
    """
    try:
        if source == "-":
            text = sys.stdin.buffer.read(MAX_BYTES + 1) if sys.stdin is not None else b""
        else:
            with Path(source).open("rb") as stream:
                text = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        from ...planning.launch import LAUNCHERS

        named = source.lower() in LAUNCHERS
        hint = f"An engine stands behind --engine: --engine {source}." if named else "Check the path; - is stdin."
        raise unreadable(source, error, hint=hint) from None
    if len(text) > MAX_BYTES:
        raise DataError("too-large", f"the recipe is longer than {MAX_BYTES:,} bytes.", "Is it a plan's JSON?")
    return text


def _engines(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    from ...planning.launch import LAUNCHERS

    return [CompletionItem(name) for name in LAUNCHERS if name.startswith(incomplete)]


command = Command(
    "launch",
    params=[
        click.Argument(["source"], required=False, metavar="[RECIPE|-]", shell_complete=paths),
        Grouped(
            ["engine", "--engine"],
            metavar="ENGINE",
            group="The question",
            shell_complete=_engines,
            help="What to launch: accelerate, deepspeed, vllm ... [the estimate's]; an unknown name lists them all.",
        ),
        Grouped(
            ["cluster", "--on"],
            type=click.Choice(CLUSTERS),
            group="The question",
            help="Also the job of a scheduler that starts it on each machine.",
        ),
        *settings(hidden=("engine",)),
        Grouped(["verify", "--verify"], is_flag=True, help="Let the engine's own parser read it, if installed here."),
        Grouped(["force", "--force"], is_flag=True, help="Overwrite files."),
        Grouped(["path", "-o", "--output"], metavar="DIR", help="Write the files and run.sh there, all or none."),
        *(each for each in outputs(("table", "json", "markdown")) if each.name != "path"),
    ],
    callback=run,
    help="The recipe in the words of the engine that runs it: files and a command. From the same options as estimate, "
    "or from the JSON of a plan or an estimate (a file, or - for stdin). Nothing is executed but, "
    "with --verify, the parser of the engine.",
    epilog=f"For example: {EXAMPLE}",
)
