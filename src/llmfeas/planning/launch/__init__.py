"""A recipe in the words of the engine that runs it: files and a command. Nothing is ever executed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from operator import attrgetter
from pkgutil import iter_modules

from ...catalog.engine import Engine
from ...catalog.named import engine_named
from ...catalog.store import Catalog
from ...errors import DataError, UsageError, did_you_mean
from ...feasibility.core import estimate
from ...feasibility.result import Estimate, Note
from ...feasibility.verdict import why
from ...options import BY_NAME
from ...record import dataclass, replace
from ...request import parsed, recorded_origins
from ...scenario import Scenario
from ...settle import Resolution, resolution
from ...settle.task import implied_task
from ...text import printable
from ...units import MIB
from ..expressed.expressible import SPLITS, Objection
from .launcher import File, Launch, Launcher, LaunchResult, spelled


class Launchers(Mapping[str, Launcher]):
    """What the modules of this package launch, each imported when it is asked for: adding an engine is adding a file.

    A module is called as the engine whose recipes it writes, with `_` for other signs.
    """

    def __getitem__(self, name: str) -> Launcher:
        """The launcher of that name."""
        launcher = self._of(re.sub(r"[-.]", "_", name))
        if launcher is None or launcher.id != name:
            raise KeyError(name)
        return launcher

    @cached_property
    def _modules(self) -> frozenset[str]:
        return frozenset(found.name for found in iter_modules(__path__))

    @cached_property
    def _known(self) -> dict[str, Launcher | None]:
        return {}

    def _of(self, module: str) -> Launcher | None:
        if module not in self._known and module in self._modules:
            self._known[module] = getattr(import_module(f".{module}", __name__), "LAUNCHER", None)
        return self._known.get(module)

    @cached_property
    def _all(self) -> dict[str, Launcher]:
        launchers = [found for module in self._modules if (found := self._of(module)) is not None]
        return {each.id: each for each in sorted(launchers, key=attrgetter("id"))}

    def __iter__(self) -> Iterator[str]:
        """Every name, in the order of the alphabet."""
        return iter(self._all)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._all)


LAUNCHERS = Launchers()
"""Every engine that can be launched, by the name that --engine takes."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A launch with the estimate that belongs to it, and what was changed on the way."""

    launch: Launch
    estimate: Estimate
    warnings: tuple[Note, ...] = ()


def launcher(name: str, catalog: Catalog | None = None) -> Launcher:
    """Find a launcher by name; with a catalog also by those that its engines go by (`tei`).

    Raises:
        UsageError: there is none of that name.
    """
    known = LAUNCHERS.get(name.strip().lower())
    if known is None and catalog is not None:
        known = LAUNCHERS.get(engine_named(name.strip(), catalog))
    if known is None:
        from difflib import get_close_matches

        near = get_close_matches(name[:40].lower(), LAUNCHERS, n=3)
        message = f"--engine: llmfeas cannot launch {printable(name, 40)!r}."
        raise UsageError(
            "unknown-engine", message, f"{did_you_mean(near)} It can launch {', '.join(LAUNCHERS)}.".lstrip(), near
        )
    return known


def usual(request: Mapping[str, object], catalog: Catalog) -> Launcher:
    """The first of those that write for the engine that a request settles on; one without objection, if there is one.

    Raises:
        UsageError: none does; those that write the question are candidates.
    """
    scenario = resolution(request, catalog).scenario
    able = _able(scenario.engine_record, scenario)
    if not able:
        others = writers({**request, "task": scenario.task}, catalog)
        message = f"--engine is missing: nothing is written for {scenario.engine}, which was taken for --task "
        raise UsageError("missing-option", f"{message}{scenario.task}.", _able_hint(others), others)
    return next((each for each in able if each.refused(scenario) is None), able[0])


def _able(engine: Engine, scenario: Scenario) -> list[Launcher]:
    """What writes the task of a scenario for an engine."""
    own = (LAUNCHERS[name] for name in engine.launchers if name in LAUNCHERS)
    return [each for each in own if scenario.task in each.tasks]


