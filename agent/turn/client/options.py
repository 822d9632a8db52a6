"""Applies what a client of a chat API asks of the model: sampling, stop sequences, the form of the answer."""

import json
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from itertools import count
from typing import Any

import openai
from agents import ModelSettings
from openai.types.shared import Reasoning
from pydantic_core import from_json

from agent.errors import AnswerMisfit, BadInput
from agent.models.json_objects import objects_in
from agent.models.providers import api_of, sees_images, takes_others
from agent.settings import Settings
from agent.turn.client.json_schema import fault_in
from agent.turn.output.memories import drafts_in
from agent.turn.output.parse import Answer
from agent.types import TurnRequest
from agent.types.client import AnswerForm, Called, ClientTurn, Item, Returned, Said, Sampling
from memory.records import Draft
from memory.text import storable

MOST_CHARACTERS = 400_000
"""What a model is given of a client at most, beside the history, which has a budget of its own."""
NAMES = ("temperature", "top_p", "max_tokens", "presence_penalty", "frequency_penalty")


def checked(request: TurnRequest, settings: Settings, *, stand_in: bool) -> TurnRequest:
    """Return the request with storable text. Raises BadInput if there is none, or for what the model that
    is set up cannot do for a client."""
    text = storable(request.text).strip()
    if not text:
        raise BadInput("the message is empty")
    client = request.client
    if client:
        client = client if sees_images(settings) else _without_old_images(client)
        if stand_in and client.form:
            raise BadInput(
                "response_format: the rule-based stand-in cannot shape its answers; set up a model"
            )
        _check_wishes(client, settings)
        _check_size(client, text)
    return replace(request, text=text, client=client)


def _without_old_images(client: ClientTurn) -> ClientTurn:
    """Return it without the images of earlier messages, for a model that sees none."""
    history = client.history and tuple(map(_without_images, client.history))
    return replace(client, history=history, after=tuple(map(_without_images, client.after)))


def _without_images(item: Item) -> Item:
    return replace(item, images=()) if isinstance(item, Said) and item.images else item


def _check_wishes(client: ClientTurn, settings: Settings) -> None:
    """Raise BadInput for what the model that is set up cannot do."""
    if client.images and not sees_images(settings):
        raise BadInput("messages: the model is shown no images; set HACHI_IMAGES=true where it can see")
    if client.sampling.seed is not None and api_of(settings) == "responses" and not settings.offline:
        raise BadInput("seed: the model is asked over the Responses API, which takes none")
    asks = next((name for name, value in client.sampling.others.items() if value), None)
    if asks and not settings.offline and not takes_others(settings):
        raise BadInput(f"{asks}: there is no such parameter here; leave it out")
    if client.tool_choice and not client.tools:
        raise BadInput("tool_choice: a call is wanted, and `tools` has nothing to call")
    if client.tool_choice not in (None, "required", *(tool.name for tool in client.tools)):
        raise BadInput(f"tool_choice: there is no tool {client.tool_choice!r} among `tools`")


def _check_size(client: ClientTurn, text: str) -> None:
    """Raise BadInput if a client sends more than the model may be given whole. Its history is cut instead."""
    schemas = [tool.parameters for tool in client.tools] + [client.form.schema if client.form else None]
    parts = {
        "messages": len(client.shown or text),
        "tools": sum(len(tool.name) + len(tool.description) for tool in client.tools),
        "tools and response_format": len(json.dumps(schemas, ensure_ascii=False)),
        "results of tools": sum(_length(item) for item in client.after),
        "parameters": len(json.dumps(dict(client.sampling.others))),
    }
    if (total := sum(parts.values())) > MOST_CHARACTERS:
        most = max(parts, key=parts.__getitem__)
        raise BadInput(
            f"{most}: the message, tools, their results and forms come to {total:,} characters, and the "
            f"model is given {MOST_CHARACTERS:,} at most; send less of it"
        )


def _length(item: Item) -> int:
    match item:
        case Called(_, name, arguments):
            return len(name) + len(arguments)
        case Returned(_, output):
            return len(output)
        case Said(_, text):
            return len(text)


def model_settings(client: ClientTurn, settings: Settings) -> ModelSettings:
    """Return the settings that override the model's own."""
    wish = client.sampling
    extra: dict[str, Any] = {} if wish.seed is None else {"seed": wish.seed}
    # One without a letter or digit may be part of the JSON around the answer: `StopText` alone applies it.
    if (stop := [text for text in wish.stop if any(map(str.isalnum, text))]) and api_of(settings) == "chat":
        extra["stop"] = stop
    given = {name: getattr(wish, name) for name in NAMES}
    reasoning: Any = wish.reasoning_effort and Reasoning(effort=wish.reasoning_effort)  # type: ignore[arg-type]
    return ModelSettings(
        **given,
        verbosity=wish.verbosity,
        reasoning=reasoning,
        tool_choice=client.tool_choice,
        parallel_tool_calls=client.parallel_tool_calls,
        extra_args=extra or None,
        extra_body=dict(wish.others) if wish.others and takes_others(settings) else None,
    )


