from __future__ import annotations

from dataclasses import replace

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.timing.links import Links, device_links, pcie_bytes_per_s
from llmfeas.timing.rates import training_rates
from llmfeas.timing.regimes import UNKNOWN_WIDTH, interval


def links_of(name: str, devices_per_node: int | None = None, network: float | None = None) -> Links:
    device = catalog().devices[name]
    return device_links(catalog().tables.efficiency, device, devices_per_node or device.devices_per_node, network)


def test_a_ring_across_nodes_uses_every_card_of_the_node() -> None:
    links = links_of("h100-sxm")
    assert links.ring(8) == links.node_bytes_per_s
    assert links.ring(16) == pytest.approx(min(links.node_bytes_per_s, 8 * links.network_bytes_per_s))
    assert links.ring(2, stride=8) == pytest.approx(links.network_bytes_per_s)


def test_what_passes_a_ring_takes_longer_the_more_pass_it_on() -> None:
    links = links_of("h100-sxm")
    assert links.hops(8) == pytest.approx(7 * links.hop_seconds)
    assert links.hops(64) == pytest.approx(56 * links.hop_seconds + 7 * links.network_hop_seconds)
    assert links.hops(8, stride=8) == pytest.approx(7 * links.network_hop_seconds)
    assert links.call(16) - links.call(8) == pytest.approx(links.network_hop_seconds)
    assert links_of("tpu-v5p").hops(256) == 0.0


def test_a_network_that_is_given_replaces_the_assumed_one() -> None:
    assert links_of("h100-sxm", network=1e9).network_bytes_per_s < links_of("h100-sxm").network_bytes_per_s / 10


def test_consumer_cards_have_slow_links_and_hide_nothing() -> None:
    consumer, server = links_of("rtx-3090"), links_of("a100-sxm-80gb")
    assert consumer.node_bytes_per_s < pcie_bytes_per_s(catalog().devices["rtx-3090"]) / 4
    assert consumer.exposed == 1
    assert server.exposed < 1


def test_a_bridge_joins_two_cards_only() -> None:
    links = links_of("a100-pcie-80gb")
    assert links.ring(2) > 5 * links.ring(4)


def test_no_product_beats_its_peak() -> None:
    numbers = catalog().tables.efficiency
    for device in catalog().devices.values():
        for style in ("plain", "tuned", "native"):
            for precision in ("bf16-mixed", "fp16-mixed", "fp8-mixed", "fp32"):
                rates = training_rates(numbers, device, precision, style)
                assert (
                    0
                    < rates.matrix
                    <= max(device.train_flop_per_s(precision), (device.tflop_per_s.fp8_fp32 or 0) * 1e12)
                ), (device.id, style, precision)


def test_priors_widen_and_mark_a_range() -> None:
    numbers = catalog().tables.efficiency
    sure, unsure = (interval(numbers, "training", "pytorch-16bit", priors) for priors in (0, 2))
    assert sure.evidence == "enough"
    assert unsure.evidence == "few"
    assert unsure.width > sure.width
    unknown = interval(replace(numbers, regimes={}), "training", "nobody ran this", 0)
    assert unknown.evidence == "none"
    assert unknown.width == pytest.approx(UNKNOWN_WIDTH)