def writers(request: Mapping[str, object], catalog: Catalog, *but: Launcher) -> list[str]:
    """The engines that write a question as it was asked, each of which is tried, but those that were."""
    return [each.id for each in LAUNCHERS.values() if each not in but and _writes(each, request, catalog)]


def _writes(engine: Launcher, request: Mapping[str, object], catalog: Catalog) -> bool:
    try:
        settled = _settled(request, engine, catalog)[0]
    except (UsageError, DataError):
        return False
    return engine.refused(settled.scenario) is None and _idle(settled.scenario) is None


def _able_hint(able: Sequence[str]) -> str:
    return f"Engines that can: {', '.join(able)}." if able else "No engine that llmfeas writes for can."


def launch(engine: Launcher, scenario: Scenario, able: Callable[[], list[str]] = list) -> Launch:
    """Write a scenario in an engine's own words; `able` names those that can where it cannot.

    Raises:
        UsageError: a setting that the engine cannot express; engines that can are candidates.
    """
    if not (scenario.model_path or "").isprintable():
        raise UsageError("bad-value", "the model's path holds characters that do not show.", "Rename the file.")
    objection = engine.refused(scenario)
    if objection is not None:
        raise cannot(engine, scenario, objection, able())
    idle = _idle(scenario)
    if idle is not None:
        raise idle
    return stamped(engine, scenario, engine.write(scenario))


def _idle(scenario: Scenario) -> UsageError | None:
    """The error of a batch that leaves devices without work; None where each has some."""
    if scenario.dp * scenario.tp * scenario.pp * scenario.cp >= scenario.num_devices or not scenario.is_training:
        return None
    message = f"--global-batch {scenario.global_batch} leaves devices without work, which no engine can express."
    ranks = scenario.num_devices // (scenario.tp * scenario.pp * scenario.cp)
    least = ranks * scenario.micro_batch
    return UsageError("engine-cannot", message, f"Give --global-batch {least} or more, or fewer devices.")


COMMENTED = (".yaml", ".yml", ".py", "Modelfile")
"""Files in which a comment may stand."""


def stamped(engine: Launcher, scenario: Scenario, written: Launch) -> Launch:
    """A launch that says for which releases it is and what they take: in each file, and above its notes."""
    line = engine.made_for(scenario)
    files = tuple(
        replace(file, text=f"# {line}\n{file.text}") if file.name.endswith(COMMENTED) else file
        for file in written.files
    )
    return replace(written, files=files, notes=(line, *_of_the_system(scenario), *written.notes))


def _builds(engine: Launcher, settled: Resolution) -> Iterator[str]:
    """Yield what to install instead of the builds that pip finds by itself."""
    packages, builds = engine.packages(settled.scenario), settled.backend.builds
    known = [builds[name] for name in packages if name in builds]
    yield from known or (builds["torch"],) if packages and "torch" in builds else known


def _of_the_system(scenario: Scenario) -> Iterator[str]:
    """Yield what is to be set outside of the engine."""
    if scenario.was_given("wired_limit") and scenario.wired_limit_bytes is not None:
        mebibytes = f"{scenario.wired_limit_bytes / MIB:.0f}"
        yield f"first let the GPU have so much, until the next start: sudo sysctl iogpu.wired_limit_mb={mebibytes}"


def cannot(engine: Launcher, scenario: Scenario, objection: Objection, able: Sequence[str] = ()) -> UsageError:
    """Make the error of a setting that an engine cannot express; it names the engines that can."""
    because = f": {objection.because}" if objection.because else ""
    message = f"{spelled(scenario, objection.setting)} is not something {engine.name} can express{because}."
    return UsageError("engine-cannot", message, _able_hint(able), list(able))


