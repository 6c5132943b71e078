"""The command line: `program` is `llmfeas`, `main` runs arguments; a command is a file, imported when it is used."""

from __future__ import annotations

TYPE_CHECKING = False
"""As `typing` has it, whose import takes a while in which an interrupt would end in a traceback."""
if TYPE_CHECKING:
    from collections.abc import Sequence


def program() -> int:
    """The command `llmfeas`: run the command line of this process, and leave at once where nobody waits for more."""
    from .leaving import leave

    code = main()
    leave(code)
    return code


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    0: answered, whatever the verdict. 1: a bug of ours. 2: usage. 3: bad data. 4: a check failed. 130: interrupted.
    128 + n: ended by signal n.
    """
    given: list[str] = []
    try:
        import gc
        import sys

        given = list(sys.argv[1:] if arguments is None else arguments)
        if arguments is None:
            gc.disable()  # one answer makes no garbage worth a search; what answers many turns it on again
            heed_signals(given)
        from . import output
        from .plain import ran

        code = 0
        if not ran(given):
            from .app import run

            code = run([*given])
        output.flush()
        return code
    except (Exception, KeyboardInterrupt) as error:
        from .failure import report_error

        return report_error(error, given)


def heed_signals(arguments: Sequence[str]) -> None:
    """Let signals end the program in good order, with a message such as these arguments ask for."""
    from .ending import heed
    from .words import wants_json

    if not wants_json(arguments):
        heed()
        return
    import json

    from ..errors import LlmfeasError

    heed(lambda code, message: json.dumps({"error": LlmfeasError(code, message).to_dict()}))
