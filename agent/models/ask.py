"""Ask a model one question outside the conversation: one call, no tools, no history."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import aclosing
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any

from agents import (
    AgentOutputSchemaBase,
    ItemHelpers,
    ModelBehaviorError,
    ModelRefusalError,
    ModelTracing,
)
from openai.types.responses import ResponseCompletedEvent

from agent.models.call_record import recorded_call
from agent.models.choice.choose import ChosenModel
from agent.models.choice.fallback import both_failed, changes_over, pause_before, tries_again
from agent.models.failures import NO_ANSWER, ExplainedFailure, server_fault
from agent.models.json_objects import items, object_with
from memory.text import one_line
from prompts import render

if TYPE_CHECKING:
    from memory.facts.similar import Doubt

log = logging.getLogger("hachi.judge")

BOUNDS = frozenset({"minLength", "maxLength", "minItems", "maxItems"})


async def ask(chosen: ChosenModel, name: str, question: str, schema: dict[str, Any] | None = None) -> str:
    """Return the model's answer, verbatim; the second model's if the first does not answer. `schema` is
    requested if the server supports it, but the answer is not checked against it.

    Raises what the model's library raises, and ModelRefusalError if the model refuses.
    """
    try:
        return await _ask(chosen, name, question, schema)
    except Exception as error:
        if not changes_over(chosen, error):
            raise
        assert chosen.fallback is not None
        try:
            return await _ask(chosen.fallback, name, question, schema)
        except Exception as last:
            if server_fault(last, chosen.fallback.source) is None and not isinstance(last, ExplainedFailure):
                raise
            raise both_failed(chosen, error, last) from last


async def _ask(chosen: ChosenModel, name: str, question: str, schema: dict[str, Any] | None) -> str:
    form = RequestedSchema(name, schema) if schema and chosen.structured == "schema" else None
    form = form if form is None or chosen.bounded else form.without_bounds
    request: tuple[Any, ...] = (None, question, chosen.settings, [], form, [], ModelTracing.DISABLED)
    with recorded_call(chosen.name, None, question, [], chosen.settings, form) as call:
        for tries in count(1):
            try:
                output, usage = await _call(chosen, *request)
                break
            except Exception as error:
                if not tries_again(chosen, error, tries):
                    raise
                await asyncio.sleep(pause_before(error, tries))
        call.answered(output, usage)
    text = "".join(ItemHelpers.extract_text(item) or "" for item in output)
    refusals = (ItemHelpers.extract_refusal(item) for item in output)
    if not text and (refusal := next(filter(None, refusals), None)):
        raise ModelRefusalError(refusal)
    return text


async def _call(chosen: ChosenModel, *request: Any) -> tuple[Sequence[Any], Any]:
    """Call the model. Returns its output and usage. A server's answer is streamed, so that the timeout
    applies to its silence and not to its length. A program's own model may be unable to."""
    more: Any = {"previous_response_id": None, "conversation_id": None, "prompt": None}
    if chosen.brought:
        response = await chosen.model.get_response(*request, **more)
        return response.output, response.usage
    events: Any = chosen.model.stream_response(*request, **more)
    async with aclosing(events):
        async for event in events:
            if isinstance(event, ResponseCompletedEvent):
                return event.response.output, event.response.usage
    raise ModelBehaviorError(NO_ANSWER)


async def judge(chosen: ChosenModel, doubts: "Sequence[Doubt]") -> list[bool]:
    """Ask about all doubts of a turn in one call. Returns for each pair whether the newer fact replaces the
    older one. Both are kept if a ruling is missing or unreadable."""
    pairs = "\n\n".join(
        f"Pair {number}\n"
        f"> older ({doubt.old_stated_at:%Y-%m-%d}): {one_line(doubt.old)}\n"
        f"> newer ({doubt.new_stated_at:%Y-%m-%d}): {one_line(doubt.new)}"
        for number, doubt in enumerate(doubts, 1)
    )
    answer = object_with(await ask(chosen, "judge", render("judge", pairs=pairs)), "rulings")
    if answer is None:
        log.warning("the judge's answer could not be read; both facts are kept")
    rulings = items(answer["rulings"]) if answer else []
    replacing = {
        str(one.get("pair")) for one in rulings if isinstance(one, dict) and one.get("action") == "replace"
    }
    return [str(number) in replacing for number in range(1, len(doubts) + 1)]


def strict_object(**fields: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of an object in the form that OpenAI's strict mode accepts."""
    shape = {"type": "object", "properties": fields, "required": list(fields)}
    return {**shape, "additionalProperties": False}


OPTIONAL: dict[str, Any] = {"type": ["string", "null"]}


def short_text(longest: int, description: str = "") -> dict[str, Any]:
    return {"type": "string", "maxLength": longest} | _described(description)


def list_of(most: int, item: dict[str, Any], description: str = "") -> dict[str, Any]:
    return {"type": "array", "maxItems": most, "items": item} | _described(description)


def _described(description: str) -> dict[str, Any]:
    return {"description": description} if description else {}


class RequestedSchema(AgentOutputSchemaBase):
    """Requests a JSON schema and accepts any output.

    The SDK's own schemas are strict: they end the run when a model puts a fence around its JSON.
    """

    def __init__(self, name: str, schema: dict[str, Any], *, strict: bool = True) -> None:
        self._name = name
        self._schema = schema
        self._strict = strict

    @cached_property
    def without_bounds(self) -> "RequestedSchema":
        """The schema without lengths, for servers that do not enforce or do not accept them."""
        return RequestedSchema(self._name, _without_bounds(self._schema), strict=self._strict)

    def is_plain_text(self) -> bool:
        return False

    def name(self) -> str:
        return self._name

    def json_schema(self) -> dict[str, Any]:
        return self._schema

    def is_strict_json_schema(self) -> bool:
        return self._strict

    def validate_json(self, json_str: str) -> Any:
        return json_str


def _without_bounds(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {name: _without_bounds(part) for name, part in schema.items() if name not in BOUNDS}
    return [_without_bounds(part) for part in schema] if isinstance(schema, list) else schema
