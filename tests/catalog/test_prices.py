"""Rents: which price counts, which is doubted, what a machine's price says of its devices."""

from __future__ import annotations

import statistics
from dataclasses import replace
from pathlib import Path

import pytest

from llmfeas.catalog.device import Price
from llmfeas.catalog.overlay import with_overlays
from llmfeas.catalog.prices import cheapest_price, current, doubt, every_price, rent, usual_usd_per_hour
from llmfeas.catalog.store import Catalog, catalog
from llmfeas.settle import resolution

CATALOG = catalog()
DEVICES = CATALOG.devices


def price(provider: str, usd: float, as_of: str | None, kind: str = "on-demand", source: str = "somewhere") -> Price:
    return Price(provider=provider, usd_per_hour=usd, as_of=as_of, kind=kind, source=source)  # type: ignore[arg-type]


def test_a_price_without_a_day_is_left_out_unless_it_is_the_users_own() -> None:
    dated, undated, own = price("a", 2.0, "2026-01-01"), price("b", 1.0, None), price("mine", 0.5, None, source="")
    device = replace(DEVICES["rtx-4090"], prices=(dated, undated, own))
    assert current(device) == (dated, own)
    assert cheapest_price(replace(device, prices=(undated,)), CATALOG) is None


def test_of_one_providers_prices_the_latest_counts() -> None:
    old, new, market = (
        price("a", 1.0, "2026-01-01"),
        price("a", 2.0, "2026-05-01"),
        price("a", 0.5, "2026-02-01", kind="marketplace"),
    )
    device = replace(DEVICES["rtx-4090"], prices=(old, new, market))
    assert current(device) == (new, market)
    assert cheapest_price(device, CATALOG) == new


def test_every_price_that_counts_has_a_day() -> None:
    for device in DEVICES.values():
        for found in current(device):
            assert found.as_of and found.source, device.id


def test_a_device_that_only_clouds_lend_costs_its_share_of_their_machines() -> None:
    found = cheapest_price(DEVICES["t4"], CATALOG)
    assert found is not None
    assert (found.provider, found.note) == ("aws", "AWS g4dn.xlarge")
    assert found.usd_per_hour == CATALOG.offers["g4dn.xlarge"].usd_per_hour


def test_the_machine_that_a_count_fills_tells_its_price() -> None:
    one, eight = (cheapest_price(DEVICES["h100-sxm"], CATALOG, "lambda", count) for count in (1, 8))
    assert one is not None and eight is not None
    assert (one.note, eight.note) == ("Lambda 1 x H100 SXM", "Lambda 8 x H100 SXM")
    assert eight.usd_per_hour == pytest.approx((CATALOG.offers["lambda-8x-h100-sxm"].usd_per_hour or 0) / 8)


def test_an_offer_without_a_price_costs_what_its_provider_asks_for_the_device() -> None:
    found = rent(CATALOG.offers["ct5lp-hightpu-4t"], DEVICES["tpu-v5e"])
    assert found is not None
    assert found.usd_per_hour == next(own.usd_per_hour for own in DEVICES["tpu-v5e"].prices if own.provider == "gcp")
    none = resolution({"model": "gpt2", "device": "bm.gpu.h200.8"}, CATALOG).scenario
    assert none.price_usd_per_hour is None


def test_no_price_stands_twice() -> None:
    """A machine's price stands with its offer, not with the device too."""
    for device in DEVICES.values():
        own = {found.provider for found in device.prices}
        lent = {found.provider for found in every_price(device, CATALOG)[len(device.prices) :]}
        assert not own & lent - {"runpod"}, device.id


def test_what_devices_usually_rent_for_is_what_the_dated_prices_say() -> None:
    """`rents` in data/hardware.yaml is the median of price over speed, to 15 %."""
    rents = CATALOG.raw("hardware")["rents"]
    ratios: dict[str, list[float]] = {}
    for device in DEVICES.values():
        usual = usual_usd_per_hour(device, CATALOG)
        if usual:
            kind = device.backend if device.backend in rents else device.kind
            ratios.setdefault(kind, []).extend(found.usd_per_hour / usual for found in current(device))
    for kind, found in ratios.items():
        if len(found) >= 3:
            assert statistics.median(found) == pytest.approx(1, abs=0.15), kind


def test_the_catalogs_own_prices_are_plausible() -> None:
    assert [
        (device.id, found)
        for device in DEVICES.values()
        for found in current(device)
        if doubt(device, found.usd_per_hour, CATALOG)
    ] == []


def test_a_small_card_at_the_price_of_a_large_one_is_doubted() -> None:
    assert doubt(DEVICES["rtx-3060-12gb"], 0.45, CATALOG) is not None
    assert doubt(DEVICES["rtx-4090"], 0.45, CATALOG) is None
    assert doubt(DEVICES["h100-sxm"], 0.1, CATALOG) is not None
    assert doubt(DEVICES["iris-xe"], 5.0, CATALOG) is None, "nobody rents them: nothing to compare with"


def test_an_implausible_price_is_said_in_the_answer(tmp_path: Path) -> None:
    def codes(usd: float) -> set[str]:
        path = tmp_path / f"{usd}.yaml"
        path.write_text(
            f"devices:\n- {{extends: rtx-3060-12gb, prices: [{{provider: mine, usd_per_hour: {usd}}}]}}\n",
            encoding="utf-8",
        )
        overlaid: Catalog = with_overlays(CATALOG, [path])
        return {found.code for found in resolution({"model": "gpt2", "device": "3060 12gb"}, overlaid).warnings}

    assert "implausible-price" in codes(0.9)
    assert "implausible-price" not in codes(0.12)
