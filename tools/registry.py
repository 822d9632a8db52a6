"""The list of tools, and how one is called with what a model wrote.

A tool of ours is an async function whose first argument is the `TurnContext`; its other arguments, with their
types, defaults and descriptions, are what the model sees; its docstring tells the model what it is for. It
returns something that JSON can hold. Nothing a model writes raises: what is wrong comes back to it as text.

An argument without a default is one the model is asked for. Where its `Field` has a default, a model that
leaves it out all the same is borne with.
"""

import asyncio
import inspect
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from json_repair import repair_json
from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from pydantic_core import from_json, to_jsonable_python

from memory.errors import HachiError
from memory.process.spans import note, traceback_of
from tools.context import TurnContext
from tools.failures import ToolFailed, TryAgain
from tools.knowledge import search_knowledge
from tools.memories import get_recent_memories, remember, search_memories
from tools.tasks import update_task

log = logging.getLogger("hachi.tools")

TOOL_SECONDS = 30.0
"""A tool that runs longer is cancelled, and the model gets an error."""


@dataclass(frozen=True, eq=False)
class Tool:
    """What the model is told of a tool, and what runs it."""

    name: str
    description: str
    schema: dict[str, Any]
    """JSON schema of the arguments."""
    run: Callable[[TurnContext, str], Awaitable["ToolResult"]]
    """Called with the arguments as the model wrote them."""
    seconds: float | None = None
    """Unset: `TOOL_SECONDS`."""

    async def call(self, turn: TurnContext, written: str) -> "ToolResult":
        """Run it with the arguments as the model wrote them."""
        seconds = self.seconds or TOOL_SECONDS
        try:
            async with asyncio.timeout(seconds) as limit:
                return await self.run(turn, written)
        except ValidationError as error:
            return ToolResult({"error": _explain(error), "try_again": True}, ok=False)
        except TryAgain as error:
            return ToolResult({"error": str(error), "try_again": True}, ok=False)
        except (ToolFailed, HachiError) as error:
            note(traceback=traceback_of(error))
            return ToolResult({"error": str(error)}, ok=False)
        except Exception as error:
            note(traceback=traceback_of(error))
            if isinstance(error, TimeoutError) and limit.expired():
                late = f"{self.name} did not end within {seconds:g} s; go on without it"
                return ToolResult({"error": late}, ok=False)
            log.exception("tool %s broke", self.name)
            return ToolResult({"error": f"{self.name} broke; go on without it"}, ok=False)


def tool_of(function: Callable[..., Awaitable[Any]], seconds: float | None = None) -> Tool:
    """The tool that an async function is, whose first argument is the `TurnContext`."""
    parameters = [*inspect.signature(function).parameters.values()][1:]
    fields: dict[str, Any] = {
        parameter.name: parameter.annotation
        if parameter.default is parameter.empty
        else (parameter.annotation, parameter.default)
        for parameter in parameters
    }
    arguments = create_model(function.__name__, __config__=ConfigDict(extra="ignore"), **fields)

    async def run(turn: TurnContext, written: str) -> ToolResult:
        given = arguments.model_validate(read_arguments(written))
        values = {name: getattr(given, name) for name in type(given).model_fields}
        return ToolResult(await function(turn, **values), ok=True)

    asked = [parameter.name for parameter in parameters if parameter.default is parameter.empty]
    description = inspect.cleandoc(function.__doc__ or "")
    return Tool(function.__name__, description, _schema(arguments, asked), run, seconds)


@dataclass(frozen=True, slots=True)
class ToolResult:
    value: Any
    ok: bool

    @property
    def text(self) -> str:
        """What the model gets back: a text as it is, anything else as JSON."""
        if isinstance(self.value, str):
            return self.value
        return json.dumps(to_jsonable_python(self.value, fallback=str), ensure_ascii=False)


_UNSAID = ("title", "minLength", "maxLength", "minimum", "maximum")
"""What a model keeps to unasked, or is told when it does not."""


def _schema(arguments: type[BaseModel], asked: Sequence[str]) -> dict[str, Any]:
    """JSON schema of the arguments, as much of it as a model needs: every request carries it."""
    whole = arguments.model_json_schema()
    properties = {name: _shortened(part, name in asked) for name, part in whole["properties"].items()}
    parts = {"required": list(asked)} if asked else {}
    parts |= {"$defs": whole["$defs"]} if "$defs" in whole else {}
    return {"type": "object", "properties": properties} | parts


def _shortened(part: dict[str, Any], asked: bool) -> dict[str, Any]:
    """The schema of one argument. One that the model is asked for has its default for a model that leaves it
    out all the same; null is borne with."""
    said = {name: value for name, value in part.items() if name not in _UNSAID}
    if asked or said.get("default") in (None, "", []):
        said.pop("default", None)
    either = said.get("anyOf", ())
    if len(either) == 2 and either[1] == {"type": "null"} and "type" in either[0]:
        del said["anyOf"]
        said = either[0] | ({"type": [either[0]["type"], "null"]} if asked else {}) | said
    return said


TOOLS: tuple[Tool, ...] = tuple(
    tool_of(function)
    for function in (search_memories, get_recent_memories, search_knowledge, remember, update_task)
)


_NOT_MENDED = {
    "recursion limit": "the arguments are nested too deep",
    "EOF while parsing a string": "the arguments end in the middle of a text; call again with all of it",
}
"""What cannot be made good, by the words of the reader's error; what to say of it."""


def nested_too_deep(written: str) -> bool:
    """Whether JSON, broken or not, has more levels than can be read: 200."""
    try:
        from_json(written)
    except ValueError as error:
        return "recursion limit" in str(error)
    return False


def read_arguments(written: str) -> dict[str, Any]:
    """The JSON object a model wrote, mended where it is broken. Raises TryAgain for none, for several, which
    were meant as so many calls, and for one whose text was cut."""
    try:
        value = from_json(written) if written.strip() else {}
    except ValueError as error:
        for sign, told in _NOT_MENDED.items():
            if sign in str(error):
                raise TryAgain(told) from None
        value = _mended(written)
    if not isinstance(value, dict):
        raise TryAgain("the arguments must be one JSON object")
    return value


def _mended(written: str) -> Any:
    """What the repairer makes of it; of objects that follow one another, a list unless they are the same."""
    values, rest = list[Any](), written.lstrip()
    with suppress(ValueError):
        while rest.startswith("{"):
            value, end = _DECODER.raw_decode(rest)
            values, rest = [*values, value], rest[end:].lstrip()
    if len(values) > 1:
        return values[0] if all(value == values[0] for value in values) else values
    return repair_json(written, return_objects=True)


_DECODER = json.JSONDecoder()


def _explain(error: ValidationError) -> str:
    """Each fault with the argument's name and what was given, short enough for a prompt."""
    faults = []
    for fault in error.errors(include_url=False):
        where = ".".join(str(part) for part in fault["loc"])
        given = "" if fault["type"] == "missing" else f" (you gave {str(fault['input'])[:80]!r})"
        faults.append(f"{where}: {fault['msg'][:1].lower()}{fault['msg'][1:]}{given}")
    return "; ".join(faults)
