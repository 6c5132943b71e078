"""The command line: `main` runs it; every command is a file beside this one and is imported when it is used."""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    0: answered, whatever the verdict. 1: a bug of ours. 2: usage. 3: bad data. 4: a check failed. 130: interrupted.
    128 + n: ended by signal n.
    """
    from .ending import Ended, heed

    given: list[str] = []
    try:
        import gc
        import sys

        given = list(sys.argv[1:] if arguments is None else arguments)
        if arguments is None:
            gc.disable()  # one answer makes no garbage worth a search; what answers many turns it on again
            heed()
        from . import output
        from .app import run

        code = run([*given])
        output.flush()
        return code
    except (Exception, KeyboardInterrupt, Ended) as error:
        from .failure import report_error

        return report_error(error, given)
