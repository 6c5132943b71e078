"""Calibrate the time model: `python -m calibration.speed` reads the measurements and writes data/efficiency.yaml.
`python -m calibration.speed prefill` does so for one kind of speed (training, decode, prefill); the others stay.

The sections `parameters`, `left_out`, `regimes` and `trained` are rewritten, everything else of the file stays.
Nothing is random: the same measurements and code give the same file.
"""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from llmfeas.catalog.efficiency import CalibratedNumber, Efficiency, Regime
from llmfeas.catalog.store import catalog, data_directory
from llmfeas.evidence.measurements import measurement_files, read_measurements

from .crossval import Fit, cross_validated
from .observations import SPEEDS, Observation, observed, trained
from .plan import PLANS

FILE = "efficiency.yaml"
SCORED_APART = ("llama.cpp-experts",)
"""Regimes scored with what their rows say in words (data/measurements/experts_in_ram.yaml); they stay."""


def all_fits(numbers: Efficiency, observations: Sequence[Observation], kinds: Sequence[str] = SPEEDS) -> dict[str, Fit]:
    """Fit kinds of speed. Decoding comes before prefill, which borrows a rate from it."""
    fits: dict[str, Fit] = {}
    for kind in (kind for kind in SPEEDS if kind in kinds):
        chosen = [item for item in observations if item.kind == kind]
        fits[kind] = cross_validated(numbers, chosen, PLANS[kind])
        numbers = _with_parameters(numbers, fits[kind].parameters)
    return fits


def _with_parameters(numbers: Efficiency, parameters: Mapping[str, CalibratedNumber]) -> Efficiency:
    return replace(numbers, parameters={**numbers.parameters, **parameters})


def _number(value: float) -> str:
    text = repr(value)
    return text.replace("e", ".0e") if "e" in text and "." not in text else text


def parameter_text(name: str, parameter: CalibratedNumber) -> str:
    """Write one line of the section `parameters`."""
    fields = [f"value: {_number(parameter.value)}", f"spread: {_number(parameter.spread)}"]
    if parameter.prior:
        fields.append("prior: true")
    elif parameter.rows:
        fields.append(f"rows: {parameter.rows}, groups: {parameter.groups}")
    if parameter.note:
        quoted = parameter.note.replace("'", "''")
        fields.append(f"note: '{quoted}'")
    return f"  {name}: {{{', '.join(fields)}}}"


def regime_text(name: str, regime: Regime) -> str:
    """Write one line of the section `regimes`."""
    counts = f"sources: {regime.sources}, groups: {regime.groups}, rows: {regime.rows}"
    return f"    {name}: {{sigma: {regime.sigma}, {counts}, width: {regime.width}}}"


def rewritten(text: str, parameters: Mapping[str, CalibratedNumber], fits: Mapping[str, Fit]) -> str:
    """The file with its sections replaced; a section ends where the next top-level key begins."""
    lines = [parameter_text(name, parameter) for name, parameter in parameters.items()]
    text = _section(text, "parameters", lines)
    left_out = _blocks(text, "left_out")
    left_out.update({kind: [f"  {kind}: {left_out_text(fit)}"] for kind, fit in fits.items()})
    regimes = _blocks(text, "regimes")
    for kind, fit in fits.items():
        apart = {line.split(":")[0].strip(): line for line in regimes.get(kind, ())}
        written = {name: regime_text(name, regime) for name, regime in fit.regimes.items()}
        written.update((name, apart[name]) for name in SCORED_APART if name in apart)
        regimes[kind] = [f"  {kind}:", *written.values()]
    for section, blocks in (("left_out", left_out), ("regimes", regimes)):
        text = _section(text, section, [line for kind in SPEEDS for line in blocks.get(kind, ())])
    return text


def with_trained(text: str, table: Mapping[str, Mapping[str, Mapping[str, int]]]) -> str:
    """The file with its section `trained` replaced."""
    lines = []
    for backend, jobs in table.items():
        lines.append(f"  {backend}:")
        for job, software in jobs.items():
            listed = ", ".join(f"{name}: {sources}" for name, sources in software.items())
            lines.append(f"    {job}: {{{listed}}}")
    return _section(text, "trained", lines)


def _place(lines: Sequence[str], name: str) -> tuple[int, int]:
    start = next(index for index, line in enumerate(lines) if line.split(":")[0] == name)
    after = [index for index in range(start + 1, len(lines)) if lines[index] and lines[index][0] not in " -"]
    return start, after[0] if after else len(lines)


def _blocks(text: str, name: str) -> dict[str, list[str]]:
    """The lines of a section by the kind of speed that they are about."""
    lines = text.splitlines()
    start, end = _place(lines, name)
    blocks: dict[str, list[str]] = {}
    for line in lines[start + 1 : end]:
        if line.startswith("  ") and line[2] != " ":
            blocks[line.strip().split(":")[0]] = []
        next(reversed(blocks.values())).append(line)
    return blocks


def _section(text: str, name: str, body: Sequence[str]) -> str:
    lines = text.splitlines()
    start, end = _place(lines, name)
    return "\n".join([*lines[:start], f"{name}:", *body, *lines[end:]]) + "\n"


def left_out_text(fit: Fit) -> str:
    """Say how far left-out rows are off: shares of the measured speed."""
    errors = sorted(abs(math.expm1(error)) for error in fit.errors.values())
    tail = errors[int(0.9 * len(errors))]
    return f"{{rows: {len(errors)}, median_error: {statistics.median(errors):.3f}, p90_error: {tail:.3f}}}"


def main(path: Path | None = None, kinds: Sequence[str] = SPEEDS) -> dict[str, Fit]:
    """Fit kinds of speed, write the file, and give what was found by kind."""
    target = path or data_directory() / FILE
    numbers = catalog().tables.efficiency
    rows, errors = read_measurements(measurement_files())
    for error in errors:
        print(error.message, file=sys.stderr)
    observations = observed(rows)
    fits = all_fits(numbers, observations, kinds)
    parameters = dict(numbers.parameters)
    for kind, fit in fits.items():
        print(f"{kind}, left out: {left_out_text(fit)}", file=sys.stderr)
        parameters.update(fit.parameters)
    text = rewritten(target.read_text(encoding="utf-8"), parameters, fits)
    target.write_text(with_trained(text, trained(observations)), encoding="utf-8")
    return fits


if __name__ == "__main__":
    main(kinds=sys.argv[1:] or SPEEDS)
