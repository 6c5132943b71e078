"""Can this language model be trained, fine-tuned or served on this hardware, and what would have to change?

The questions are functions, which take settings by their names and give typed answers:

    estimate(model="gpt2-xl", device="rtx-4070ti", task="lora")    one question
    compare(["gpt2-xl"], ["rtx-4070ti", "m4-max"], task="lora")    devices side by side, ranked
    plan(model="llama-3-8b", device="rtx-4090", task="finetune")   what would have to change
    solve("max-context", model="qwen3-8b", device="rtx-4090", task="inference")
    sweep([{"model": "gpt2", "device": "t4"}, ...])                many questions, lazily

Settings are those of the command line with underscores (`micro_batch` for `--micro-batch`), listed in
`llmfeas.settings.Settings` and docs/settings.md; values are numbers in base units or text as people write it
(`"16GiB"`, `"10B"`, `"30d"`). `to_dict()` of each answer is exactly the JSON of the command of the same name.
"""

from __future__ import annotations

TYPE_CHECKING = False
"""As `typing` has it, which takes long to import."""

__version__ = "0.2.0"
__all__ = ["DataError", "LlmfeasError", "UsageError", "__version__", "compare", "estimate", "plan", "solve", "sweep"]

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any, Unpack

    from .errors import DataError, LlmfeasError, UsageError
    from .feasibility.result import Estimate
    from .planning.compare import Comparison, Sort
    from .planning.plan import Plan
    from .planning.solve.answer import Answer
    from .settings import Question, Setting, Settings


def estimate(model: str, device: str, **settings: Unpack[Settings]) -> Estimate:
    """The answer to one question, with what else is possible and, where it does not work, the nearest ways to yes.

    Raises:
        UsageError: unknown names, values out of bounds, contradictions.
        DataError: a model file or catalog that cannot be used.
    """
    from .planning.answer import answer

    _drawn_in_notebooks()
    return answer({"model": model, "device": device, **settings})


def compare(
    models: str | Sequence[str],
    devices: str | Sequence[str] = (),
    *,
    backends: str | Sequence[str] = (),
    baseline: str | None = None,
    sort: Sort = "time",
    **settings: Unpack[Settings],
) -> Comparison:
    """The same question for each model on each device, ranked: feasible first, then by `sort`; one name stands for
    itself.

    Without devices and backends, one well-known device of each backend and class.

    Raises:
        UsageError, DataError: as `estimate`.
    """
    from .catalog.store import catalog
    from .planning.compare import chosen_devices, comparison

    known = catalog()
    chosen = chosen_devices(known, _names(devices), _names(backends), every=False)
    by_hand = bool(devices or backends)
    return comparison(settings, _names(models), chosen, known, baseline=baseline, sort=sort, chosen=by_hand)


def plan(
    model: str,
    device: str,
    *,
    keep: Setting | Sequence[Setting] = (),
    any_device: bool = False,
    shown: int = 6,
    **settings: Unpack[Settings],
) -> Plan:
    """What would have to change so that it works: the least change first, then others that are faster or cheaper.

    Settings named in `keep` stay as they are; other devices are tried with `any_device`.

    Raises:
        UsageError, DataError: as `estimate`.
    """
    from .catalog.store import catalog
    from .planning.plan import plan

    asked = {"model": model, "device": device, **settings}
    return plan(asked, catalog(), keep=_names(keep), any_device=any_device, shown=shown)


def solve(
    question: Question, model: str | None = None, device: str | None = None, **settings: Unpack[Settings]
) -> Answer:
    """A question asked backwards: the largest model, the fewest devices, how many tokens.

    Model or device may be left out where the question finds them.

    Raises:
        UsageError, DataError: as `estimate`.
    """
    from .catalog.store import catalog
    from .planning.solve import solved

    known = {name: value for name, value in (("model", model), ("device", device)) if value is not None}
    return solved(question, {**known, **settings}, catalog())


def sweep(requests: Iterable[Mapping[str, object]]) -> Iterator[Estimate | LlmfeasError]:
    """The answers to many questions, in their order, each when it is asked for; without ladder and ways to yes.

    A question that cannot be answered gives its error in place of an estimate, and the others go on. Answers and
    errors can be pickled: `functools.partial(map, ...)`, a pool, Dask, Ray or Spark may call this on parts.
    """
    from .errors import LlmfeasError
    from .planning.answer import bare_answer

    _drawn_in_notebooks()
    for request in requests:
        try:
            yield bare_answer(request)
        except LlmfeasError as error:
            yield error


def _names(names: str | Sequence[str]) -> Sequence[str]:
    """Several names, or one."""
    return (names,) if isinstance(names, str) else names


def _drawn_in_notebooks() -> None:
    """Attach to estimates how notebooks show them, which is found once one does."""
    from .feasibility.result import Estimate

    def framed(found: Estimate) -> str:
        from .render.notebook import framed

        return framed(found)

    Estimate._repr_html_ = framed


def __getattr__(name: str) -> Any:
    if name in ("DataError", "LlmfeasError", "UsageError"):
        from importlib import import_module

        return getattr(import_module(".errors", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
