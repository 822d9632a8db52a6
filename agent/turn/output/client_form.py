"""The answer in the form that a client of a chat API wants, as its JSON object, or as a type of the calling
program."""

import json
from dataclasses import is_dataclass, replace
from reprlib import repr as shown
from typing import Any

from pydantic import BaseModel, PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import from_json

from agent.errors import AnswerMisfit, BadInput
from agent.models.json_objects import objects_in
from agent.turn.output.answer import Answer, new_memories_in
from agent.types import Reply
from agent.types.client import AnswerForm, ClientTurn
from memory.records import NewMemory


def shaped(raw: str, form: AnswerForm) -> Answer:
    """Return the answer whose message is the JSON object that the client wants: unchanged, if the text is
    only that object. Raises AnswerMisfit if the model did not write one."""
    value = _object_in(raw)
    memories: tuple[NewMemory, ...] = ()
    candidates = [value]
    if value and value.keys() >= {"message", "memories"}:  # our usual answer, with the object in it
        memories = new_memories_in(value["memories"])
        whole = "message" in (form.schema or {}).get("properties", ())
        candidates = [_object_in(value["message"]), value if whole else None]
    fault: str | None = "it is no JSON object"
    for candidate in (one for one in candidates if one is not None):
        fault = None
        if form.schema:
            from agent.turn.client.json_schema import fault_in

            fault = fault_in(candidate, form.schema)
        if fault is None:
            as_written = candidate is value and _read(raw) == value
            return Answer(raw.strip() if as_written else json.dumps(candidate, ensure_ascii=False), memories)
    raise AnswerMisfit(f"response_format: the model's answer does not fit it: {fault}")


def _read(text: str) -> object:
    try:
        return from_json(text.strip())
    except ValueError:
        return None


def _object_in(value: object) -> dict[str, Any] | None:
    """Return the JSON object in a text, repaired if it is damaged."""
    if isinstance(value, str):
        value = _read(value) or next((one.value for one in objects_in(value)), None)
    return value if isinstance(value, dict) else None


def with_form(answer: Any, client: ClientTurn | None) -> ClientTurn:
    """Return the client's turn with this type as the form of the answer. Raises BadInput."""
    known = isinstance(answer, type) and (issubclass(answer, BaseModel) or is_dataclass(answer))
    if not known or (client and client.form):
        why = (
            "the client has a form of its own" if known else "it is neither a pydantic model nor a dataclass"
        )
        raise BadInput(f"answer: {shown(answer)} cannot be asked for: {why}")
    try:
        schema = TypeAdapter(answer).json_schema()
    except PydanticUserError as error:
        raise BadInput(f"answer: {error.message.splitlines()[0]}") from error
    shape = schema.get("$defs", {}).get(schema.get("$ref", "").rpartition("/")[2], schema)
    if shape.get("type", "object") != "object":
        raise BadInput(f"answer: {shown(answer)} cannot be asked for: its JSON is no object")
    form = AnswerForm(answer.__name__, schema, strict=False)
    return replace(client or ClientTurn(), form=form)


def value_of(answer: Any, reply: Reply) -> Any:
    """Parse the reply's text as this type. Raises AnswerMisfit."""
    try:
        return TypeAdapter(answer).validate_json(reply.message)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        where = ".".join(map(str, fault["loc"]))
        misfit = AnswerMisfit(
            f"answer: the model's answer does not fit {answer.__name__}: {where} {fault['msg']}"
        )
        misfit.trace_id = reply.trace_id
        raise misfit from error
