"""Collect the tools, guardrails and hooks that a program adds to the loop."""

import asyncio
import inspect
import json
import logging
import os
import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin, get_type_hints, overload

from pydantic import PydanticUserError

from agent.errors import BadInput, HachiError, SettingsError
from agent.tracing.setup import tool_descriptions
from agent.turn.mcp_servers.connection import Connection
from agent.turn.mcp_servers.file import McpFile
from agent.types.arguments import Seconds, refuse
from agent.types.checks import checks_call
from memory.process.breaker import Breaker, CircuitOpen
from memory.process.spans import note
from tools.context import TurnContext
from tools.failures import ToolFailed, TryAgain
from tools.registry import TOOLS, Tool, ToolResult, as_text, read_arguments, tool_of
from tools.threads import in_thread

if TYPE_CHECKING:
    from agents import FunctionTool, InputGuardrail, OutputGuardrail, RunHooks
    from agents.mcp import MCPServer

    OwnTool = Callable[..., Any] | Tool | FunctionTool | MCPServer

log = logging.getLogger("hachi.tools")

LISTING_SECONDS = 10.0
"""Seconds to list its tools; an MCP server that takes longer is left out of the turn."""
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@dataclass(frozen=True)
class Extensions:
    tools: Sequence[Tool] = TOOLS
    """Ours and the program's."""
    servers: "Sequence[MCPServer]" = ()
    """Connected MCP servers; each turn lists their tools anew."""
    connections: Sequence[Connection] = ()
    """The MCP servers of the setting `mcp`."""
    guardrails: "Sequence[InputGuardrail[Any] | OutputGuardrail[Any]]" = ()
    hooks: "RunHooks[Any] | None" = None
    breakers: Mapping[str, Breaker] = field(default_factory=dict)
    """A breaker for each server, by `server_name`."""

    async def offered(self, turn: TurnContext) -> list[Tool]:
        """Return all tools of a turn. A server that does not answer is left out, and not asked again for a
        while. The trace gets the descriptions of the servers' tools, for a replay."""
        found = {tool.name: tool for tool in self.tools}
        here = [one for one in self.connections if one.offered_to(turn.user, turn.place)]
        asked = [*map(self._listed, self.servers), *(one.tools() for one in here)]
        for listed in await asyncio.gather(*asked):
            may = (tool for tool in listed if not tool.changes or (turn.confirm and turn.message_id))
            found |= {tool.name: tool for tool in may if tool.name not in found}
        if theirs := [*found.values()][len(self.tools) :]:
            note(servers_tools=tool_descriptions(theirs))
        return [*found.values()]

    async def close(self) -> None:
        """Close the connections that were opened here."""
        await asyncio.gather(*(one.close() for one in self.connections))

    async def _listed(self, server: "MCPServer") -> list[Tool]:
        try:
            with self.breakers[server_name(server)].calling():
                async with asyncio.timeout(LISTING_SECONDS):
                    return await _tools_of(server)
        except CircuitOpen:
            return []  # logged when the server failed
        except Exception as error:
            why = error if str(error) else type(error).__name__
            log.warning("the MCP server %s is left out of this turn: %s", server.name, why)
            return []


def server_name(server: "MCPServer") -> str:
    return f"MCP server {server.name}"


def extensions(
    added: "Sequence[OwnTool]",
    only: Collection[str] | None,
    guardrails: Sequence[Any] = (),
    hooks: Any = None,
    mcp: McpFile | None = None,
) -> Extensions:
    """Collect the tools of a companion: Hachi's own (those in `only`, or all), those `added`, and those of
    the MCP servers in a file. Raises BadInput."""
    ours = {tool.name: tool for tool in TOOLS}
    if unknown := sorted({*(only or ())} - ours.keys()):
        raise BadInput(f"only_tools: there is no tool {unknown[0]!r}; there are {', '.join(ours)}")
    tools = {name: tool for name, tool in ours.items() if only is None or name in only}
    servers: list[Any] = []
    for one in added:
        if _from_sdk("agents.mcp", "MCPServer", one):
            servers.append(one)
            continue
        made = _made(one)
        if made.name in tools:
            raise BadInput(f"tools: two have the name {made.name!r}; rename one")
        tools[made.name] = made
    connections = [Connection(name, one, mcp.admins) for name, one in mcp.servers.items()] if mcp else []
    return Extensions(
        (*tools.values(),),
        servers,
        connections,
        [_named(one) for one in guardrails],
        hooks and _named_hooks(hooks),
        {name: Breaker(name, failures=1) for name in map(server_name, servers)}
        | {one.breaker.name: one.breaker for one in connections},
    )


