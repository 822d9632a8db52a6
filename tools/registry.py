"""The list of tools, and how one is called with what a model wrote.

A tool is an async function whose first argument is the `TurnContext`; its other arguments, with their types,
defaults and descriptions, are what the model sees; its docstring tells the model what it is for. It returns
something that JSON can hold. Nothing a model writes raises: what is wrong comes back to it as text.

An argument without a default is one the model is asked for. Where its `Field` has a default, a model that
leaves it out all the same is borne with.
"""

import inspect
import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from json_repair import repair_json
from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from pydantic_core import from_json

from memory.errors import MemoryFault
from memory.process.spans import note, traceback_of
from tools.context import TurnContext
from tools.failures import ToolFailed, TryAgain
from tools.knowledge import search_knowledge
from tools.memories import get_recent_memories, remember, search_memories
from tools.tasks import update_task

log = logging.getLogger("hachi.tools")

ToolFunction = Callable[..., Awaitable[dict[str, Any]]]


@dataclass(frozen=True)
class Tool:
    function: ToolFunction

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def description(self) -> str:
        return inspect.cleandoc(self.function.__doc__ or "")

    @cached_property
    def arguments(self) -> type[BaseModel]:
        """The function's arguments after the context, as a pydantic model."""
        fields: dict[str, Any] = {
            parameter.name: parameter.annotation
            if parameter.default is parameter.empty
            else (parameter.annotation, parameter.default)
            for parameter in self._parameters
        }
        return create_model(self.name, __config__=ConfigDict(extra="ignore"), **fields)

    @cached_property
    def schema(self) -> dict[str, Any]:
        """JSON schema of the arguments, as much of it as a model needs: every request carries it."""
        asked = [parameter.name for parameter in self._parameters if parameter.default is parameter.empty]
        parts = self.arguments.model_json_schema()["properties"]
        properties = {name: _shortened(part, name in asked) for name, part in parts.items()}
        return {"type": "object", "properties": properties} | ({"required": asked} if asked else {})

    @property
    def _parameters(self) -> list[inspect.Parameter]:
        return list(inspect.signature(self.function).parameters.values())[1:]

    async def call(self, turn: TurnContext, written: str) -> "ToolResult":
        """Run it with the arguments as the model wrote them."""
        try:
            given = self.arguments.model_validate(read_arguments(written))
            values = {name: getattr(given, name) for name in type(given).model_fields}
            return ToolResult(await self.function(turn, **values), ok=True)
        except ValidationError as error:
            return ToolResult({"error": _explain(error), "try_again": True}, ok=False)
        except TryAgain as error:
            return ToolResult({"error": str(error), "try_again": True}, ok=False)
        except (ToolFailed, MemoryFault) as error:
            note(traceback=traceback_of(error))
            return ToolResult({"error": str(error)}, ok=False)
        except Exception as error:
            log.exception("tool %s broke", self.name)
            note(traceback=traceback_of(error))
            return ToolResult({"error": f"{self.name} broke; go on without it"}, ok=False)


@dataclass(frozen=True, slots=True)
class ToolResult:
    value: dict[str, Any]
    ok: bool

    @property
    def text(self) -> str:
        """What the model gets back."""
        return json.dumps(self.value, ensure_ascii=False)


_UNSAID = ("title", "minLength", "maxLength", "minimum", "maximum")
"""What a model keeps to unasked, or is told when it does not."""


def _shortened(part: dict[str, Any], asked: bool) -> dict[str, Any]:
    """The schema of one argument. One that the model is asked for has its default for a model that leaves it
    out all the same; null is borne with."""
    said = {name: value for name, value in part.items() if name not in (*_UNSAID, "anyOf")}
    if asked or said.get("default") in (None, "", []):
        said.pop("default", None)
    if "anyOf" in part:
        either, null = part["anyOf"]
        said = either | ({"type": [either["type"], null["type"]]} if asked else {}) | said
    return said


TOOLS: tuple[Tool, ...] = tuple(
    Tool(function)
    for function in (search_memories, get_recent_memories, search_knowledge, remember, update_task)
)


def nested_too_deep(written: str) -> bool:
    """Whether JSON, broken or not, has more levels than can be read: 200."""
    try:
        from_json(written)
    except ValueError as error:
        return "recursion limit" in str(error)
    return False


def read_arguments(written: str) -> dict[str, Any]:
    """The JSON object a model wrote, mended where it is broken."""
    try:
        value = from_json(written) if written.strip() else {}
    except ValueError:
        if nested_too_deep(written):
            raise TryAgain("the arguments are nested too deep") from None
        value = repair_json(written, return_objects=True)
    if not isinstance(value, dict):
        raise TryAgain("the arguments must be one JSON object")
    return value


def _explain(error: ValidationError) -> str:
    """Each fault with the argument's name and what was given, short enough for a prompt."""
    faults = []
    for fault in error.errors(include_url=False):
        where = ".".join(str(part) for part in fault["loc"])
        given = "" if fault["type"] == "missing" else f" (you gave {str(fault['input'])[:80]!r})"
        faults.append(f"{where}: {fault['msg'].lower()}{given}")
    return "; ".join(faults)
