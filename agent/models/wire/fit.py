"""Ask a server about itself, and make requests fit it: leave out fields that it refuses, limit an answer, and
keep within the window."""

import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx2
import openai

from agent.models.choice.providers import Shape
from agent.models.wire.errors import TooLong, message_in, server_words
from agent.models.wire.incoming import Answer
from agent.models.wire.pieces import wanted_back

log = logging.getLogger("hachi.models")

NARROW = 3_000
"""Tokens of a window below which the short prompt is used: all rules and tools take some 1,300."""
_WINDOWS = ("max_model_len", "loaded_context_length", "context_length", "context_window", "n_ctx")
"""The field at vLLM, LM Studio, OpenRouter, Groq and llama.cpp (documentation, 24 November 2026)."""
_NOT_NEEDED = {
    "include": "encrypted",
    "stream_options": "include_usage",
    "store": "",
    "parallel_tool_calls": "",
    "response_format": "json_schema|grammar|structured output",
    "text": r"text\.format|json_schema",
}
"""Fields that a call can do without, and the words by which servers refuse each besides its name."""
_UNKNOWN = re.compile(r"support|unrecognized|unknown|extra|permitted|requires|enabled", re.I)
_SHAPES: Mapping[Shape, str] = {
    "long ids of calls": r"tool.?call.?id\b.*(?:length|a-z|must be)|tool_calls\[\d+\]\.id.*too long",
    "messages after results of tools": r"role '?user'? after role '?tool",
    "empty texts": r"content.{0,80}(?:non-?empty|(?:is|be|are) empty)",
}
"""Shapes of a conversation that can be avoided, and the words by which servers refuse them."""
_TOOLS = re.compile(r"\btools?\b|function.?call", re.I)
_OTHER_LIMIT = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
CHARACTERS_A_TOKEN = 3
"""An estimate, lower than in running text, so that a prompt that is estimated to fit does fit."""


@dataclass(frozen=True, slots=True)
class About:
    models: tuple[str, ...] = ()
    """Names of the models that it lists."""
    listed: bool = True
    """Whether the model is among them, or the server has only one and accepts any name."""
    window: int | None = None
    slots: int | None = None
    tools: bool | None = None
    sees: bool = False
    """Whether it reports that its model sees images."""

    def __str__(self) -> str:
        """Return the window, the slots and a lack of tools, for a line of `hachi doctor`."""
        window = f"window {self.window:,} tokens" if self.window else ""
        if self.window and self.window < NARROW:
            window += ", so it gets the short prompt, two tools, and answers in plain text"
        slots = f"{self.slots} slot{'' if self.slots == 1 else 's'}" if self.slots else ""
        tools = "its template takes no tools" if self.tools is False else ""
        return ", ".join(filter(None, (window, slots, tools)))


async def ask_about(client: openai.AsyncOpenAI, model: str, seconds: float) -> About:
    """Ask the server for its models, and llama.cpp for more. Raises OpenAIError."""
    body = await _get(client, "/models", seconds)
    if body is None:
        request = httpx2.Request("GET", str(client.base_url))
        raise openai.APIError("what answers there is no API; does the URL lack /v1?", request, body=None)
    entries = [one for one in body.get("data") or () if isinstance(one, Mapping)]
    names = tuple(str(one.get("id")) for one in entries)
    llamacpp = any(one.get("owned_by") == "llamacpp" for one in entries)
    named = [one for name, one in zip(names, entries, strict=True) if _is(name, model)]
    entry = (named or (entries if llamacpp else [{}]) or [{}])[0]
    about = About(names, bool(named) or llamacpp, _window(entry))
    if not llamacpp:
        return about
    root = str(client.base_url).rstrip("/").removesuffix("/v1")
    props = await _get(client, f"{root}/props", seconds) or {}
    caps = props.get("chat_template_caps") or {}
    window = _window(props.get("default_generation_settings") or {}) or about.window
    sees = (props.get("modalities") or {}).get("vision") is True
    return About(names, True, window, props.get("total_slots"), caps.get("supports_tools"), sees)


def _is(listed: str, model: str) -> bool:
    """Return whether a listed name is this model; Ollama adds `:latest`, and Gemini `models/…`."""
    return listed in (model, f"{model}:latest") or listed.endswith(f"/{model}")


async def _get(client: openai.AsyncOpenAI, path: str, seconds: float) -> dict[str, Any] | None:
    response = await client.get(path, cast_to=httpx2.Response, options={"timeout": seconds})
    try:
        body = json.loads(response.text)
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


def _window(entry: Mapping[str, Any]) -> int | None:
    places = (entry, entry.get("meta"), entry.get("top_provider"))
    numbers = (place.get(name) for place in places if isinstance(place, Mapping) for name in _WINDOWS)
    return next((number for number in numbers if isinstance(number, int) and number > 0), None)


