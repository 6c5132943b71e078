"""Files of expectations answered: each scenario estimated once, each expectation judged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..catalog.store import Catalog
from ..contract import Published, published
from ..errors import LlmfeasError
from ..feasibility.core import estimate
from ..feasibility.result import Estimate
from ..record import dataclass
from ..settle import resolution
from .figures import FIGURES, WORDS, End, word_of
from .read import CheckFile, Expectation, Report, ScenarioBlock, bad_file, read_checks, setting_of
from .requirement import end_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding(Published):
    """One expectation, held against the estimate."""

    file: str
    line: int
    column: int
    id: str
    """The scenario's."""
    expectation: str
    """As a person says it: `peak_gib at most 22 GiB at worst`."""
    name: str
    """What is expected of: a figure or a word."""
    expected: str
    at: End
    """Which figure: the expected one, or the pessimistic end of its range."""
    unit: str | None
    found: object
    """A number in this unit, a word, or a truth; null where it is unknown."""
    margin: float | None
    """Distance to the nearest bound as a share of it, negative where it is broken; null for words."""
    ok: bool


@dataclass(frozen=True, slots=True)
class CheckResult(Published):
    """The result of a check."""

    expectations: tuple[Finding, ...]

    @published
    def passed(self) -> int:
        """Expectations that hold."""
        return sum(finding.ok for finding in self.expectations)

    @published
    def failed(self) -> int:
        """Expectations that are broken."""
        return len(self.expectations) - self.passed


def findings(paths: Sequence[str], catalog: Catalog) -> CheckResult:
    """Judge every expectation of some files, in their order.

    Raises:
        DataError: a file that cannot be used, or a scenario that cannot be estimated, with file, line and column.
    """
    files = [read_checks(path, catalog.tables.quantization) for path in paths]
    return CheckResult(tuple(finding for file in files for finding in _of_file(file, catalog)))


def _of_file(file: CheckFile, catalog: Catalog) -> list[Finding]:
    judged: list[Finding] = []
    faults: list[Report] = []
    for block in file.blocks:
        for name, settings in block.scenarios():
            try:
                answer = estimate(resolution(settings, catalog))
            except LlmfeasError as error:
                about = setting_of(error, block.settings)
                faults.append(((*block.place, about) if about else block.place, error))
                break
            judged += _of_scenario(file, block, name, answer)
    if faults:
        raise bad_file(file.document, faults)
    return judged


def _of_scenario(file: CheckFile, block: ScenarioBlock, name: str, answer: Estimate) -> Iterator[Finding]:
    for each in block.expectations:
        value = _found(each, answer)
        requirement = each.requirement
        margin = _headroom_share(answer, requirement.at) if each.name == "fits" else requirement.margin(value)
        if each.name == "fits" and margin is not None and "true" not in requirement.words:
            margin = -margin
        figure = FIGURES.get(each.name)
        yield Finding(
            file=file.name,
            line=each.line,
            column=each.column,
            id=name,
            expectation=f"{each.name} {requirement.text}" + (" at worst" if requirement.at == "worst" else ""),
            name=each.name,
            expected=requirement.text,
            at=requirement.at,
            unit=figure.unit.name if figure else None,
            found=value == "true" if each.name == "fits" else value,
            margin=margin,
            ok=requirement.holds(value),
        )


def _found(each: Expectation, answer: Estimate) -> float | str | None:
    if each.name in WORDS:
        return word_of(WORDS[each.name], answer, each.requirement.at)
    figure = FIGURES[each.name]
    return end_of(figure.of(answer), figure, each.requirement.at)


def _headroom_share(answer: Estimate, at: str) -> float | None:
    memory = answer.memory
    peak = memory.peak_bytes.high if at == "worst" else memory.peak_bytes.expected
    return (memory.usable_bytes - peak) / memory.usable_bytes if memory.usable_bytes > 0 else None
