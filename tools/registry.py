"""The list of tools, and how one is called with what a model wrote.

A tool of ours is an async function whose first argument is the `TurnContext`; its other arguments, with their
types, defaults and descriptions, are what the model sees; its docstring tells the model what it is for. It
returns something that JSON can hold. Nothing a model writes raises, and nothing a tool returns: what is wrong
comes back to the model as text. An argument without a default is one the model is asked for; it may be left
out where its `Field` has one.
"""

import asyncio
import inspect
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from json_repair import repair_json
from pydantic import BaseModel, ConfigDict, ValidationError, create_model, model_validator
from pydantic_core import from_json, to_jsonable_python

from memory.errors import HachiError
from memory.process.spans import note, traceback_of
from memory.text import storable
from tools.context import TurnContext
from tools.failures import ToolFailed, TryAgain
from tools.knowledge import search_knowledge
from tools.memories import get_recent_memories, remember, search_memories
from tools.tasks import update_task

log = logging.getLogger("hachi.tools")
Arguments = TypeVar("Arguments", bound=BaseModel)

TOOL_SECONDS = 30.0
"""A tool that runs longer is cancelled, and the model gets an error."""
LONGEST_RESULT = 20_000
"""Characters of a result; a model is told how many further ones there were."""


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
            return _error(_explain(error), try_again=True)
        except TryAgain as error:
            return _error(str(error), try_again=True)
        except (ToolFailed, HachiError) as error:
            note(traceback=traceback_of(error))
            return _error(str(error))
        except Exception as error:
            note(traceback=traceback_of(error))
            if isinstance(error, TimeoutError) and limit.expired():
                late = f"{self.name} did not end within {seconds:g} s; go on without it"
                return _error(late)
            log.exception("tool %s broke", self.name)
            return _error(f"{self.name} broke; go on without it")


def tool_of(function: Callable[..., Awaitable[Any]], seconds: float | None = None) -> Tool:
    """The tool that an async function is, whose first argument is the `TurnContext`."""
    parameters = [*inspect.signature(function).parameters.values()][1:]
    fields: dict[str, Any] = {
        parameter.name: parameter.annotation
        if parameter.default is parameter.empty
        else (parameter.annotation, parameter.default)
        for parameter in parameters
    }
    arguments = lenient(create_model(function.__name__, __config__=ConfigDict(extra="ignore"), **fields))

    async def run(turn: TurnContext, written: str) -> ToolResult:
        given = arguments.model_validate(read_arguments(written))
        values = {name: getattr(given, name) for name in type(given).model_fields}
        return ToolResult(await function(turn, **values), ok=True)

    asked = [parameter.name for parameter in parameters if parameter.default is parameter.empty]
    description = inspect.cleandoc(function.__doc__ or "")
    return Tool(function.__name__, description, _schema(arguments, asked), run, seconds)


def lenient(arguments: type[Arguments]) -> type[Arguments]:
    """The same arguments, which take null for a default, and text with commas for a list."""
    parts, fields = arguments.model_json_schema()["properties"], arguments.model_fields
    defaulted = {n for n in parts if not fields[n].is_required() and '"null"' not in json.dumps(parts[n])}
    lists = {name for name, part in parts.items() if part.get("type") == "array"}

    def as_meant(given: dict[str, Any]) -> dict[str, Any]:
        said = {name: value for name, value in given.items() if value is not None or name not in defaulted}
        return said | {n: said[n].split(",") for n in lists & said.keys() if isinstance(said[n], str)}

    validators: Any = {"as_meant": model_validator(mode="before")(as_meant)}
    return create_model(arguments.__name__, __base__=arguments, __validators__=validators)


class ToolResult:
    """What the model gets back: a text as it is, anything else as JSON."""

    def __init__(self, value: Any, ok: bool) -> None:
        """Raises ToolFailed for a value that cannot be told: within the call, that is the tool's error."""
        self.text, self.ok = as_text(value), ok


def _error(text: str, **more: Any) -> ToolResult:
    return ToolResult({"error": storable(text), **more}, ok=False)


def as_text(value: Any) -> str:
    """A text as it is, anything else as JSON, at most `LONGEST_RESULT` of it. Raises ToolFailed."""
    try:
        if not isinstance(value, str):
            _refuse_iterators(value)
            value = json.dumps(to_jsonable_python(value, fallback=str), ensure_ascii=False, allow_nan=False)
        value.encode()
    except Exception as error:
        raise ToolFailed(f"what it returned cannot be told: {str(error)[:200]}") from error
    left = len(value) - LONGEST_RESULT
    return f"{value[:LONGEST_RESULT]} … [{left:,} characters left out]" if left > 0 else value


def _refuse_iterators(value: Any) -> None:
    """Raise TypeError for what is read only once, and may have no end."""
    if isinstance(value, Iterator | AsyncIterator):
        raise TypeError(f"a {type(value).__name__}; return a list")
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    for one in inner:
        _refuse_iterators(one)


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
