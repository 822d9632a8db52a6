"""Refuse a chat client's parameters, such as `temperature`, or apply them to the model's calls."""

import json
import re
from collections.abc import Collection, Iterable
from dataclasses import replace
from itertools import count
from typing import Any
from urllib.parse import urlsplit

import openai
from agents import ModelSettings
from openai.types.shared import Reasoning

from agent.errors import BadInput
from agent.models.choice.providers import api_of, takes_others
from agent.models.wire.errors import TooLong, server_words
from agent.settings import Settings
from agent.types import TurnRequest
from agent.types.client import AN_IMAGE, ClientTurn, Item, MessageItem, Sampling
from memory.text import one_line, storable

MOST_CHARACTERS = 400_000
"""The most characters that a client may send to the model, besides the history, which has its own budget."""
LONGEST_NAME = 80
"""Characters of the name of an image."""
NAMES = ("temperature", "top_p", "max_tokens", "presence_penalty", "frequency_penalty")


def checked(request: TurnRequest, settings: Settings, *, stand_in: bool, sees: bool) -> TurnRequest:
    """Return the request with storable text. Raises BadInput if there is none, or if a client wants what the
    configured model cannot do. `sees` says whether it sees images."""
    text = storable(request.text).strip()
    if not text:
        raise BadInput("the message is empty")
    client = request.client
    if client:
        if client.images and not (sees or client.pictures_optional):
            raise BadInput("messages: the model is shown no images; set HACHI_IMAGES=true where it can see")
        shows = sees or client.pictures_optional
        client = _last_images(client) if shows else _without_old_images(client)
        if stand_in and client.form:
            raise BadInput(
                "response_format: the rule-based stand-in cannot shape its answers; set up a model"
            )
        _check_parameters(client, settings)
        _check_size(client, text)
    return replace(request, text=text, client=client)


def _last_images(client: ClientTurn) -> ClientTurn:
    """Return it with images only in the last message that has any (the question counts), and with names for
    earlier images: clients send all of them with each request."""
    shown, history = bool(client.images), list[Item]()
    for item in reversed(client.history or ()):
        if isinstance(item, MessageItem) and item.images:
            item = replace(item, images=tuple(map(_name_of, item.images))) if shown else item
            shown = True
        history.append(item)
    return replace(client, history=client.history and tuple(reversed(history)))


def _name_of(url: str) -> str:
    """Return the text in place of an image that is not shown: with its file's name, if its URL has one."""
    if not url.startswith("https://"):
        return AN_IMAGE
    name = one_line(urlsplit(url).path.rpartition("/")[2])[:LONGEST_NAME]
    return f"{AN_IMAGE[:-1]}: {name}]" if name else AN_IMAGE


def _without_old_images(client: ClientTurn) -> ClientTurn:
    """Return it without the images of earlier messages, for a model that sees none."""
    history = client.history and tuple(map(_without_images, client.history))
    return replace(client, history=history, after=tuple(map(_without_images, client.after)))


def _without_images(item: Item) -> Item:
    return replace(item, images=()) if isinstance(item, MessageItem) and item.images else item


def _check_parameters(client: ClientTurn, settings: Settings) -> None:
    """Raise BadInput for what the configured model cannot do."""
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
    """Raise BadInput if a client sends more than `MOST_CHARACTERS`. Its history does not count: it is cut."""
    schemas = [tool.parameters for tool in client.tools] + [client.form.schema if client.form else None]
    parts = {
        "messages": len(client.shown or text),
        "tools": sum(len(tool.name) + len(tool.description) for tool in client.tools),
        "tools and response_format": len(json.dumps(schemas, ensure_ascii=False)),
        "results of tools": sum(map(_length, client.after)),
        "parameters": len(json.dumps(dict(client.sampling.others))),
    }
    if (total := sum(parts.values())) > MOST_CHARACTERS:
        raise BadInput(
            f"{max(parts, key=parts.__getitem__)}: the message, tools, their results and forms come to "
            f"{total:,} characters, and the model is given {MOST_CHARACTERS:,} at most; send less of it"
        )


def _length(item: Item) -> int:
    return sum(len(getattr(item, name, "")) for name in ("name", "arguments", "output", "text"))


def model_settings(client: ClientTurn, settings: Settings) -> ModelSettings:
    """Return the settings that override the model's own."""
    asked = client.sampling
    given = {name: getattr(asked, name) for name in NAMES}
    reasoning: Any = asked.reasoning_effort and Reasoning(effort=asked.reasoning_effort)  # type: ignore[arg-type]
    return ModelSettings(
        **given,
        verbosity=asked.verbosity,
        reasoning=reasoning,
        tool_choice=client.tool_choice,
        parallel_tool_calls=client.parallel_tool_calls,
        extra_args=None if asked.seed is None else {"seed": asked.seed},
        extra_body=dict(asked.others) if asked.others and takes_others(settings) else None,
    )


def refused_parameter(error: Exception, asked: Sampling) -> BadInput | None:
    """Return the error to show if the model's server refused one of the client's parameters."""
    if not isinstance(error, openai.BadRequestError | openai.UnprocessableEntityError):
        return None
    if isinstance(error, TooLong):
        return None
    known = ("seed", "reasoning_effort", "verbosity", *NAMES)
    for name in (*(name for name in known if getattr(asked, name) not in (None, ())), *asked.others):
        if error.param == name or _names(server_words(error), name):
            return BadInput(f"{name}: the model does not take this value")
    return None


def _names(words: str, name: str) -> bool:
    """Return whether words name a parameter, and do not only contain a word like "stop" or "user"."""
    alone = rf"(?<![\w-]){re.escape(name)}(?![\w-])"
    before = rf"(?:[`'\".]|(?:parameter|field|argument|property|value|option)s?:? ){alone}"
    behind = rf"{alone}(?:[`'\":=]| (?:must|should|is|does|cannot|may|needs|has)\b)"
    return bool(re.search(alone if "_" in name else f"{before}|{behind}", words, re.IGNORECASE))


def shown_names(theirs: Iterable[str], ours: Collection[str]) -> dict[str, str]:
    """Return for each name of a client's tool the name that the model sees: the same, or a new one if it is
    among `ours`. All are distinct, and any provider that accepts the old name accepts the new one."""
    names, shown = set(theirs), dict[str, str]()
    for name in sorted(names):
        others = (f"client{number if number > 1 else ''}_{name}" for number in count(1))
        used = {*names, *ours, *shown.values()}
        shown[name] = name if name not in ours else next(other for other in others if other not in used)
    return shown