@dataclass(eq=False)
class Fit:
    """What was learned about a model's server while the process runs."""

    limit: int | None = None
    """Tokens that an answer may have if a client does not say."""
    limit_name: str = "max_tokens"
    """The server's field for the limit."""
    window: int | None = None
    """Tokens that a request and its answer may have."""
    sees: bool = True
    """Whether the model gets images."""
    refuses: set[str] = field(default_factory=set)
    """Fields and shapes that the server refuses."""
    _most: int | None = None
    """Characters of messages that a refused request may have the next time."""
    _thinks: bool = False

    @property
    def tools(self) -> bool:
        """Whether the server takes tools."""
        return "tools" not in self.refuses

    @property
    def short_ids(self) -> bool:
        return "long ids of calls" in self.refuses

    @property
    def narrow(self) -> bool:
        """Whether the window is too small for all rules and tools, so that the short prompt is used."""
        return self.window is not None and self.window < NARROW

    def learn(self, window: int | None, tools: bool | None = None, *, sees: bool = False) -> None:
        """Note what the server reports: its window (a setting goes first), whether the model sees, and
        whether its template takes tools. Without tools, each call requests the answer's schema."""
        self.window = self.window or window
        self.sees = self.sees or sees
        self.refuses |= {"tools"} if tools is False else set()

    def room(self, tools: int) -> int | None:
        """Return how many characters of messages fit besides `tools` characters of tools; None if unknown."""
        if self._most is not None or self.window is None:
            return self._most
        answer = min(self.limit or self.window // 4, self._answer_share(self.window))
        return max(0, (self.window - answer) * CHARACTERS_A_TOKEN - tools)

    def refused(self, size: int, error: TooLong) -> None:
        """Learn that `size` characters of messages are too many. The new limit follows from the server's
        figures, or is half."""
        self._most = int(size * (error.share * 0.85 if error.share else 0.5))

    def fitted(self, body: dict[str, Any], again: bool = False) -> dict[str, Any]:
        """Return the body without what its server refuses. Our limit on the answer is doubled if the model
        thinks, since servers count thoughts, and doubled for a call that is made `again`."""
        fitted = self._fields(body)
        choice = fitted.get("tool_choice")
        if not self.tools or (choice == "none" and "tool_choice" in self.refuses):
            for name in ("tools", "tool_choice", "parallel_tool_calls"):
                fitted.pop(name, None)
        elif isinstance(choice, dict) and "tool_choice" in self.refuses:
            fitted["tool_choice"] = "required"
        if "messages" in body:
            messages = [self._fields(message) for message in body["messages"]]
            apart = "messages after results of tools" not in self.refuses
            fitted["messages"] = messages if apart else _joined_with_results(messages)
        if self.limit and fitted.get(self.limit_name) == self.limit:
            limit = self.limit * (2 if self._thinks else 1) * (2 if again else 1)
            fitted[self.limit_name] = min(limit, self._answer_share(self.window)) if self.window else limit
        return fitted

    def _answer_share(self, window: int) -> int:
        """Return how many tokens of a window an answer may take. Small models use all they may."""
        return window // (6 if self.narrow else 2)

    def _fields(self, body: dict[str, Any]) -> dict[str, Any]:
        without = self.refuses - {"tool_choice"}
        if "empty texts" in without and "tool_calls" in body and not body.get("content"):
            without |= {"content"}
        return {name: value for name, value in body.items() if name not in without}

    def do_without(self, error: openai.APIStatusError, body: dict[str, Any]) -> bool:
        """Return whether the server has refused a field or shape that calls can do without. From now on calls
        avoid it."""
        words = f"{error.param} {server_words(error)}"
        refused = self._named(words, not message_in(error.body), error.status_code, body)
        if refused is None or refused in self.refuses:
            return False
        self.refuses.add(refused)
        if refused == self.limit_name:
            self.limit_name = _OTHER_LIMIT[refused]
        log.warning("the model's server refuses %s; later calls leave that out", refused)
        return True

    def _named(self, words: str, wordless: bool, status: int, body: dict[str, Any]) -> str | None:
        """Return the field or shape that a refusal is about. One without words is about provider data, which
        only this server gets."""
        for shape, sign in _SHAPES.items():
            if re.search(sign, words, re.I | re.S):
                return shape
        if "tool_choice" in words and body.get("tool_choice") not in (None, "required"):
            return "tool_choice"
        unknown = _UNKNOWN.search(words)
        if unknown and self.limit_name in words and self.limit_name in body:
            return self.limit_name if self.limit_name in _OTHER_LIMIT else None
        back = {name for message in body.get("messages", ()) for name in wanted_back(message)}
        signs = dict.fromkeys(sorted(back, key=len, reverse=True), "") | _NOT_NEEDED
        for name, sign in signs.items() if status in (400, 422) else ():
            named = _names(words, name) or (sign and re.search(sign, words, re.I))
            if name in {*body, *back} and (named or (wordless and name in back)):
                return name
        return "tools" if unknown and body.get("tools") and _TOOLS.search(words) else None

    def too_short(self, answer: Answer, limit: int | None) -> bool:
        """Return whether our limit was used up before the first word."""
        wordless = answer.finish == "length" and not any(
            item.type == "function_call" or (item.type == "message" and item.content) for item in answer.items
        )
        self._thinks = self._thinks or answer.thinks
        return wordless and self.limit is not None and limit == self.limit


def _names(words: str, name: str) -> bool:
    """Return whether words name a field, and not only contain a word like "text"."""
    return bool(re.search(rf"\b{name}\b" if "_" in name else rf"[`'\".]{name}\b|\b{name}[`'\":=]", words))


def _joined_with_results(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages with each user's message after a tool's result joined to that result."""
    joined = list[dict[str, Any]]()
    for message in messages:
        before = joined[-1] if joined else {"role": ""}
        text = message.get("content")
        if (before["role"], message["role"]) == ("tool", "user") and isinstance(text, str):
            joined[-1] = before | {"content": f"{before['content']}\n\n{text}"}
        else:
            joined.append(message)
    return joined
