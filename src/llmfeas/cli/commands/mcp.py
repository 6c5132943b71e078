"""`llmfeas mcp`: the questions and catalogs as tools of the Model Context Protocol, over stdin and stdout."""

from __future__ import annotations

import gc
import sys
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from ... import __version__
from ...errors import LlmfeasError, UsageError
from ..app import PROGRAM
from ..parameters import Command, catalogs

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from mcp_types import CallToolResult

    from ...contract import Json
    from ..tools import Tool

LONGEST_LINE = 4_000_000
"""Bytes of one message."""
INSTRUCTIONS = (
    "llmfeas computes whether a language model can be trained, fine-tuned or served on some hardware, how long it "
    "takes and what it costs, without network. Ask estimate before something is rented, bought or started; plan where "
    "the answer is no; compare and solve to choose. Numbers are in base units (bytes, seconds, USD) unless a name says "
    "otherwise; ranges are low, expected, high."
)
SCHEMA_TYPE = "application/schema+json"


def run(**values: Any) -> None:
    """Serve one client until it closes stdin.

    Raises:
        UsageError: the protocol's SDK is not installed.
    """
    from .. import terminal

    terminal.settled()
    try:
        import anyio
        import mcp.server.lowlevel  # noqa: F401
    except ImportError as error:
        message = f"'llmfeas mcp' needs the SDK of the Model Context Protocol, which is not installed ({error})."
        raise UsageError("missing-extra", message, "Install it: pip install 'llmfeas[mcp]'.") from None
    gc.enable()
    anyio.run(_served)


async def _served() -> None:
    from mcp.server.stdio import stdio_server

    heard = _Heard()  # in place of an open file, of which only the lines are taken
    async with stdio_server(stdin=cast(Any, heard)) as (incoming, outgoing):
        heard.outgoing = outgoing
        offered = server()
        await offered.run(incoming, outgoing, offered.create_initialization_options())


class _Heard:
    """The lines of stdin that are messages; what is none is answered with an error, and nothing ends of it."""

    outgoing: Any = None

    async def __aiter__(self) -> AsyncIterator[str]:
        import anyio
        from mcp_types import jsonrpc_message_adapter

        while line := await anyio.to_thread.run_sync(sys.stdin.buffer.readline, LONGEST_LINE, abandon_on_cancel=True):
            text, whole = line.decode(errors="replace"), line.endswith(b"\n") or len(line) < LONGEST_LINE
            while not line.endswith(b"\n") and len(line) == LONGEST_LINE:
                line = await anyio.to_thread.run_sync(sys.stdin.buffer.readline, LONGEST_LINE, abandon_on_cancel=True)
            try:
                if not whole:
                    raise ValueError(f"longer than {LONGEST_LINE:,} bytes")
                jsonrpc_message_adapter.validate_json(text, by_name=False)
            except ValueError:
                await self._refuse(whole)
            else:
                yield text

    async def _refuse(self, whole: bool) -> None:
        from mcp.shared.message import SessionMessage
        from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError

        code = PARSE_ERROR if whole else INVALID_REQUEST
        message = "This line is no JSON-RPC message." if whole else f"A line has at most {LONGEST_LINE:,} bytes."
        error = JSONRPCError(jsonrpc="2.0", id=None, error=ErrorData(code=code, message=message))
        await self.outgoing.send(SessionMessage(error))


def server() -> Server[Any]:
    """The server: tools, and the JSON Schemas of their answers as resources."""
    from mcp.server.lowlevel import Server
    from mcp.shared.exceptions import MCPError
    from mcp_types import INVALID_PARAMS, ListToolsResult

    from ..tools import tools

    known = tools()

    async def listed(context: Any, params: Any) -> Any:
        return ListToolsResult(tools=[_as_tool(tool) for tool in known.values()])

    async def called(context: Any, params: Any) -> Any:
        if params.name not in known:
            raise MCPError(INVALID_PARAMS, f"There is no such tool; there are {', '.join(known)}.")
        return await _called(known[params.name], dict(params.arguments or {}))

    async def resources(context: Any, params: Any) -> Any:
        return _schemas(sorted({tool.writes for tool in known.values()}))

    async def read(context: Any, params: Any) -> Any:
        return _schema(str(params.uri))

    return Server(
        PROGRAM,
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=listed,
        on_call_tool=called,
        on_list_resources=resources,
        on_read_resource=read,
    )


def _schemas(names: Sequence[str]) -> Any:
    from mcp_types import ListResourcesResult, Resource

    from ..tools import SCHEMAS

    return ListResourcesResult(
        resources=[Resource(uri=SCHEMAS + name, name=f"{name} schema", mime_type=SCHEMA_TYPE) for name in names]
    )


def _schema(uri: str) -> Any:
    from mcp.shared.exceptions import MCPError
    from mcp_types import INVALID_PARAMS, ReadResourceResult, TextResourceContents

    from ..tools import SCHEMAS
    from .schema import schema_text

    try:
        text = schema_text(uri.removeprefix(SCHEMAS))
    except LlmfeasError as error:
        raise MCPError(INVALID_PARAMS, f"{error.message} {error.hint}") from None
    return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=SCHEMA_TYPE, text=text)])


def _as_tool(tool: Tool) -> Any:
    from mcp_types import Tool as Described
    from mcp_types import ToolAnnotations

    return Described(
        name=tool.name,
        description=tool.help,
        input_schema=tool.schema,
        output_schema=tool.written,
        annotations=ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False),
    )


async def _called(tool: Tool, arguments: Json) -> CallToolResult:
    """The answer of a tool, computed beside the loop, so that the client is heard meanwhile; one at a time."""
    import anyio
    from mcp_types import CallToolResult, TextContent

    text, content, failed = await anyio.to_thread.run_sync(_answered, tool, arguments, limiter=_one_at_a_time())
    return CallToolResult(content=[TextContent(text=text)], structured_content=content, is_error=failed)


_limiter: Any = None


def _one_at_a_time() -> Any:
    """A limiter shared by all calls: the walk over a model counts references, and caches are shared."""
    global _limiter
    import anyio

    _limiter = _limiter or anyio.CapacityLimiter(1)
    return _limiter


def _answered(tool: Tool, arguments: Json) -> tuple[str, Json, bool]:
    """Text for the reader, the answer or the error as JSON has it, and whether it is an error."""
    from ...errors import unforeseen
    from ...render.formats.markdown import rendered
    from ..failure import as_text

    try:
        _check(tool, arguments)
        answer = tool.answered(arguments)
        return rendered(answer.report()) + answer.remark, answer.envelope, False
    except LlmfeasError as error:
        known = error
    except Exception as error:
        known = unforeseen(error)
    return as_text(known), {"error": known.to_dict()}, True


def _check(tool: Tool, arguments: Json) -> None:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    wrong = best_match(Draft202012Validator(tool.checked).iter_errors(arguments))
    if wrong is not None:
        place = f"{wrong.json_path.removeprefix('$.')}: " if wrong.absolute_path else ""
        raise UsageError("bad-arguments", f"{tool.name}: {place}{wrong.message}.", "The tool's input schema says more.")


command = Command(
    "mcp",
    params=catalogs(),
    callback=run,
    help="Serve estimate, compare, plan, solve and the catalogs to a coding agent: tools of the Model Context Protocol "
    "over stdin and stdout. It needs the extra: pip install 'llmfeas[mcp]'.",
    epilog="For example, in an agent's configuration: llmfeas mcp",
)
