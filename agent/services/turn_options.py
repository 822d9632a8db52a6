"""Checks what `Companion.respond` and `stream` are given, and reads the answer as a type."""

from collections.abc import Sequence
from dataclasses import dataclass, is_dataclass, replace
from datetime import datetime
from reprlib import repr as shown
from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel, PydanticUserError, TypeAdapter, ValidationError

from agent.errors import AnswerMisfit, BadInput
from agent.services.arguments import checked, place_of, readable_name, user_named
from agent.types import Ending, Reply, TurnOptions, TurnRequest
from agent.types.arguments import Where
from agent.types.checks import require_list, require_text, switch
from agent.types.client import AnswerForm, ClientTurn
from memory.records import Role
from memory.text import storable

if TYPE_CHECKING:
    from agents.models.interface import Model

MOST_TURNS = 50
"""Model calls in a turn, as for the setting."""


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """What one call changes of the settings; None leaves it."""

    model: "str | Model | None"
    timeout: float | None
    max_turns: int | None
    settle: bool
    ending: Ending | None


def turn_request(
    text: str,
    user: str | None,
    place: Where = None,
    conversation: str | None = None,
    author: str | None = None,
    instructions: str = "",
    earlier: Sequence[tuple[Role, str]] = (),
    origins: Sequence[str] = (),
    client: ClientTurn | None = None,
    *,
    now: datetime,
    **limits: Any,
) -> TurnRequest:
    """The request of a turn. Raises BadInput, for an argument that does not exist too."""
    if unknown := limits.keys() - TurnOptions.__annotations__.keys():
        raise BadInput(f"{min(unknown)}: there is no such argument")
    if not isinstance(text, str):
        raise BadInput(f"text: {shown(text)} is no text")
    require_text("instructions", storable(instructions) if isinstance(instructions, str) else instructions)
    require_list("earlier", earlier)
    require_list("origins", origins)
    for said in earlier:
        if not isinstance(said, tuple) or len(said) != 2 or said[0] not in get_args(Role):
            raise BadInput(f"earlier: {shown(said)} is no pair of a role (user, assistant) and a text")
        require_text("earlier", said[1])
    for origin in origins:
        require_text("origins", origin)
    if not isinstance(client, ClientTurn | None):
        raise BadInput(f"client: {shown(client)} is no ClientTurn")
    return TurnRequest(
        text,
        None if user is None else user_named(user),
        now,
        place_of(place),
        None if conversation is None else readable_name(conversation, "conversation"),
        None if author is None else readable_name(author, "author"),
        storable(instructions),
        tuple(earlier),
        tuple(origins),
        client,
    )


def limits_of(options: TurnOptions) -> TurnLimits:
    """Raises BadInput."""
    timeout, most = options.get("timeout"), options.get("max_turns")
    if timeout is not None and (
        isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout > 0
    ):
        raise BadInput(f"timeout: {shown(timeout)} is no number of seconds above 0")
    if most is not None and (
        isinstance(most, bool) or not isinstance(most, int) or not 1 <= most <= MOST_TURNS
    ):
        raise BadInput(f"max_turns: {shown(most)} is no whole number from 1 to {MOST_TURNS}")
    settle = checked("settle", switch, options.get("settle", False))
    return TurnLimits(options.get("model"), timeout, most, settle, options.get("ending"))


def with_form(answer: Any, client: ClientTurn | None) -> ClientTurn:
    """What asks the model for an answer of this type. Raises BadInput."""
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
    form = AnswerForm(answer.__name__, schema, strict=False)
    return replace(client or ClientTurn(), form=form)


def value_of(answer: Any, reply: Reply) -> Any:
    """The reply's text as this type. Raises AnswerMisfit."""
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