def prepared(request: Mapping[str, object], engine: Launcher, catalog: Catalog, cluster: str | None = None) -> Prepared:
    """Settle a request for an engine and write it, with the job of a scheduler where one is named.

    What the user left open is settled so that the engine can express it; a warning says what was changed.

    Raises:
        UsageError: a setting that the engine cannot express; unknown names, contradictions.
        DataError: for a model file that cannot be used.
    """
    _check_task({**request, "engine": _taken_engine(request, engine, catalog)[0]}, engine, catalog)
    settled, changed = _settled(request, engine, catalog)
    asked = {**request, "task": settled.scenario.task}
    written = launch(engine, settled.scenario, lambda: writers(asked, catalog, engine))
    written = replace(written, notes=(*written.notes[:1], *_builds(engine, settled), *written.notes[1:]))
    if cluster is not None:
        from .clusters import on_cluster

        written = on_cluster(cluster, engine, settled.scenario, written)
    estimated = estimate(settled)
    return Prepared(written, estimated, (*changed, *estimated.warnings, *_doubts(estimated)))


def _settled(request: Mapping[str, object], engine: Launcher, catalog: Catalog) -> tuple[Resolution, list[Note]]:
    """Settle a request so that an engine can express what the user left open, as far as it can; what that changed."""
    taken, changed = _taken_engine(request, engine, catalog)
    settings: dict[str, object] = {**request, "engine": taken}
    settled = resolution(settings, catalog)
    for _ in range(len(BY_NAME)):
        objection = engine.refused(settled.scenario)
        if objection is None or objection.instead is None or settled.scenario.was_given(objection.setting):
            break
        settings[objection.setting] = {"value": objection.instead, "origin": "derived"}
        settings = _without_batch(settings) if objection.setting in SPLITS else settings
        changed.append(_changed(engine, settled.scenario, objection))
        settled = resolution(settings, catalog)
    return settled, changed


def _without_batch(request: Mapping[str, object]) -> dict[str, object]:
    """Forget batches that an earlier answer derived from its layout."""
    derived = [
        name
        for name in ("micro_batch", "global_batch")
        if recorded_origins({name: request.get(name)}).get(name, "given") != "given"
    ]
    return {name: value for name, value in request.items() if name not in derived}


def _check_task(request: Mapping[str, object], engine: Launcher, catalog: Catalog) -> None:
    values = parsed(request, catalog.tables.quantization)
    implied = implied_task(values, values, catalog)
    task = values.get("task") or ("pretrain" if implied is None else implied[0])
    if task not in engine.tasks:
        able = writers({**request, "task": task}, catalog, engine)
        raise UsageError("engine-cannot", f"--task {task} is not written for {engine.name}.", _able_hint(able), able)


def _taken_engine(request: Mapping[str, object], engine: Launcher, catalog: Catalog) -> tuple[str, list[Note]]:
    """The engine to estimate with: the one asked for where the launcher is its own, else the first whose it is.

    Raises:
        UsageError: it is nobody's.
    """
    given = request.get("engine")
    planned = given.get("value") if isinstance(given, Mapping) else given
    named = None if planned is None else engine_named(str(planned), catalog)
    able = [each.id for each in catalog.engines.values() if engine.id in each.launchers]
    if not able:
        hint = f"Write 'launchers: [{engine.id}]' into the record of one."
        raise UsageError("engine-cannot", f"--engine {engine.id}: no engine is launched by it.", hint)
    own = engine.id if engine.id in able else able[0]
    if named is None or named in able:
        return named or own, []
    text = f"the recipe was made for {printable(named, 40)}: it was estimated again for {own}"
    return own, [Note("launch-engine", text)]


def _changed(engine: Launcher, scenario: Scenario, objection: Objection) -> Note:
    name = objection.setting
    because = f": {objection.because}" if objection.because else ""
    was = spelled(scenario, name)
    taken = spelled(scenario, name).rpartition(" ")[0]
    text = f"{was} is not something {engine.name} can express{because}; {taken} {objection.instead} was taken"
    return Note("launch-changed", text)


def _doubts(estimated: Estimate) -> tuple[Note, ...]:
    if estimated.verdict.works(surely=True):
        return ()
    tight = estimated.verdict.works()
    code, judged = ("tight", "is tight") if tight else ("not-feasible", "does not work")
    return (Note(code, f"as estimated this {judged} ({why(estimated.verdict)}): see 'llmfeas plan'"),)


__all__ = [
    "LAUNCHERS",
    "File",
    "Launch",
    "LaunchResult",
    "Launcher",
    "Prepared",
    "launch",
    "launcher",
    "prepared",
    "usual",
]
