"""What goes wrong, as an answer over HTTP: always ``{"error": {"message", "type", "param", "code"}}``,
which is the shape that OpenAI's clients read, and never a traceback.

A fault of ours is told in full to whoever runs Hachi (an admin's key, or no keys at all), since its text
may name files and servers; others get to know that it happened, and the log has the rest.
"""

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from uuid import uuid4

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from agent.errors import (
    FAULTS,
    BadInput,
    HachiError,
    ModelError,
    ModelRejected,
    ModelUnavailable,
    SettingsError,
)
from agent.types import writable
from memory.errors import EmbedderUnavailable, IndexUnavailable, MemoryFault, NotFound, StoreUnavailable
from memory.sql.engine import Overtaken
from memory.sql.keys import BadKey

log = logging.getLogger("hachi.http")

STATUS: Mapping[type[Exception], tuple[int, str, str]] = {
    BadInput: (400, "invalid_request_error", "bad_input"),
    BadKey: (400, "invalid_request_error", "bad_key"),
    NotFound: (404, "not_found_error", "not_found"),
    Overtaken: (503, "server_error", "overtaken"),
    StoreUnavailable: (503, "server_error", "record_unavailable"),
    IndexUnavailable: (503, "server_error", "index_unavailable"),
    EmbedderUnavailable: (503, "server_error", "embedder_unavailable"),
    ModelUnavailable: (503, "server_error", "model_unavailable"),
    ModelRejected: (502, "server_error", "model_rejected"),
    ModelError: (502, "server_error", "model_error"),
    SettingsError: (500, "server_error", "settings"),
    HachiError: (500, "server_error", "internal_error"),
    MemoryFault: (500, "server_error", "internal_error"),
}
"""Status, type and code of every fault; one that is not named here is told as its nearest parent."""

FOR_OTHERS = {
    "overtaken": "somebody else changed the same just now; try again",
    "record_unavailable": "what is remembered cannot be reached just now; try again later",
    "index_unavailable": "searching is not possible just now; try again later",
    "embedder_unavailable": "searching is not possible just now; try again later",
    "model_unavailable": "the language model does not answer just now; try again later",
    "model_rejected": "the language model refused the request; who runs this server finds why in its log",
}
"""What is told of a fault of ours to those who do not run the server."""


class Refusal(Exception):
    """An answer that is no, from a surface itself."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        type: str = "invalid_request_error",
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.body = body(message, type, code, param)
        self.headers = dict(headers or {})


def body(message: str, type: str, code: str | None, param: str | None = None) -> dict[str, Any]:
    return {"error": {"message": writable(message), "type": type, "param": param, "code": code}}


def told(error: Exception, *, in_full: bool) -> tuple[int, dict[str, Any]]:
    """A fault of `FAULTS` as status and body. What is ours is logged."""
    status, kind, code = next(STATUS[parent] for parent in type(error).__mro__ if parent in STATUS)
    trace = getattr(error, "trace_id", None)
    message = " ".join(str(error).split())
    if status >= 500:
        log.warning("%s: %s", trace or code, message)
        if not in_full:
            message = FOR_OTHERS.get(code, "something is wrong with this server; its log says what")
    return status, body(f"{message} ({trace})" if trace else message, kind, code)


def broken(error: Exception) -> tuple[int, dict[str, Any]]:
    """What nobody foresaw. Only the log says what it was."""
    id = f"err_{uuid4().hex[:12]}"
    log.error("%s: something broke inside", id, exc_info=error)
    return 500, body(f"something broke inside; the log has it as {id}", "server_error", "internal_error")


NOT_AGAIN = {"x-should-retry": "false"}
"""Tells OpenAI's clients not to repeat a turn by themselves: what
was said is in the transcript already, and the model was asked several times."""


def add_to(app: FastAPI) -> None:
    """Every fault, every wrong request, and every path that is none, in the one shape."""

    @app.exception_handler(Refusal)
    async def refused(_: Request, error: Refusal) -> JSONResponse:
        return JSONResponse(error.body, error.status, error.headers)

    @app.exception_handler(RequestValidationError)
    async def wrong(_: Request, error: RequestValidationError) -> JSONResponse:
        return JSONResponse(_wrong(error), 400)

    @app.exception_handler(HTTPException)
    async def http(_: Request, error: HTTPException) -> JSONResponse:
        phrase = HTTPStatus(error.status_code).phrase
        said = {404: "there is nothing at this address", 405: "this address does not take that method"}
        message = said.get(error.status_code, "the body cannot be read")
        code = phrase.lower().replace(" ", "_")
        kind = "not_found_error" if error.status_code == 404 else "invalid_request_error"
        return JSONResponse(body(message, kind, code), error.status_code, error.headers)

    async def fault(request: Request, error: Exception) -> JSONResponse:
        status, answer = told(error, in_full=getattr(request.state, "in_full", False))
        return JSONResponse(answer, status, NOT_AGAIN if status >= 500 else None)

    for kind in FAULTS:
        app.add_exception_handler(kind, fault)


def _wrong(error: RequestValidationError) -> dict[str, Any]:
    """The first thing that is wrong, without what was given, which nobody wants back."""
    first = error.errors()[0]
    path = [str(part) for part in first["loc"]]
    if first["type"] == "json_invalid":
        return body("the body is no JSON", "invalid_request_error", "json_invalid")
    where = ".".join(path[1:] if path[0] in ("body", "query", "path") else path)
    if first["type"] == "missing" and not where:
        return body("a body in JSON is missing", "invalid_request_error", "missing")
    return body(_in_words(first, where), "invalid_request_error", first["type"], where or None)


def _in_words(fault: Mapping[str, Any], where: str) -> str:
    if not where:  # the body as a whole, of which nothing was read if it did not call itself JSON
        return "the body must be an object in JSON, sent with content-type: application/json"
    if fault["type"] == "string_pattern_mismatch":
        return f"{where}: it is blank" if fault["ctx"]["pattern"] == r"\S" else f"{where}: this is no id"
    return f"{where}: {fault['msg'].lower()}"
