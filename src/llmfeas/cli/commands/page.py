"""`llmfeas page`: the calculator as a page in the browser."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ...errors import UsageError
from ...text import printable
from ..output import write

if TYPE_CHECKING:
    from http.server import ThreadingHTTPServer

EXAMPLE = "llmfeas page public"
HOST, PORT = "127.0.0.1", 8000


def run(folder: str | None, pyodide: str | None, serve: bool, port: int) -> None:
    """Write the page into a folder, and show it locally if asked to.

    Raises:
        UsageError: no folder is named, it cannot be written, or the port is taken.
    """
    from ...page.folder import write_page

    runtime = None if pyodide is None else Path(pyodide)
    if folder is None and not serve:
        raise UsageError("missing-argument", "no folder is named.", f"For example: {EXAMPLE}")
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="llmfeas-") as place:
            _served(Path(place, "page"), runtime, port)
        return
    manifest = write_page(Path(folder), runtime)
    if serve:
        _served(Path(folder), runtime, port, written=True)
    else:
        write(f"{printable(folder)} holds the page of llmfeas {manifest['llmfeas']}. Any host of files serves it.\n")


def _served(folder: Path, runtime: Path | None, port: int, *, written: bool = False) -> None:
    if not written:
        from ...page.folder import write_page

        write_page(folder, runtime)
    with server(folder, port) as running:
        sys.stderr.write(f"http://{HOST}:{running.server_address[1]}/ shows the page; Ctrl-C ends it.\n")
        running.serve_forever()


def server(folder: Path, port: int) -> ThreadingHTTPServer:
    """A server of the folder, for this machine alone; port 0 takes a free one.

    Raises:
        UsageError: the port is taken.
    """
    from functools import partial
    from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

    class Handler(SimpleHTTPRequestHandler):
        extensions_map = {  # noqa: RUF012
            **SimpleHTTPRequestHandler.extensions_map,
            ".js": "text/javascript",
            ".mjs": "text/javascript",
            ".wasm": "application/wasm",
        }

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing of each file."""

    try:
        return ThreadingHTTPServer((HOST, port), partial(Handler, directory=str(folder)))
    except OSError as error:
        text = f"port {port} cannot be opened: {error.strerror}."
        raise UsageError("cannot-serve", text, "Name another with --port.") from None


command = click.Command(
    "page",
    params=[
        click.Argument(["folder"], metavar="[DIR]", required=False),
        click.Option(
            ["pyodide", "--pyodide"],
            metavar="DIR",
            help="The runtime, from the package pyodide of npm, to be part of the folder.  [its public address]",
        ),
        click.Option(["serve", "--serve"], is_flag=True, help="Show the page on this machine."),
        click.Option(
            ["port", "--port"],
            type=click.IntRange(0, 65535),
            default=PORT,
            metavar="N",
            help=f"With --serve.  [{PORT}]",
        ),
    ],
    callback=run,
    help="The calculator as a page in the browser: a folder that any host of files serves. It computes there, sends "
    "nothing anywhere, and works without a network once it was loaded.",
    epilog=f"For example: {EXAMPLE}",
)
