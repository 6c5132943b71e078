"""The `inputs` of the JSON: every setting as resolved, with its origin, in a form that can be asked again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypedDict

from ..adapters import OF_ADAPTERS
from ..contract import Keys
from ..options import OF_A_JOB, OPTIONS
from ..scenario import Origin, Scenario
from ..timing.links import card_bytes_per_s
from ..units import GB

_FIELDS = {
    "memory": "memory_bytes",
    "reserve": "reserve_bytes",
    "wired_limit": "wired_limit_bytes",
    "host_memory": "host_memory_bytes",
    "host_bandwidth": "host_gb_per_s",
    "power_limit": "power_limit_w",
    "price": "price_usd_per_hour",
    "purchase_price": "purchase_usd",
    "lifetime": "lifetime_seconds",
    "electricity": "electricity_usd_per_kwh",
    "mtbf": "device_mtbf_seconds",
    "storage": "storage_gb_per_s",
    "data_size": "text_bytes",
    "loader": "loader_tokens_per_s",
    "drive": "drive_gb_per_s",
    "deadline": "deadline_seconds",
    "budget": "budget_usd",
    "ttft": "ttft_seconds",
    "tpot": "tpot_seconds",
}
"""Settings whose field in a Scenario carries a unit in its name."""


_PLAIN = {
    option.name: (_FIELDS.get(option.name, option.name), option.tasks)
    for option in OPTIONS
    if option.name not in ("model", "device", "network")
}


class Setting(TypedDict):
    """A setting as it was resolved, and who said so."""

    value: object
    origin: Origin


Inputs = Annotated[
    Mapping[str, Setting],
    Keys(tuple(option.name for option in OPTIONS), tuple(option.name for option in OPTIONS if option.added)),
]
"""Every setting, by name."""


def inputs(scenario: Scenario) -> Inputs:
    """`{name: {"value", "origin"}}` of every setting; null where it has no meaning for the task.

    Bytes, seconds, USD and GB/s are plain numbers in these units. The whole mapping is a request itself: asked again it
    gives the same answer, since what was not said before counts as not said again.
    """
    origins = scenario.origins
    network, network_origin = network_and_origin(scenario)
    result: dict[str, Setting] = {
        "model": {"value": scenario.model_path or scenario.model.id, "origin": origins["model"]},
        "device": {"value": scenario.offer or scenario.device.id, "origin": origins["device"]},
        "network": {"value": network, "origin": network_origin},
    }
    for name in _PLAIN:
        value, origin = value_and_origin(scenario, name)
        result[name] = {"value": value, "origin": origin}
    return result


def network_and_origin(scenario: Scenario) -> tuple[float | None, Origin]:
    """GB/s of one device's network: as given, else what is assumed of its generation where nodes need one."""
    if scenario.network_bytes_per_s is not None:
        return scenario.network_bytes_per_s / GB, scenario.origins["network"]
    if scenario.num_devices <= scenario.devices_per_node:
        return None, "default"
    return card_bytes_per_s(scenario.tables.efficiency, scenario.device) / GB, "device"


def value_and_origin(scenario: Scenario, name: str) -> tuple[Any, Origin]:
    """A setting other than model, device and network as `inputs` shows it."""
    field, tasks = _PLAIN[name]
    origin = scenario.origins.get(name, "default")
    ends = name in OF_A_JOB and not scenario.model.architecture.writes
    if (scenario.task not in tasks and not ends) or (origin == "default" and _means_nothing(scenario, name)):
        return None, origin
    return getattr(scenario, field), origin


def _means_nothing(scenario: Scenario, name: str) -> bool:
    """Whether a setting that nobody said decides nothing, and would if it were said: adapters where all weights train,
    a limit of requests at once where they come at a rate.
    """
    if name in OF_ADAPTERS:
        return scenario.is_training and scenario.adapter_kind is None
    return name == "concurrency" and scenario.rate is not None
