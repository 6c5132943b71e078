"""`llmfeas backtest`: our figures beside published measurements."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...contract import Note, Published, envelope, given
from ...errors import DataError, LlmfeasError, UsageError
from ..output import write
from ..parameters import DRAWN, Command, Grouped, Output, outputs, paths

if TYPE_CHECKING:
    from ...evidence.own import Narrowed

EXAMPLE = "llmfeas backtest --kind training --kind decode --naive --worst 5"
GROUP = "Which measurements"
OWN = "Measurements of one's own"
ADD = "Keep one: 'model=llama-3-8b device=this task=inference quant=q4_k_m decode=120 memory=6.1GiB'."


def run(**values: Any) -> None:
    """Compare the calculator with measurements and write the summary.

    Raises:
        UsageError: an unknown kind or backend, or nothing to compare.
        DataError: the file cannot be read; or rows of it could not be used, after the others were shown.
    """
    from ...evidence.backtest import backtest
    from ..terminal import bar

    output = Output.taken(values)
    new, calibrate, blind = values.pop("add"), values.pop("calibrate"), values.pop("blind")
    if blind:
        _blind(output, values, new=new, calibrate=calibrate)
        return
    if new or calibrate:
        _own(output, new, calibrate=calibrate, file=values["file"])
        return
    file, naive = values.pop("file"), values.pop("naive")
    with bar(None, not output.quiet) as advance:
        scores = backtest(
            kinds=values["kinds"],
            backends=values["backends"],
            devices=[_device(name) for name in values["devices"]],
            worst=values["worst"],
            file=Path(file) if file else None,
            naive=naive,
            variants=values["variants"],
            progress=advance,
        )
    answer = _envelope(scores, {**values, "naive": naive, "file": file}, scores.faults)

    def shown() -> Any:
        from ...render.pages.backtest import report

        return report(answer["result"], naive=naive)

    output.write(answer, shown)
    _report_errors(output, scores.faults)


def _blind(output: Output, values: Mapping[str, Any], *, new: Sequence[str], calibrate: bool) -> None:
    """Show how far off answers were when sources were first asked.

    Raises:
        UsageError: an option that says nothing of that, an unknown kind, or no score of these.
        DataError: a file cannot be read.
    """
    from ...evidence.backtest import asked_blind

    asked = {**values, "add": new, "calibrate": calibrate}
    other = next((name for name in asked if name not in ("kinds", "file") and asked[name]), None)
    if other is not None:
        option = f"--{other.removesuffix('s')}" if other in ("backends", "devices") else f"--{other}"
        raise UsageError("contradiction", f"{option} says nothing of --blind", "Leave one of them out.")
    file = values["file"]
    scores = asked_blind(values["kinds"], Path(file) if file else None)
    answer = _envelope(scores, {"kinds": values["kinds"], "file": file, "blind": True}, ())

    def shown() -> Any:
        from ...render.pages.backtest import report

        return report(answer["result"], naive=False)

    output.write(answer, shown)


def _device(name: str) -> str:
    """The id of the device that a name means, as elsewhere; measurements may name others, which stay."""
    from ...catalog.hardware import find_hardware
    from ...catalog.store import catalog

    try:
        return str(find_hardware(name, catalog()).device.id)
    except UsageError:
        return name


def _own(output: Output, new: tuple[str, ...], *, calibrate: bool, file: str | None) -> None:
    """Keep measurements of the user's own, and let them narrow the ranges of that machine.

    Raises:
        UsageError: one cannot be understood, or the file cannot be written.
        DataError: the file holds other things, or rows of it cannot be used.
    """
    from ...evidence.own import measured_file, parsed_measurement
    from ...evidence.plausible import check

    path = Path(file) if file else measured_file()
    rows = [parsed_measurement(text) for text in new]
    for row in rows:
        check(row)
    narrowed, errors = kept(output, rows, path, calibrate=calibrate)
    if calibrate:
        _write_calibration(output, narrowed, str(path), errors)
        _report_errors(output, errors)


def kept(
    output: Output, rows: Sequence[Mapping[str, Any]], path: Path, *, calibrate: bool
) -> tuple[Sequence[Narrowed], Sequence[LlmfeasError]]:
    """Add checked rows to a file of own measurements, and compute with `calibrate` what they narrow.

    Raises:
        UsageError: the file cannot be written.
        DataError: the file holds other things.
    """
    from datetime import date

    from ...catalog.overlay import use_overlays
    from ...catalog.store import catalog
    from ...evidence.own import added, alone, calibrated_file, read_own, written

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            "cannot-write", f"cannot make {path.parent}: {error.strerror}.", "Name another file."
        ) from None
    real = os.path.realpath(path)
    others = [overlay for overlay in catalog().overlay_paths if os.path.realpath(overlay) != real]
    with alone(path.parent):
        if rows:
            data = read_own(path)
            for row in rows:
                data = added(data, row, date.today().isoformat())
            write(written(data), str(path))
            output.note(f"Kept {len(rows)} measurement{'s' * (len(rows) > 1)} in {path}.")
        if not calibrate:
            return (), ()
        data, narrowed, errors = calibrated_file(path, others)
        write(written(data), str(path))
    use_overlays([*others, path])
    return narrowed, errors


def _write_calibration(output: Output, narrowed: Sequence[Narrowed], path: str, errors: Sequence[LlmfeasError]) -> None:
    from ...evidence.own import CalibrationResult

    answer = _envelope(CalibrationResult(tuple(narrowed)), {"file": path}, errors)

    def shown() -> Any:
        from ...render.pages.backtest import calibration_report

        return calibration_report(answer["result"]["calibration"], path)

    output.write(answer, shown)


def _report_errors(output: Output, errors: Sequence[LlmfeasError]) -> None:
    """Say what is wrong with each row: to a script in the answer's warnings, so that stderr holds one object.

    Raises:
        DataError: there is such a row.
    """
    as_json = output.format == "json"
    for error in () if as_json else errors:
        output.note(_fault(error))
    if errors:
        what = "1 row could" if len(errors) == 1 else f"{len(errors)} rows could"
        where = "The answer's warnings name each." if as_json else "See the lines above."
        raise DataError("bad-rows", f"{what} not be used; the others are shown.", where)


def _fault(error: LlmfeasError) -> str:
    stop = "" if error.message.endswith((".", "?", "!")) else "."
    return f"{error.message}{stop} {error.hint}".rstrip()


def _envelope(result: Published, values: dict[str, Any], errors: Sequence[LlmfeasError]) -> dict[str, Any]:
    from ...catalog.store import catalog

    inputs = given({name: value for name, value in values.items() if value not in (None, (), False, 0)})
    unusable = [Note(error.code, _fault(error)) for error in errors]
    return envelope("backtest", catalog().digest, inputs, result, unusable)


command = Command(
    "backtest",
    params=[
        click.Argument(["file"], required=False, metavar="[FILE]", shell_complete=paths),
        Grouped(["kinds", "--kind"], multiple=True, group=GROUP, metavar="KIND", help="training, decode, prefill, ..."),
        Grouped(
            ["backends", "--backend"],
            multiple=True,
            metavar="NAME",
            group=GROUP,
            help="What it ran on: cuda, rocm, metal, hpu, ..., or vulkan, mlx, sycl alone.",
        ),
        Grouped(
            ["devices", "-d", "--device"],
            multiple=True,
            metavar="NAME",
            group=GROUP,
            help="Device that it ran on.",
        ),
        Grouped(
            ["variants", "--variants"], is_flag=True, group=GROUP, help="Also rows that were run a little otherwise."
        ),
        Grouped(
            ["worst", "--worst"],
            type=click.IntRange(0),
            metavar="N",
            default=0,
            help="Show so many rows that we miss most.",
        ),
        Grouped(
            ["blind", "--blind"],
            is_flag=True,
            help="Show how far off answers were when each source was first asked, instead.",
        ),
        Grouped(["naive", "--naive"], is_flag=True, help="Show rules of thumb on the same rows."),
        Grouped(["add", "--add"], multiple=True, group=OWN, metavar="FIGURES", help=ADD),
        Grouped(["calibrate", "--calibrate"], is_flag=True, group=OWN, help="Let them narrow this machine's ranges."),
        *outputs(DRAWN),
    ],
    callback=run,
    help="Our figures beside published measurements, the built-in ones or those of FILE: error, bias, and how many lie "
    "in our ranges.",
    epilog=f"For example: {EXAMPLE}",
)
