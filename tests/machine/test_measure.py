"""What the cores of a processor read of its memory, measured."""

from __future__ import annotations

import sys

import pytest

import recorded
from llmfeas.catalog.store import catalog
from llmfeas.machine import Machine, device_of, matched, measure
from llmfeas.machine.cpu import parse_cpuinfo
from llmfeas.record import replace
from llmfeas.units import GIB


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "READER", measure.READER.replace(f"< {measure.SECONDS}", "< 0.01"))


@pytest.mark.usefixtures("quick")
def test_memory_is_read_at_the_speed_of_memory() -> None:
    """Between a slow board and more than any two cores reach."""
    processor = replace(parse_cpuinfo(recorded.CPUINFO_9654P, GIB), cores=2)
    speed = measure.read_gb_per_s(processor)
    assert speed is not None and 0.5 < speed < 500


def test_what_fails_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine((), parse_cpuinfo(recorded.CPUINFO_9654P, GIB))
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    failed = measure.measured(machine)
    assert failed.processor == machine.processor
    assert failed.trouble == ("the bandwidth of the main memory could not be measured",)
    monkeypatch.undo()
    monkeypatch.setattr(measure, "READER", "raise SystemExit(3)")
    assert measure.measured(machine).trouble == failed.trouble
    assert measure.measured(Machine((), None)) == Machine((), None)


def test_what_was_measured_is_the_bandwidth() -> None:
    known = replace(parse_cpuinfo(recorded.CPUINFO_9654P, 96 * GIB), measured_gb_per_s=400.5)
    match = matched(known, catalog())
    assert "bandwidth_gb_per_s" in {each.field for each in match.differences}
    device = device_of(match, catalog())
    assert device is not None and device.bandwidth_gb_per_s == 400.5
    stranger = replace(parse_cpuinfo("model name: Strange\n", 16 * GIB), measured_gb_per_s=23.5)
    device = device_of(matched(stranger, catalog()), catalog())
    assert device is not None and device.bandwidth_gb_per_s == 23.5 and device.by_rule == ("tflop_per_s",)
    assert "GB/s to memory" not in (device.notes or "")
