"""Requests an answer as a type of the calling program, and parses it."""

from dataclasses import is_dataclass, replace
from reprlib import repr as shown
from typing import Any

from pydantic import BaseModel, PydanticUserError, TypeAdapter, ValidationError

from agent.errors import AnswerMisfit, BadInput
from agent.types import Reply
from agent.types.client import AnswerForm, ClientTurn


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
