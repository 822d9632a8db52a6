"""Open a session with an MCP server, list its tools, and read its errors and results."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
from jsonschema import Draft202012Validator, SchemaError
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, INVALID_PARAMS, METHOD_NOT_FOUND, CallToolResult, TextContent, Tool

from agent.turn.mcp_servers.file import McpServer
from agent.turn.mcp_servers.transport import transport_of
from memory.text import one_line

MOST_TOOLS = 64
LONGEST_SCHEMA = 6_000
"""Characters of the arguments' schema; every request of a turn carries it."""


@dataclass(frozen=True, eq=False)
class Session:
    client: Client
    tools: tuple[Tool, ...]
    """The tools that may be offered."""
    not_offered: dict[str, str]
    """Why other tools are not offered, by name."""
    ending: anyio.Event = field(default_factory=anyio.Event)
    """Set it to end the session."""


@asynccontextmanager
async def connected(server: McpServer) -> AsyncIterator[Session]:
    """Connect and list the tools."""
    async with Client(transport_of(server), cache=None) as client:
        listed, page = list[Tool](), await client.list_tools()
        while page.next_cursor and len(listed := listed + page.tools) < MOST_TOOLS:
            page = await client.list_tools(cursor=page.next_cursor)
        listed = (listed + page.tools)[:MOST_TOOLS]
        why = {tool.name: _not_offered(tool, server) for tool in listed}
        missing = sorted((server.allow or frozenset()) - why.keys())
        why |= dict.fromkeys(missing, f"it is none of its first {MOST_TOOLS} tools")
        tools = tuple(tool for tool in listed if not why[tool.name])
        yield Session(client, tools, {name: reason for name, reason in why.items() if reason})


def _not_offered(tool: Tool, server: McpServer) -> str:
    if server.allow is not None and tool.name not in server.allow:
        return "not in its `allow`"
    if len(json.dumps(tool.input_schema)) > LONGEST_SCHEMA:
        return f"the schema of its arguments has more than {LONGEST_SCHEMA:,} characters"
    try:  # a model's server would refuse the turn because of it
        Draft202012Validator.check_schema(tool.input_schema)
    except SchemaError as error:
        return f"the schema of its arguments is invalid: {error.message[:200]}"
    return ""


def changes(tool: Tool) -> bool:
    """Return whether a call may change something: only a tool that declares `read_only_hint` does not."""
    return not (tool.annotations and tool.annotations.read_only_hint)


def fault_of(error: Exception) -> str | None:
    """Return what is wrong with the server; None if it works and only refuses this call."""
    refused = isinstance(error, MCPError) and error.code in (INVALID_PARAMS, METHOD_NOT_FOUND)
    return None if refused else reason(error)


def has_ended(error: Exception) -> bool:
    """Return whether the session is over. A server over HTTP reports that only in words."""
    return isinstance(error, MCPError) and (
        error.code == CONNECTION_CLOSED or error.message == "Session terminated"
    )


def reason(error: BaseException) -> str:
    """Return in a few words what went wrong; of several faults, the first."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, TimeoutError):
        return "it does not answer in time"
    return (
        one_line(error.message if isinstance(error, MCPError) else str(error))[:300] or type(error).__name__
    )


def text_of(result: CallToolResult) -> str:
    """Return the text of a tool's result. For anything else, only its kind is shown."""
    parts = (
        one.text if isinstance(one, TextContent) else f"[{one.type}, not shown]" for one in result.content
    )
    return "\n".join(parts)
