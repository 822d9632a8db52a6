"""Turn errors into responses, in the shape that OpenAI's clients read.

The text of a server fault may name files and servers. Only an operator (an admin's key, or a server without
keys) sees it; others get a general message.
"""

import logging
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from uuid import uuid4

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from agent.errors import AnswerMisfit, BadInput, HachiError
from agent.types.checks import line_of
from memory.text import storable

log = logging.getLogger("hachi.http")

KINDS = {400: "invalid_request_error", 404: "not_found_error"}
"""The `type` of an error, by its status; any other is a `server_error`."""

PUBLIC_MESSAGES = {
    "overtaken": "conflict: it was changed at the same time; try again",
    "record_unavailable": "the database does not answer; try again later",
    "index_unavailable": "the search index does not answer; try again later",
    "embedder_unavailable": "the embedder does not answer; try again later",
    "model_unavailable": "the language model does not answer; try again later",
    "model_rejected": "the language model refused the request; the server's log says why",
}
"""Messages for callers who are not operators, by code."""

TOOL_NAME = r"^[a-zA-Z0-9_-]{1,64}$"
"""The pattern of the name of a client's tool."""
IMAGE_URL = r"^(data:image/|https://)"
_WANTED = {
    r"\S": "it is blank",
    TOOL_NAME: "letters, digits, _ and - make a name, at most 64 of them",
    IMAGE_URL: "an image is a URL that begins with https:// or data:image/",
}
"""What a field must be, by its pattern."""
_VAGUE = re.compile("missing|_type$")
"""Kinds of invalid field that say less than another one at the same depth."""

DO_NOT_RETRY = {"x-should-retry": "false"}
"""Headers that stop OpenAI's clients from repeating a turn whose message is already stored."""


class ErrorFields(BaseModel):
    """`param` names the wrong argument. `code` names the error, for programs."""

    message: str
    type: str
    param: str | None
    code: str | None


class ErrorBody(BaseModel):
    """The body of every error."""

    error: ErrorFields


class ApiError(Exception):
    """Raised for a request that a surface itself rejects."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        type: str = "invalid_request_error",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.body = error_body(message, type, code, _parameter_of(message) if status == 400 else None)
        self.headers = dict(headers or {})


def forbidden(message: str) -> ApiError:
    """Return the error for a caller who may not do this."""
    return ApiError(403, "forbidden", message, type="permission_error")


def not_found(what: str) -> ApiError:
    """Return the error for a thing that does not exist, or whose existence the caller may not learn of."""
    return ApiError(404, f"{what}_not_found", f"there is no such {what}", type="not_found_error")


def error_body(message: str, type: str, code: str | None, param: str | None = None) -> dict[str, Any]:
    return {"error": {"message": storable(message), "type": type, "param": param, "code": code}}


def _parameter_of(message: str) -> str | None:
    """Return the parameter that an error message begins with, if it begins with one."""
    named = re.match(r"([a-z_]+): ", message)
    return named[1] if named else None


def fault_response(error: Exception, *, operator: bool) -> tuple[int, dict[str, Any]]:
    """Return status and body for any error. Server faults are logged. An error that is no HachiError is
    described only in the log."""
    if not isinstance(error, HachiError):
        id = f"err_{uuid4().hex[:12]}"
        log.error("%s: internal error", id, exc_info=error)
        message = f"internal error; the server's log has it as {id}"
        return 500, error_body(message, "server_error", "internal_error")
    status, code, trace = error.status, error.code, error.trace_id
    message = " ".join(str(error).split())
    if status >= 500:
        log.warning("%s: %s", trace or code, message)
        if not operator and not isinstance(error, AnswerMisfit):
            message = PUBLIC_MESSAGES.get(code, "internal error; the server's log describes it")
    if status == 404:
        message = without_command(message)
    param = _parameter_of(message) if isinstance(error, BadInput | AnswerMisfit) else None
    kind = KINDS.get(status, "server_error")
    return status, error_body(f"{message} ({trace})" if trace else message, kind, code, param)


def without_command(message: str) -> str:
    """Return a message without its advice to run a `hachi` command, which a client may not have."""
    return message.partition("; `hachi ")[0]


def add_handlers(app: Starlette) -> None:
    """Answer every fault, invalid request and unknown path with the same JSON shape."""
    for kind in (ApiError, RequestValidationError, HTTPException, HachiError):
        app.add_exception_handler(kind, _respond)


async def _respond(request: Request, error: Exception) -> JSONResponse:
    if isinstance(error, RequestValidationError):
        return JSONResponse(_invalid_request(error), 400)
    if isinstance(error, HTTPException):
        return JSONResponse(_http_error(error), error.status_code, error.headers)
    return error_response(error, operator=getattr(request.state, "operator", False))


def error_response(error: Exception, *, operator: bool = False) -> JSONResponse:
    """Return the response for an ApiError or any other error."""
    if isinstance(error, ApiError):
        return JSONResponse(error.body, error.status, error.headers)
    status, body = fault_response(error, operator=operator)
    return JSONResponse(body, status, DO_NOT_RETRY if status >= 500 else None)


def _http_error(error: HTTPException) -> dict[str, Any]:
    messages = {404: "there is nothing at this address", 405: "this address does not take this method"}
    kind = "not_found_error" if error.status_code == 404 else "invalid_request_error"
    code = HTTPStatus(error.status_code).phrase.lower().replace(" ", "_")
    return error_body(messages.get(error.status_code, "the body cannot be read"), kind, code)


def _invalid_request(error: RequestValidationError) -> dict[str, Any]:
    """Return the body for the most deeply nested invalid field, without its value."""
    found = [(_path(one, error.body), one) for one in error.errors()]
    path, fault = max(found, key=lambda one: (len(one[0]), not _VAGUE.search(one[1]["type"])))
    kind, where = fault["type"], ".".join(path)
    if kind == "json_invalid":
        where, message = "", "the body is not JSON"
    elif not where and kind == "missing":
        message = "a body in JSON is missing"
    elif not where:
        message = "the body must be an object in JSON, sent with content-type: application/json"
    elif kind == "string_pattern_mismatch":
        message = f"{where}: {_WANTED.get(fault['ctx']['pattern'], 'this is not an id')}"
    else:
        message = line_of(where, fault)
    code = BadInput.code if kind == "value_error" else kind
    return error_body(message, "invalid_request_error", code, where or None)


def _path(fault: Mapping[str, Any], body: Any) -> list[str]:
    """Return the names and positions that lead to a fault in the body. Pydantic's location also names the
    types that it tried; those are left out."""
    source, *parts = fault["loc"]
    if source != "body":
        return [str(part) for part in (parts if source in ("query", "path") else fault["loc"])]
    path: list[str] = []
    for at, part in enumerate(parts):
        if (isinstance(body, dict) and part in body) or (isinstance(body, list) and isinstance(part, int)):
            path, body = [*path, str(part)], body[part]
        elif at == len(parts) - 1 and fault["type"] == "missing" and isinstance(body, dict):
            path.append(part)
    return path
