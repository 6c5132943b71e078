"""Changes together: which go with which."""

from __future__ import annotations

from llmfeas.planning.changes.change import Axis, Change, clash, picked, together

task = Change({"task": "lora"}, "")
narrow = Change({"precision": "bf16"}, "", alone=("task",))
wide = Change({"precision": "tf32"}, "")


def test_a_change_that_stands_alone_goes_with_no_other_of_the_same_setting() -> None:
    assert clash((narrow, task))
    assert not clash((wide, task))
    assert together((narrow, task)) == (narrow,)


def test_of_each_axis_is_picked_what_goes_with_the_axes_after_it() -> None:
    assert picked((Axis("precision", (wide, narrow)), Axis("task", (task,))), lambda found: found[-1]) == (wide, task)
    assert picked((Axis("precision", (narrow,)), Axis("task", (task,))), lambda found: found[-1]) is None
