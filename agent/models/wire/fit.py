"""Makes a request fit its server: leaves out what it does not take, and limits how long an answer may be."""

import logging
import re
from typing import Any

import openai

from agent.models.wire.about import NARROW
from agent.models.wire.errors import TooLong, server_words, words_of
from agent.models.wire.incoming import Answer

log = logging.getLogger("hachi.models")

_REFUSED = {
    "include": re.compile(r"\binclude\b|encrypted"),
    "stream_options": re.compile(r"stream_options|include_usage"),
    "response_format": re.compile(r"response_format|json_schema|grammar|structured output", re.I),
    "text": re.compile(r"text\.format|json_schema"),
    "reasoning_content": re.compile("reasoning_content"),
    "reasoning_details": re.compile("reasoning_details"),
    "reasoning": re.compile(r"\breasoning\b"),
    "thinking_blocks": re.compile("thinking_blocks"),
}
"""What a call can do without, in its body or its messages, and the words by which servers refuse it."""
_BACK = ("reasoning_content", "reasoning_details", "reasoning", "thinking_blocks")
_NO_TOOLS = re.compile(
    r"support (?:tools?|functions?|function calling|tool (?:use|calls?|calling))\b|tools param requires"
    r"|tool choice requires|(?:tools?|tool calling) (?:is|are) not (?:supported|enabled)",
    re.I,
)
_SHORT_IDS = re.compile(
    r"tool.?call.?id\b.*(?:length|a-z|alphanumeric|must be)|tool_calls\[\d+\]\.id.*too long",
    re.I | re.S,
)
_UNKNOWN = re.compile(r"unsupported|not supported|unrecognized|unknown|extra|not permitted", re.I)
_NOT_AFTER_TOOLS = re.compile(r"role '?user'? after role '?tool", re.I)
_NO_EMPTY_TEXT = re.compile(r"content.{0,80}(?:non-?empty|(?:is|be|are) empty)", re.I)
CHARACTERS_A_TOKEN = 3
"""Fewer than a token of running text has, so that what is reckoned to fit does."""


