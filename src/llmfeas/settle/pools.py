"""Prompts and answers on devices of their own: how many read, how many write."""

from __future__ import annotations

import re

from ..errors import UsageError
from ..options import BY_NAME
from ..scenario import Scenario
from ..text import printable
from .draft import Draft


def count_pools(draft: Draft) -> None:
    """Take the number of devices from those of the two pools, where it is not said.

    Raises:
        UsageError: no two counts, or a number of requests, which one server answers.
    """
    text = draft.given.get("disaggregate")
    if text is None:
        return
    found = re.fullmatch(r"\s*(\d{1,7})\s*:\s*(\d{1,7})\s*", text)
    if found is None or not (int(found[1]) and int(found[2])):
        raise UsageError("bad-value", f"--disaggregate: {printable(text, 40)!r} is no two counts", "Write 2:6.")
    if draft.was_given("requests"):
        text = "--disaggregate and --requests exclude each other: two pools are known under a load that goes on"
        raise UsageError("contradiction", text, "Leave --requests out.")
    draft.given = {**draft.given, "disaggregate": f"{int(found[1])}:{int(found[2])}"}
    if not draft.was_given("num_devices") and not re.match(r"\d+\s*x", str(draft.given["device"])):
        draft.given["num_devices"] = int(found[1]) + int(found[2])
        draft.recorded = {**draft.recorded, "num_devices": "derived"}


def check_pools(scenario: Scenario) -> None:
    """Refuse pools that are not all devices, or do not hold whole copies of the model.

    Raises:
        UsageError: naming the counts.
    """
    if scenario.disaggregate is None:
        return
    prompts, answers = scenario.pools
    if prompts + answers != scenario.num_devices:
        said = f"--disaggregate {scenario.disaggregate} is {prompts + answers} devices"
        text = f"{said}, --num-devices is {scenario.num_devices}"
        raise UsageError("contradiction", text, f"{BY_NAME['num_devices'].flag} may be left out.")
    each = scenario.tp * scenario.pp
    if prompts % each or answers % each:
        text = f"a copy of the model takes {each} devices, which do not divide --disaggregate {scenario.disaggregate}"
        raise UsageError("impossible-layout", text, "Give --tp and --pp whose product divides both.")
