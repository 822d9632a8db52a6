"""List the tools, and call one with the arguments that a model wrote.

A tool of ours is an async function whose first argument is the `TurnContext`. The model sees the other
arguments with their types, defaults and descriptions, and the docstring as the tool's description. It returns
a value that JSON can hold. Bad arguments and bad results never raise: the model gets the error as text. An
argument without a default is required in the schema. If its `Field` has a default, a call without it is
accepted anyway.
"""

import asyncio
import inspect
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from json_repair import repair_json
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model, model_validator
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
"""Maximum characters of a result. If it is longer, the model reads how many are missing."""


@dataclass(frozen=True, eq=False)
class Tool:
    """A tool: its description for the model, and the function that runs it."""

    name: str
    description: str
    schema: dict[str, Any]
    """JSON schema of the arguments."""
    run: Callable[[TurnContext, str], Awaitable["ToolResult"]]
    """Called with the arguments as the model wrote them."""
    seconds: float | None = None
    """Seconds that it may run; None is `TOOL_SECONDS`."""
    changes: bool = False
    """Whether the person is asked before it is run (`TurnContext.confirm`)."""

    async def call(self, turn: TurnContext, written: str) -> "ToolResult":
        """Run the tool with the arguments as the model wrote them. An error is returned as a result."""
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
    """Make a tool of an async function whose first argument is the `TurnContext`."""
    parameters = [*inspect.signature(function).parameters.values()][1:]
    # The fields have names of their own, since a model has no field called `_x` or `model_config`.
    fields: dict[str, Any] = {
        f"argument_{at}": Annotated[one.annotation, Field(alias=one.name)]
        if one.default is one.empty
        else (one.annotation, Field(one.default, alias=one.name))
        for at, one in enumerate(parameters)
    }
    arguments = lenient(create_model(function.__name__, __config__=ConfigDict(extra="ignore"), **fields))

    async def run(turn: TurnContext, written: str) -> ToolResult:
        read = vars(arguments.model_validate(read_arguments(written)))
        values = {parameter.name: read[field] for parameter, field in zip(parameters, fields, strict=True)}
        return ToolResult(await function(turn, **values), ok=True)

    asked = [parameter.name for parameter in parameters if parameter.default is parameter.empty]
    description = inspect.cleandoc(function.__doc__ or "")
    return Tool(function.__name__, description, _schema(arguments, asked), run, seconds)


def lenient(arguments: type[Arguments]) -> type[Arguments]:
    """Accept null for an argument with a default, and text with commas for a list."""
    parts = arguments.model_json_schema()["properties"]
    fields = {field.alias or name: field for name, field in arguments.model_fields.items()}
    defaulted = {n for n in parts if not fields[n].is_required() and '"null"' not in json.dumps(parts[n])}
    lists = {name for name, part in parts.items() if part.get("type") == "array"}

    def as_meant(written: dict[str, Any]) -> dict[str, Any]:
        passed = {
            name: value for name, value in written.items() if value is not None or name not in defaulted
        }
        return passed | {n: passed[n].split(",") for n in lists & passed.keys() if isinstance(passed[n], str)}

    validators: Any = {"as_meant": model_validator(mode="before")(as_meant)}
    return create_model(arguments.__name__, __base__=arguments, __validators__=validators)


class ToolResult:
    """The result that the model reads: text unchanged, any other value as JSON."""

    def __init__(self, value: Any, ok: bool) -> None:
        """Write the value as text. Raises ToolFailed if JSON cannot hold it."""
        self.text, self.ok = as_text(value), ok


def _error(text: str, **more: Any) -> ToolResult:
    return ToolResult({"error": storable(text), **more}, ok=False)


def as_text(value: Any) -> str:
    """Return text unchanged, other values as JSON, cut after `LONGEST_RESULT` characters. Raises
    ToolFailed."""
    try:
        if not isinstance(value, str):
            _refuse_iterators(value)
            value = json.dumps(to_jsonable_python(value, fallback=str), ensure_ascii=False, allow_nan=False)
        value.encode()
    except Exception as error:
        raise ToolFailed(f"its result cannot be written as JSON: {str(error)[:200]}") from error
    left = len(value) - LONGEST_RESULT
    return f"{value[:LONGEST_RESULT]} … [{left:,} characters left out]" if left > 0 else value


def _refuse_iterators(value: Any) -> None:
    """Raise TypeError for an iterator: it can be read only once, and may have no end."""
    if isinstance(value, Iterator | AsyncIterator):
        raise TypeError(f"a {type(value).__name__}; return a list")
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    for one in inner:
        _refuse_iterators(one)


_DROPPED = ("title", "minLength", "maxLength", "minimum", "maximum")
"""Keywords of the schema that are dropped to save tokens. The tool's error reports a violation."""


def _schema(arguments: type[BaseModel], asked: Sequence[str]) -> dict[str, Any]:
    """Return the JSON schema of the arguments in a short form, since every request contains it."""
    whole = arguments.model_json_schema()
    properties = {name: _shortened(part, name in asked) for name, part in whole["properties"].items()}
    parts = {"required": list(asked)} if asked else {}
    parts |= {"$defs": whole["$defs"]} if "$defs" in whole else {}
    return {"type": "object", "properties": properties} | parts


def _shortened(part: dict[str, Any], asked: bool) -> dict[str, Any]:
    """Shorten the schema of one argument. A required one may be null if it has a default."""
    short = {name: value for name, value in part.items() if name not in _DROPPED}
    if asked or short.get("default") in (None, "", []):
        short.pop("default", None)
    either = short.get("anyOf", ())
    if len(either) == 2 and either[1] == {"type": "null"} and "type" in either[0]:
        del short["anyOf"]
        short = either[0] | ({"type": [either[0]["type"], "null"]} if asked else {}) | short
    return short


TOOLS: tuple[Tool, ...] = tuple(
    tool_of(function)
    for function in (search_memories, get_recent_memories, search_knowledge, remember, update_task)
)

READING = frozenset({"search_memories", "get_recent_memories", "search_knowledge"})
"""The tools that only read."""

_BEYOND_REPAIR = {
    "recursion limit": "the arguments are nested too deep",
    "EOF while parsing a string": "the arguments end in the middle of a text; call again with all of it",
}
"""Errors that cannot be repaired: words of pydantic's error, and the answer to the model."""


def nested_too_deep(written: str) -> bool:
    """Return whether JSON, broken or not, has more levels than pydantic reads (200)."""
    try:
        from_json(written)
    except ValueError as error:
        return "recursion limit" in str(error)
    return False


def read_arguments(written: str) -> dict[str, Any]:
    """Read the JSON object that a model wrote, and repair a broken one. Raises TryAgain if there is none, if
    there are several (they were meant as several calls), or if its text was cut off."""
    try:
        value = from_json(written) if written.strip() else {}
    except ValueError as error:
        for sign, advice in _BEYOND_REPAIR.items():
            if sign in str(error):
                raise TryAgain(advice) from None
        value = _mended(written)
    if not isinstance(value, dict):
        raise TryAgain("the arguments must be one JSON object")
    return value


def _mended(written: str) -> Any:
    """Repair the text. Objects in a row become a list, unless all are the same."""
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
    """Name each wrong argument with what was passed, short enough for a prompt."""
    faults = []
    for fault in error.errors(include_url=False):
        where = ".".join(str(part) for part in fault["loc"])
        passed = "" if fault["type"] == "missing" else f" (you gave {str(fault['input'])[:80]!r})"
        faults.append(f"{where}: {fault['msg'][:1].lower()}{fault['msg'][1:]}{passed}")
    return "; ".join(faults)