def tools_named(names: str) -> list[Any]:
    """Load the tools that the setting `tools` names: `module:name`, separated by blanks. A module may be in
    the working directory. Raises SettingsError."""
    found = []
    if names and os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.append(os.getcwd())
    for name in names.split():
        module, _, attribute = name.partition(":")
        try:
            found.append(getattr(import_module(module), attribute))
        except (ImportError, AttributeError, ValueError) as error:
            raise SettingsError(f"HACHI_TOOLS: {name} cannot be loaded ({error})") from error
    return found


@overload
def tool(function: Any, *, name: str = "", description: str = "", timeout: Seconds | None = None) -> Tool: ...
@overload
def tool(
    *, name: str = "", description: str = "", timeout: Seconds | None = None
) -> Callable[[Callable[..., Any]], Tool]: ...
@checks_call
def tool(
    function: Any = None, *, name: str = "", description: str = "", timeout: Seconds | None = None
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a typed function, sync or async, or of a function tool of the Agents SDK. Also a
    decorator. The `description`, by default the docstring, tells the model what the tool is for.

    A function with an argument of type `TurnContext` gets the turn's: who asks, and where. The model reads
    the result as JSON, a string unchanged. If the function raises, the model reads the text of the exception.
    After `timeout` seconds, by default 30, the model goes on without a result. Raises BadInput.
    """
    made = partial(_made, name=name, description=description, timeout=timeout)
    return made if function is None else made(function)


def _made(given: Any, name: str = "", description: str = "", timeout: float | None = None) -> Tool:
    if isinstance(given, Tool):
        return given
    if _from_sdk("agents", "FunctionTool", given):
        return _of_the_sdk(given)
    called = name or getattr(given, "__name__", "")
    if not callable(given) or not _NAME.fullmatch(called):
        raise refuse("tools", given, "not a function with a name of letters, digits, _ and -")
    turn_in, signature = _signature(given, called)
    said = description or inspect.getdoc(given)
    if not said:
        raise BadInput(f"tools: {called} has no docstring; add one that tells the model what it is for")

    async def run(turn: TurnContext, /, **values: Any) -> Any:
        call = _with_turn(given, turn_in, turn)
        try:
            if inspect.iscoroutinefunction(given):
                return await call(**values)
            result = await in_thread(partial(_result_of, call, **values))
            return await result if inspect.isawaitable(result) else result
        except (TryAgain, ToolFailed, HachiError):
            raise
        except (Exception, SystemExit) as error:
            log.warning("tool %s failed", called, exc_info=True)
            raise ToolFailed(f"{called} failed: {type(error).__name__}: {error}") from error

    run.__name__, run.__doc__ = called, said
    vars(run)["__signature__"] = signature
    try:
        return tool_of(run, timeout)
    except PydanticUserError as error:
        raise BadInput(
            f"tools: {called} cannot be called by a model: {error.message.splitlines()[0]}"
        ) from error


def _result_of(function: Callable[..., Any], **values: Any) -> Any:
    """Run a sync tool and write its result as text, in its thread, since much JSON takes long. An awaitable
    is returned as it is."""
    result = function(**values)
    return result if inspect.isawaitable(result) else as_text(result)


def _with_turn(
    function: Callable[..., Any], turn_in: inspect.Parameter | None, turn: TurnContext
) -> Callable[..., Any]:
    """Return the function with its `TurnContext` argument bound to the context of the turn."""
    if turn_in is None:
        return function
    by_position = turn_in.kind is turn_in.POSITIONAL_ONLY
    return partial(function, turn) if by_position else partial(function, **{turn_in.name: turn})


def _signature(function: Callable[..., Any], name: str) -> tuple[inspect.Parameter | None, inspect.Signature]:
    """Return the function's `TurnContext` argument, or None, and a signature with the context as first
    argument."""
    try:
        typed = function if inspect.isroutine(function) else type(function).__call__
        hints = get_type_hints(typed, include_extras=True)
        parameters = [*inspect.signature(function).parameters.values()]
    except (NameError, TypeError, ValueError) as error:
        raise BadInput(f"tools: the types of {name} cannot be read: {error}") from error
    turn_in = next((one for one in parameters if _is_context(hints.get(one.name))), None)
    others = [one for one in parameters if one is not turn_in]
    for one in others:
        if one.name not in hints or one.kind not in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY):
            raise BadInput(f"tools: {name} must say what {one.name} is: annotate it, such as town: str")
    first = inspect.Parameter("_context", inspect.Parameter.POSITIONAL_ONLY)  # no argument has such a name
    asked = [one.replace(annotation=hints[one.name], kind=one.KEYWORD_ONLY) for one in others]
    return turn_in, inspect.Signature([first, *asked])


def _is_context(hint: Any) -> bool:
    """Return whether the type is `TurnContext`, which may be annotated or optional."""
    parts = get_args(hint) if get_origin(hint) in (Annotated, Union, UnionType) else ()
    return hint is TurnContext or any(map(_is_context, parts))


def _named(guardrail: Any) -> Any:
    """Return the guardrail, with its name in the error if it fails."""
    from agents import GuardrailFunctionOutput

    name = guardrail.get_name()
    run = _naming(f"the guardrail {name}", guardrail.guardrail_function, GuardrailFunctionOutput)
    return replace(guardrail, guardrail_function=run, name=name)


def _named_hooks(hooks: "RunHooks[Any]") -> "RunHooks[Any]":
    from agents import RunHooks

    named: RunHooks[Any] = RunHooks()
    for name in filter(lambda one: one.startswith("on_"), dir(named)):
        setattr(named, name, _naming(f"the hook {name}", getattr(hooks, name)))
    return named


def _naming(what: str, function: Callable[..., Any], returns: type = object) -> Callable[..., Any]:
    """Return the function with its exceptions turned into a HachiError that says `what` failed."""

    async def call(*given: Any, **more: Any) -> Any:
        try:
            result = function(*given, **more)
            result = await result if inspect.isawaitable(result) else result
        except HachiError:
            raise
        except Exception as error:
            raise HachiError(f"{what} failed: {type(error).__name__}: {str(error)[:300]}") from error
        if not isinstance(result, returns):
            raise HachiError(f"{what} returned no {returns.__name__}")
        return result

    return call


def _from_sdk(module: str, name: str, given: Any) -> bool:
    """Return whether the object is of this class of the Agents SDK, without importing the SDK, which takes
    seconds."""
    there = sys.modules.get(module)
    return there is not None and isinstance(given, getattr(there, name))


def _of_the_sdk(given: "FunctionTool") -> Tool:
    from agents.tool_context import ToolContext

    if given.needs_approval:
        raise BadInput(f"tools: {given.name} waits for an approval, which nobody can give in a turn")

    async def run(turn: TurnContext, written: str) -> ToolResult:
        arguments = json.dumps(read_arguments(written))
        context = ToolContext(turn, tool_name=given.name, tool_call_id="", tool_arguments=arguments)
        return ToolResult(await given.on_invoke_tool(context, arguments), ok=True)

    return Tool(given.name, given.description, given.params_json_schema, run, given.timeout_seconds)


async def _tools_of(server: "MCPServer") -> list[Tool]:
    from agents.mcp import MCPUtil

    listed = await server.list_tools()
    return [_of_the_sdk(MCPUtil.to_function_tool(one, server, False)) for one in listed]
