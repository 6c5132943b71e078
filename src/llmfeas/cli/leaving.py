"""Leaving without the interpreter's own end, which takes apart object by object what goes with the process anyway.

It takes as long as an eighth of an answer.
"""

from __future__ import annotations

import atexit
import os
import sys


def leave(code: int) -> None:
    """End the process with an exit code, unless somebody would miss what the interpreter does at its end."""
    if is_watched() or not _flushed():
        return
    os._exit(code)


def is_watched() -> bool:
    """Whether more is to come at the end: functions that wait for it, threads, a debugger or profiler, a prompt."""
    registered = getattr(atexit, "_ncallbacks", lambda: 1)()
    threading, monitoring = sys.modules.get("threading"), getattr(sys, "monitoring", None)
    return bool(
        registered
        or (threading is not None and threading.active_count() > 1)
        or sys.gettrace()
        or sys.getprofile()
        or (monitoring is not None and any(map(monitoring.get_tool, range(6))))
        or sys.flags.inspect
        or sys.flags.interactive
        or sys.flags.dev_mode
        or os.environ.get("PYTHONINSPECT")
    )


def _flushed() -> bool:
    """Push out what is still on its way; where that fails the interpreter has to say so."""
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):
        return False
    return True
