"""Read what a server says about a fault, whatever form its error body has."""

import json
import re
from collections.abc import Mapping
from typing import Any

import httpx2
import openai

_NUMBER = re.compile(r"(?<![\w.])\d[\d,]{2,8}(?![\w%])")
_RATE = re.compile(r"limit\D{0,12}([\d,]+).*requested\D{0,12}([\d,]+)", re.I | re.S)
_MONEY = re.compile(r"quota|billing|balance|credit|payment|funds|spend", re.I)
_IN_A_MOMENT = re.compile(r"\bin \d", re.I)
_SIZE = re.compile(
    r"context|\btokens?\b|prompt|\binputs?\b|\bmessages?\b(?![\[.])|conversation|request (?:is )?too", re.I
)
_BEYOND = re.compile(
    r"exceed|too (?:long|large|many|big)|longer|larger|greater than|less than \d|at most|\bmax(?!_)|limit|<="
    r"|reduc|shorten|overflow|range of",
    re.I,
)
"""A refusal for length matches both `_SIZE` and `_BEYOND`, whichever server sends it."""
_LONG = re.compile(r"context|too (?:long|large)")
_TAGS = re.compile(r"<(style|script|head)\b.*?</\1>|<[^>]*>", re.I | re.S)
_MESSAGES = ("message", "msg", "detail", "error_description", "title", "errors", "error", "text")
_CODES = ("code", "type", "status", "reason")


class TooLong(openai.BadRequestError):
    """A server refuses a request because of its length, with any status."""

    def __init__(self, error: openai.APIStatusError, fit: Any = None) -> None:
        """`fit` is what was learned about the server that refuses."""
        self.fit = fit
        refused = httpx2.Response(400, headers=error.response.headers, request=error.request)
        super().__init__(server_words(error), response=refused, body=error.body)
        numbers = sorted({int(number.replace(",", "")) for number in _NUMBER.findall(self.message)})
        self.share = numbers[-2] / numbers[-1] if len(numbers) > 1 else None
        """The share of the request that the server takes, if it says so: the two greatest numbers in its
        message are what it takes and what was sent."""


class ServerError(Exception):
    """An error in the body of an answer, or in mid-stream."""

    def __init__(self, body: Any) -> None:
        super().__init__(message_in(body) or "the server reported an error without a reason")
        self.body = body
        self.status = body_status(body)


def too_long_in(error: BaseException | None) -> TooLong | None:
    """Return the refusal for length that caused an error; None if there is none."""
    passed = set[int]()  # an error of a program's own model may be its own cause
    while error is not None and not isinstance(error, TooLong) and id(error) not in passed:
        passed.add(id(error))
        error = error.__cause__
    return error if isinstance(error, TooLong) else None


def message_in(body: Any) -> str:
    """Return the server's message; empty if there is none."""
    if isinstance(body, str):
        return _unpacked(body.strip())
    if isinstance(body, list):
        return "; ".join(filter(None, map(message_in, body[:3])))
    if not isinstance(body, Mapping):
        return ""
    inner = [
        message_in(body[name])
        for name in ("error", "response", "message")
        if isinstance(body.get(name), Mapping | list)
    ]
    words = next(filter(None, [*inner, *(message_in(body.get(name)) for name in _MESSAGES)]), "")
    metadata = body.get("metadata")
    raw = message_in(metadata.get("raw")) if isinstance(metadata, Mapping) else ""  # from behind a proxy
    where = body.get("loc")
    named = ".".join(map(str, where)) + ": " if isinstance(where, list) and where else ""
    return named + (f"{words}: {raw}" if raw and raw not in words else words)


def server_words(error: openai.APIStatusError) -> str:
    """Return the server's message in an error with a status."""
    return message_in(error.body) or error.message.removeprefix(f"Error code: {error.status_code} - ")


def _unpacked(text: str) -> str:
    """Return the message in a text that is JSON or HTML, as a proxy sends it."""
    if text.startswith("<"):  # a page
        return " ".join(_TAGS.sub(" ", text).split())
    if not text.startswith(("{", "[")):
        return text
    try:
        return message_in(json.loads(text)) or text
    except (ValueError, RecursionError):
        return text


def body_status(body: Any) -> int | None:
    """Return the HTTP status that an error body names, for servers that send it with 200."""
    if isinstance(body, list):
        return body_status(body[0]) if body else None
    if not isinstance(body, Mapping):
        return None
    for name in ("code", "status", "status_code"):
        if str(body.get(name)).isdecimal() and 400 <= int(body[name]) < 600:
            return int(body[name])
    return next(
        (code for part in body.values() if isinstance(part, Mapping) and (code := body_status(part))), None
    )


def body_codes(body: Any) -> str:
    """Return the codes and types that an error body names."""
    parts = body if isinstance(body, list) else body.values() if isinstance(body, Mapping) else ()
    named = [str(body[name]) for name in _CODES if body.get(name)] if isinstance(body, Mapping) else []
    return " ".join(filter(None, [*named, *map(body_codes, parts)])).replace("_", " ")


def no_money(error: openai.APIStatusError) -> bool:
    """Return whether a server refuses until its bill is paid, so that waiting is useless. Not if it says how
    long to wait."""
    if error.status_code not in (403, 429):
        return error.status_code == 402
    words = server_words(error)
    waits = error.status_code == 403 or _IN_A_MOMENT.search(words)
    return bool(_MONEY.search(body_codes(error.body)) or (not waits and _MONEY.search(words)))


def too_long(error: openai.APIStatusError) -> bool:
    """Return whether a server refuses a request because of its length. A rate limit does not count, unless
    the request alone exceeds it."""
    words = server_words(error)
    if error.status_code == 429:
        rate = _RATE.search(words)
        return rate is not None and int(rate[1].replace(",", "")) < int(rate[2].replace(",", ""))
    if error.status_code not in (400, 422, 500):
        return error.status_code == 413
    return bool(_LONG.search(body_codes(error.body)) or (_SIZE.search(words) and _BEYOND.search(words)))
