"""What a server says about a fault, in whichever form its error body has."""

import json
import re
from collections.abc import Mapping
from typing import Any

import httpx2
import openai

_TOKENS = re.compile(
    r"(?:n_ctx'?\W+|n_prompt_tokens'?\W+|length is|size \(|limit:? (?:of )?|requested|maximum of|window of"
    r"|resulted in|have|has|\() ?(\d[\d,]{2,8})(?! ?(?:ms|s\b|%))",
    re.I,
)
_NO_MONEY = re.compile(
    r"insufficient.?(?:quota|credit|balance|funds)|payment required|(?:billing|spending) .{0,10}limit"
    r"|(?:exceeded|check|out of|run out|no) .{0,40}(?:quota|credit|balance|billing)|more credits",
    re.I,
)
_IN_A_MOMENT = re.compile(r"(?:try again|retry) in \d", re.I)
_TOO_LONG = re.compile(
    r"context.?(?:length|window|size)|maximum (?:context|prompt|input)|too (?:many|long).{0,20}tokens"
    r"|(?:prompt|input|request|conversation|messages?) (?:(?:is|are|was|were) )?too (?:long|large)|n_ctx"
    r"|(?:reduce|shorten) (?:the length|your|the (?:prompt|input|messages?))|context the overflows"
    r"|exceeds? .{0,40}(?:context|token)",
    re.I,
)
_MESSAGES = ("message", "msg", "detail", "error_description", "title", "errors", "error", "text")


class TooLong(openai.BadRequestError):
    """A server refuses a request for its length, with whichever status."""

    def __init__(self, error: openai.APIStatusError, fit: Any = None) -> None:
        """`fit` is what was learned of the server that refuses."""
        self.fit = fit
        refused = httpx2.Response(400, headers=error.response.headers, request=error.request)
        super().__init__(server_words(error), response=refused, body=error.body)
        numbers = [int(n.replace(",", "")) for n in _TOKENS.findall(f"{self.message} {error.body}")]
        self.window = min(numbers, default=None)
        """How many tokens the server takes, as far as it says."""
        self.asked = max(numbers, default=None)
        """How many the request had."""


class ServerError(Exception):
    """An error that came as the body of an answer, or in mid-stream."""

    def __init__(self, body: Any) -> None:
        super().__init__(words_of(body) or "the server reported an error without a reason")
        self.body = body
        self.status = status_of(body)


def too_long_in(error: BaseException | None) -> TooLong | None:
    """Return the refusal for length that an error comes from."""
    passed = set[int]()  # an error of a program's own model may be its own cause
    while error is not None and not isinstance(error, TooLong) and id(error) not in passed:
        passed.add(id(error))
        error = error.__cause__
    return error if isinstance(error, TooLong) else None


def words_of(body: Any) -> str:
    """Return the server's message; empty if there is none."""
    if isinstance(body, str):
        return _unpacked(body.strip())
    if isinstance(body, list):
        return "; ".join(filter(None, map(words_of, body[:3])))
    if not isinstance(body, Mapping):
        return ""
    inner = [
        words_of(body[name])
        for name in ("error", "response", "message")
        if isinstance(body.get(name), Mapping | list)
    ]
    words = next(filter(None, [*inner, *(words_of(body.get(name)) for name in _MESSAGES)]), "")
    metadata = body.get("metadata")
    raw = words_of(metadata.get("raw")) if isinstance(metadata, Mapping) else ""  # what stands behind a proxy
    where = body.get("loc")
    named = ".".join(map(str, where)) + ": " if isinstance(where, list) and where else ""
    return named + (f"{words}: {raw}" if raw and raw not in words else words)


def server_words(error: openai.APIStatusError) -> str:
    """Return what the server said with a status."""
    return words_of(error.body) or error.message.removeprefix(f"Error code: {error.status_code} - ")


def _unpacked(text: str) -> str:
    """Return the message in a text that is JSON itself, as behind a proxy."""
    if not text.startswith(("{", "[")):
        return text
    try:
        return words_of(json.loads(text)) or text
    except (ValueError, RecursionError):
        return text


def status_of(body: Any) -> int | None:
    """Return the HTTP status that an error body names, for servers that send it with 200."""
    if isinstance(body, list):
        return status_of(body[0]) if body else None
    if not isinstance(body, Mapping):
        return None
    for name in ("code", "status", "status_code"):
        if str(body.get(name)).isdecimal() and 400 <= int(body[name]) < 600:
            return int(body[name])
    return next(
        (found for part in body.values() if isinstance(part, Mapping) and (found := status_of(part))), None
    )


def no_money(words: str) -> bool:
    """Return whether a server refuses for money, so that asking again is in vain."""
    return bool(_NO_MONEY.search(words)) and not _IN_A_MOMENT.search(words)


def too_long(status: int, words: str) -> bool:
    """Return whether a server refuses a request for its length. A rate is another matter, unless the request
    alone is beyond it."""
    rate = status == 429 and not re.search(r"request too large|reduce", words, re.I)
    return status in (400, 413, 422, 429, 500) and not rate and bool(_TOO_LONG.search(words))
