"""Makes a request fit its server: leaves out what it does not take, and limits how long an answer may be."""

import logging
import re
from typing import Any

import openai

from agent.models.wire.incoming import Answer

log = logging.getLogger("hachi.models")

_DISPENSABLE = {
    "include": ("include", "encrypted"),
    "stream_options": ("stream_options", "include_usage"),
    "store": ("store",),
    "response_format": ("response_format", "json_schema", "grammar"),
    "text": ("text.format", "json_schema"),
}
"""Fields that a call can do without, and the words by which servers refuse them."""
_REFUSES_IDS = re.compile(r"tool.?call.?id\b.*(?:length|a-z|alphanumeric|must be)", re.I | re.S)
_BACK = ("reasoning_content", "reasoning_details", "reasoning", "thinking_blocks")


class Fit:
    """What was learned of a model's server, for as long as the process runs."""

    def __init__(
        self, limit: int | None = None, limit_name: str = "max_tokens", *, short_ids: bool = False
    ) -> None:
        """`limit` is how many tokens an answer may have where a client does not say, under the name that its
        server knows. With `short_ids` those of calls are nine letters and digits."""
        self._limit = limit
        self.limit_name = limit_name
        self.short_ids = short_ids
        self._without: set[str] = set()
        self._thinks = False

    def fitted(self, body: dict[str, Any], again: bool = False) -> dict[str, Any]:
        """Return the body without what its server does not take. The limit is ours doubled where the model
        thinks, since servers count thoughts, and doubled for a call that is made again."""
        fitted = {name: value for name, value in body.items() if name not in self._without}
        if "messages" in body:
            fitted["messages"] = [
                {name: value for name, value in message.items() if name not in self._without}
                for message in body["messages"]
            ]
        if self._limit and fitted.get(self.limit_name) == self._limit:
            fitted[self.limit_name] = self._limit * (2 if self._thinks else 1) * (2 if again else 1)
        return fitted

    def do_without(self, error: openai.APIStatusError, body: dict[str, Any]) -> bool:
        """Return whether the server has refused a field of this body that a call can do without, or the ids
        of calls. From now on it gets none, or short ones."""
        said = f"{error.param} {error.message}"
        if not self.short_ids and _REFUSES_IDS.search(said):
            self.short_ids = True
            return True
        there = {*body, *(name for message in body.get("messages", ()) for name in message)}
        for name, signs in (*_DISPENSABLE.items(), *((back, (back,)) for back in _BACK)):
            if name in there and any(sign in said for sign in signs):
                log.info("the model's server does not take %s; it is left out from now on", name)
                self._without.add(name)
                return True
        return False

    def too_short(self, answer: Answer, limit: int | None) -> bool:
        """Return whether our limit was used up before the first word."""
        wordless = answer.finish == "length" and not any(
            item.type == "function_call" or (item.type == "message" and item.content) for item in answer.items
        )
        self._thinks = self._thinks or answer.thinks
        return wordless and self._limit is not None and limit == self._limit
