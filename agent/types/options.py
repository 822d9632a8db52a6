"""The options of `Companion.open` and `respond`, and how they are checked."""

import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, get_origin

from typing_extensions import TypedDict

from agent.types import ToolCall
from agent.types.arguments import (
    MOST_SUBJECTS,
    Argument,
    InvalidValue,
    Name,
    Seconds,
    ShortText,
    ShortTexts,
    Text,
    Where,
    async_function,
    listed,
    moment_of,
    place_of,
    read_name,
    whole,
)
from agent.types.client import CLIENT_TURN, ClientTurn
from memory.audience import Place
from memory.records import ForgetCandidate
from tools.proposed_call import Confirm

if TYPE_CHECKING:
    from agents import InputGuardrail, OutputGuardrail, RunHooks
    from agents.models.interface import Model

    from agent.turn.extensions import OwnTool

    Hooks: TypeAlias = RunHooks[Any]
    Guardrail: TypeAlias = InputGuardrail[Any] | OutputGuardrail[Any]
else:  # the SDK takes seconds to import, and arguments are checked against it only once it is loaded
    Hooks = Guardrail = Model = OwnTool = Any

MOST_TURNS = 50
"""The most model calls in a turn, as in the setting."""

Clock = Callable[[], datetime]


def of_the_sdk(*classes: str) -> Callable[[object], object]:
    """Return a check for objects of the Agents SDK. It does not import the SDK: a caller who has such an
    object has imported it."""

    def read(value: object) -> object:
        sdk = sys.modules.get("agents")
        known = [getattr(sdk, one) for one in classes] if sdk else []
        if not isinstance(value, tuple(get_origin(one) or one for one in known)):
            raise InvalidValue(value, f"not a {' or '.join(classes)} of the Agents SDK")
        return value

    return read


def reads_of(value: object) -> object:
    """Return places, or the function that returns them."""
    if callable(value):
        return value
    places = [place_of(one) for one in listed(value)]
    if len(places) > MOST_SUBJECTS or any(place.private for place in places):
        raise InvalidValue(value, f"not a list of at most {MOST_SUBJECTS} places, such as ['acme/general']")
    return tuple(places)


def model_or_name(value: object) -> object:
    return read_name(value) if isinstance(value, str) else of_the_sdk("Model")(value)


def _clock(value: object) -> Clock:
    if not callable(value):
        raise InvalidValue(value, "not a function")
    moment_of(value())
    return value


_MODEL = Argument(of_the_sdk("Model"))
_GUARDRAILS = Argument(lambda value: [*map(of_the_sdk("InputGuardrail", "OutputGuardrail"), listed(value))])


class OpenOptions(TypedDict, total=False):
    """The arguments of `Companion.open` and `start` besides the settings."""

    clock: Annotated[Clock, Argument(_clock)]
    """Returns the time, with its zone. Unset: the machine's clock."""
    model: Annotated[Model, _MODEL] | None
    """Answers in place of the model that the settings name. Conversations are then consolidated only if you
    pass `consolidation_model` too, which may be the same."""
    consolidation_model: Annotated[Model, _MODEL] | None
    periodic_jobs: bool
    """False: run no periodic jobs, for a short-lived program."""
    upkeep_model: Annotated[Model, _MODEL] | None
    """The former name of `consolidation_model`."""
    upkeep: bool
    """The former name of `periodic_jobs`."""
    surface: ShortText
    """The name of the surface, for traces."""
    tools: Annotated[Sequence[OwnTool], Argument(listed)]
    """More tools for the model: typed functions, the Agents SDK's function tools and MCP servers."""
    only_tools: ShortTexts | None
    """Names of Hachi's own tools to offer; unset: all."""
    guardrails: Annotated[Sequence[Guardrail], _GUARDRAILS]
    """The Agents SDK's guardrails. One that trips ends the turn with GuardrailTripped."""
    hooks: Annotated[Hooks, Argument(of_the_sdk("RunHooks"))] | None
    """The Agents SDK's hooks, called in each turn."""


Ending = Annotated[
    Callable[[tuple[ForgetCandidate, ...] | None, Sequence[ToolCall]], Awaitable[str]],
    Argument(async_function),
]
"""A surface's function that returns text to add to the answer, or nothing. It gets the candidates to forget
(`Reply.forget`) and the turn's tool calls."""


MayRead = Callable[[Sequence[Place]], Awaitable[Mapping[Place, str]]]
"""A function that gets places in which the person wrote, and returns those that they can still read, with
their names."""
Reads = Sequence[Place | str] | MayRead


class TurnOptions(TypedDict, total=False):
    """The arguments of `Companion.respond` and `stream` besides the text and the user."""

    place: Where
    """The place; None: in private."""
    conversation: Name | None
    """The conversation's id. Unset: the user's private conversation, or the one of the place."""
    author: Name | None
    """The name to show for the user; default: the id."""
    instructions: Text
    """Instructions of the calling program; the model sees them as a wish."""
    origins: ShortTexts
    """The chat platform's ids of the message, for when it is deleted there."""
    client: Annotated[ClientTurn, CLIENT_TURN] | None
    """The data that a client of a chat API sends with the message. Its history then is the conversation."""
    settle: bool
    """Wait until the answer's memories are stored, so that the reply lists them."""
    model: Annotated[str | Model, Argument(model_or_name)] | None
    """The model of this turn: another model's name at the same server, or a model of the Agents SDK."""
    timeout: Seconds | None
    """The most seconds of the turn; then it raises ModelUnavailable. The message stays, without a reply."""
    max_turns: Annotated[int, Argument(whole(MOST_TURNS))] | None
    """The most model calls in this turn, in place of the setting."""
    confirm: Annotated[Confirm, Argument(async_function)] | None
    """Asks the person before an MCP tool that may change something runs. Unset: none is offered."""
    reads: Annotated[Reads, Argument(reads_of)] | None
    """Places that the person can read, or a function that returns them. In private, those in which the person
    wrote are searched too. For `HACHI_READ_PLACES`."""
    ending: Ending | None
    """Returns text to add to the answer, such as a link where buttons do not work."""