class Fit:
    """What was learned of a model's server, for as long as the process runs."""

    def __init__(
        self,
        limit: int | None = None,
        limit_name: str = "max_tokens",
        *,
        short_ids: bool = False,
        people_after_tools: bool = True,
        window: int | None = None,
    ) -> None:
        """`limit` is how many tokens an answer may have where a client does not say, under the name that its
        server knows. With `short_ids` those of calls are nine letters and digits; not all servers
        take what people say after the results of tools. `window` is how many tokens
        a request and its answer may have."""
        self._limit = limit
        self.limit_name = limit_name
        self._window = window
        self._most: int | None = None
        self.short_ids = short_ids
        self.tools = True
        """Whether the server takes tools."""
        self._without: set[str] = set()
        self.people_after_tools = people_after_tools
        self._empty_text = True
        self._refused_choices = False
        self._renamed = self.limit_name == "max_output_tokens"
        self._thinks = False

    @property
    def narrow(self) -> bool:
        """Whether the window is too small for all rules and tools, so that the short prompt is used."""
        return self._window is not None and self._window < NARROW

    def learn(self, window: int | None, tools: bool | None = None) -> None:
        """Note the window that the server tells, where no setting does, and whether its template takes
        tools. One that does not is asked without them, and with the answer's schema in each call."""
        self._window = self._window or window
        self.tools = self.tools and tools is not False

    def room(self, tools: int) -> int | None:
        """Return how many characters of messages fit beside so many of tools, as far as that is known."""
        if self._most is not None or self._window is None:
            return self._most
        answer = self._limit or self._window // 4
        return max(0, (self._window - answer) * CHARACTERS_A_TOKEN - tools)

    def refused(self, size: int, error: TooLong) -> None:
        """Learn that so many characters of messages are too many: by how much, where the server says it, else
        by half."""
        share = error.window / error.asked if error.window and error.asked else 1.0
        self._most = int(size * (min(share, 1.0) * 0.85 if share < 1 else 0.5))

    def fitted(self, body: dict[str, Any], again: bool = False) -> dict[str, Any]:
        """Return the body without what its server does not take. The limit is ours doubled where the model
        thinks, since servers count thoughts, and doubled for a call that is made again."""
        fitted = self._fields(body)
        choice = fitted.get("tool_choice")
        if not self.tools or (choice == "none" and self._refused_choices):
            for name in ("tools", "tool_choice", "parallel_tool_calls"):
                fitted.pop(name, None)
        elif isinstance(choice, dict) and self._refused_choices:
            fitted["tool_choice"] = "required"
        if "messages" in body:
            messages = [self._fields(message) for message in body["messages"]]
            fitted["messages"] = messages if self.people_after_tools else _joined_with_results(messages)
        if self._limit and fitted.get(self.limit_name) == self._limit:
            limit = self._limit * (2 if self._thinks else 1) * (2 if again else 1)
            fitted[self.limit_name] = min(limit, self._window // 2) if self._window else limit
        return fitted

    def _fields(self, body: dict[str, Any]) -> dict[str, Any]:
        empty = not self._empty_text and "tool_calls" in body and not body.get("content")
        without = {*self._without, "content"} if empty else self._without
        return {name: value for name, value in body.items() if name not in without}

    def do_without(self, error: openai.APIStatusError, body: dict[str, Any]) -> bool:
        """Return whether the server has refused what a call can do without, or the shape of it. From now on
        it is asked without, or in the other shape."""
        said = f"{error.param} {server_words(error)}"
        learned = self._learned_shape(said, body)
        if not learned and error.status_code in (400, 422):
            there = {*body, *(name for message in body.get("messages", ()) for name in message)}
            wordless = not words_of(error.body)  # then it is what no other server gets
            signs = {
                name: (wordless and name in _BACK) or sign.search(said) for name, sign in _REFUSED.items()
            }
            learned = next((name for name, refused in signs.items() if refused and name in there), None)
            self._without |= {learned} if learned else set()
        if learned:
            log.warning("the model's server refuses %s; it is asked without from now on", learned)
        return learned is not None

    def _learned_shape(self, said: str, body: dict[str, Any]) -> str | None:
        if self.tools and body.get("tools") and _NO_TOOLS.search(said):
            self.tools = False
            return "tools"
        if not self.short_ids and _SHORT_IDS.search(said):
            self.short_ids = True
            return "ids of calls that are longer than nine letters and digits"
        if self.people_after_tools and _NOT_AFTER_TOOLS.search(said):
            self.people_after_tools = False
            return "messages after results of tools"
        asked_for = body.get("tool_choice")
        if not self._refused_choices and asked_for not in (None, "required") and "tool_choice" in said:
            self._refused_choices = True
            return f"tool_choice {asked_for}"
        if self._empty_text and _NO_EMPTY_TEXT.search(said):
            self._empty_text = False
            return "empty texts"
        other = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
        if (
            self.limit_name in body
            and self.limit_name in said
            and _UNKNOWN.search(said)
            and not self._renamed
        ):
            self._renamed, self.limit_name, refused = True, other[self.limit_name], self.limit_name
            return refused
        return None

    def too_short(self, answer: Answer, limit: int | None) -> bool:
        """Return whether our limit was used up before the first word."""
        wordless = answer.finish == "length" and not any(
            item.type == "function_call" or (item.type == "message" and item.content) for item in answer.items
        )
        self._thinks = self._thinks or answer.thinks
        return wordless and self._limit is not None and limit == self._limit


def _joined_with_results(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages with what a person says after a tool's result as a part of it."""
    joined = list[dict[str, Any]]()
    for message in messages:
        before = joined[-1] if joined else {"role": ""}
        text = message.get("content")
        if (before["role"], message["role"]) == ("tool", "user") and isinstance(text, str):
            joined[-1] = before | {"content": f"{before['content']}\n\n{text}"}
        else:
            joined.append(message)
    return joined
