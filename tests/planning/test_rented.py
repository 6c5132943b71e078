"""The cheapest server that keeps to a load and its targets: the true optimum of what was looked at."""

from __future__ import annotations

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.errors import UsageError
from llmfeas.planning.answer import bare_answer
from llmfeas.planning.solve import solved
from llmfeas.planning.solve.lots import Fleets, Lot

SERVED: dict[str, object] = {"model": "llama-3-8b", "task": "inference", "engine": "vllm", "prompt": 600, "output": 200}
LOADS: list[dict[str, object]] = [
    {"rate": 25, "ttft": "1s", "tpot": "40ms", "quant": "none"},
    {"concurrency": 150, "ttft": "1s", "tpot": "18ms", "quant": "awq-int4"},
    {"rate": 4, "tpot": "15ms", "length_spread": 0.5, "quant": "fp8"},
]
PRICES = {"l40s": 0.79, "a100-pcie-80gb": 1.19, "h100-sxm": 2.4}
WORKS = ("feasible", "tight")


def cheapest_by_force(load: dict[str, object]) -> float:
    """Every device, tensor-parallel size and count that is not dearer than the best so far."""
    best = 99.0
    for device, usd in PRICES.items():
        for tp in (1, 2, 4, 8):
            count = tp
            while count * usd < best:
                asked = {**SERVED, **load, "device": device, "tp": tp, "pp": 1, "num_devices": count}
                if bare_answer(asked).verdict.status in WORKS:
                    best = count * usd
                count += tp
    return best


@pytest.mark.parametrize("load", LOADS)
def test_the_cheapest_fleet_is_the_least_of_all(load: dict[str, object]) -> None:
    lots = [Lot(device=name, settings={"device": name}, usd_per_device_hour=usd) for name, usd in PRICES.items()]
    found = next(Fleets({**SERVED, **load}, catalog()).found(lots))
    assert found.usd_per_hour == pytest.approx(cheapest_by_force(load))


def test_each_price_of_the_ranking_is_that_of_a_server_that_keeps_up() -> None:
    load = {name: value for name, value in LOADS[0].items() if name != "quant"}
    found = solved("cheapest", {**SERVED, **load}, catalog())
    ranked = found.answer["ranked"]
    assert isinstance(ranked, list) and found.at is not None
    assert [row["usd"] for row in ranked] == sorted(row["usd"] for row in ranked)
    assert {row["usd_per"] for row in ranked} == {"hour"}
    for row in ranked[:3]:
        layout = {name: row["layout"][name] for name in ("tp", "pp")}
        asked = {**SERVED, **load, **layout, "quant": row["quant"], "device": row["device"]}
        estimated = bare_answer({**asked, "num_devices": row["num_devices"]})
        assert estimated.verdict.status in WORKS
        assert row["usd"] == pytest.approx(row["num_devices"] * row["usd_per_device_hour"])
        assert row["num_devices"] == row["layout"]["dp"] * layout["tp"] * layout["pp"]
    assert any("looked at" in note for note in found.notes)


def test_machines_are_lent_whole_and_a_said_count_is_kept() -> None:
    asked = {**SERVED, **LOADS[0]}
    whole = solved("cheapest", {**asked, "device": "lambda-8x-h100-sxm"}, catalog()).answer["ranked"]
    assert isinstance(whole, list) and {row["num_devices"] % 8 for row in whole} == {0}
    said = solved("cheapest", {**asked, "device": "l40s", "num_devices": 6}, catalog()).answer["ranked"]
    assert isinstance(said, list) and {row["num_devices"] for row in said} == {6}


def test_targets_that_nothing_reaches_are_said() -> None:
    found = solved("cheapest", {**SERVED, "rate": 1, "tpot": "10us"}, catalog())
    assert found.answer == {"device": None} and "no priced device does it" in found.notes
    with pytest.raises(UsageError, match="has no users"):
        solved("cheapest", {**SERVED, "task": "lora", "rate": 1}, catalog())


def test_cards_of_strangers_and_virtual_machines_of_one_card_are_no_cluster() -> None:
    """Only machines of one network train or run one model together."""
    training: dict[str, object] = {"model": "gpt2-xl", "tokens": "10B", "deadline": "7d", "task": "pretrain"}
    ranked = solved("cheapest", training, catalog()).answer["ranked"]
    assert isinstance(ranked, list)
    for row in ranked:
        device = catalog().devices[catalog().offers[row["device"]].device if "-1x-" in row["device"] else row["device"]]
        apart = row["kind"] == "marketplace" or "-1x-" in row["device"]
        assert row["num_devices"] <= (device.devices_per_node if apart else 512)
    with_one = {**training, "device": "lambda-1x-gh200"}
    found = solved("cheapest", with_one, catalog()).answer
    assert found.get("num_devices", 1) == 1