def refused_wish(error: Exception, wish: Sampling) -> BadInput | None:
    """Return the error to show if the model's server refused one of the client's parameters."""
    if not isinstance(error, openai.BadRequestError | openai.UnprocessableEntityError):
        return None
    known = ("seed", "stop", "reasoning_effort", "verbosity", *NAMES)
    for name in (*(name for name in known if getattr(wish, name) not in (None, ())), *wish.others):
        if name in error.message or error.param == name:
            return BadInput(f"{name}: the model does not take this value")
    return None


def shown_names(theirs: Iterable[str], ours: Collection[str]) -> dict[str, str]:
    """Return the name that the model is shown for each name of a client's tool: the same, or another one if
    it is among `ours`. No two are the same, and a provider that takes the name takes the other one."""
    names = list(dict.fromkeys(theirs))
    shown = {name: name for name in names if name not in ours}
    for name in names:
        others = (f"client{number if number > 1 else ''}_{name}" for number in count(1))
        used = {*names, *ours, *shown.values()}
        shown.setdefault(name, next(other for other in others if other not in used))
    return shown


class StopText:
    """Passes text on until one of the stop sequences. What may be the beginning of one waits."""

    def __init__(self, stops: tuple[str, ...], on_text: Callable[[str], None]) -> None:
        self._stops, self._on_text = stops, on_text
        self._waits = max(map(len, stops), default=1) - 1
        self._text = ""
        self._stopped = False

    def __call__(self, text: str) -> None:
        self._text += "" if self._stopped else text
        before = until_stop(self._text, self._stops)
        self._stopped = self._stopped or before != self._text
        self._pass_on(before, 0 if self._stopped else self._waits)

    def end(self) -> None:
        """Pass on what waits."""
        self._pass_on(self._text, 0)

    def _pass_on(self, text: str, waits: int) -> None:
        ready = max(0, len(text) - waits)
        self._text = text[ready:]
        if ready:
            self._on_text(text[:ready])


def until_stop(text: str, stops: tuple[str, ...]) -> str:
    """Return the text before the first stop sequence in it."""
    return text[: min((at for stop in stops if (at := text.find(stop)) >= 0), default=len(text))]


class FormStream:
    """Passes on the JSON object that a client wants as the model writes it, if the server enforces its form;
    else nothing, as the model may yet have to be asked once more."""

    def __init__(self, enforced: bool) -> None:
        self._enforced = enforced
        self._held = ""
        self.shown = ""

    def feed(self, text: str) -> str:
        """Return what can be shown now, without white space around the object."""
        text = self._held + text
        start = text if self.shown else text.lstrip()
        ready = start.rstrip() if self._enforced and (self.shown or start).startswith("{") else ""
        self._held = start[len(ready) :]
        self.shown += ready
        return ready


def shaped(raw: str, form: AnswerForm) -> Answer:
    """Return the answer whose message is the JSON object that the client wants: as it was written, if there
    is nothing else. Raises AnswerMisfit if the model did not write one."""
    value = _object_in(raw) or {}
    memories: tuple[Draft, ...] = ()
    candidates = [value] if value else []
    if value.keys() >= {"message", "memories"}:  # the usual answer around it
        memories = drafts_in(value["memories"])
        whole = "message" in (form.schema or {}).get("properties", ())
        candidates = [inside] if (inside := _object_in(value["message"])) else []
        candidates += [value] if whole else []
    fault: str | None = "it is no JSON object"
    for candidate in candidates:
        fault = fault_in(candidate, form.schema) if form.schema else None
        if fault is None:
            alone = candidate is value and _read(raw) == value
            return Answer(raw.strip() if alone else json.dumps(candidate, ensure_ascii=False), memories)
    raise AnswerMisfit(f"response_format: the model's answer does not fit it: {fault}")


def _read(text: str) -> object:
    try:
        return from_json(text.strip())
    except ValueError:
        return None


def _object_in(text: object) -> dict[str, Any] | None:
    """Return the JSON object in the text, mended where it is broken."""
    if isinstance(text, str):
        text = _read(text) or next((one.value for one in objects_in(text)), None)
    return text if isinstance(text, dict) else None
