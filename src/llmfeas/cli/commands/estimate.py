"""`llmfeas estimate`: the main job."""

from __future__ import annotations

from ..estimated import EXAMPLE, run
from ..parameters import DRAWN, Command, Grouped, outputs, settings

command = Command(
    "estimate",
    params=[
        *settings(),
        Grouped(
            ["explain", "--explain"],
            is_flag=True,
            everyday=True,
            help="Show each formula, its numbers and where they are from.",
        ),
        Grouped(["check", "--check"], is_flag=True, help="Exit 4 if it does not work."),
        Grouped(["strict", "--strict"], is_flag=True, help="As --check, and exit 4 if it is tight too."),
        *outputs(DRAWN),
    ],
    callback=run,
    help="Can this model be trained, fine-tuned or served on this device: memory, time, cost, and what would have to "
    "change. What is not said is assumed, and the answer names it.",
    epilog=f"For example: {EXAMPLE}",
)
