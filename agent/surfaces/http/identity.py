"""Read whom a request acts for: from its key, or, with a service's key, from its headers or a signed token.

Open WebUI sends all of these headers.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from urllib.parse import unquote

import jwt
from starlette.datastructures import Headers

from agent.surfaces.http.errors import ApiError, forbidden
from memory.sql.keys import Key

USER_HEADER = "x-openwebui-user-id"
NAME_HEADER = "x-openwebui-user-name"
TOKEN_HEADER = "x-openwebui-user-jwt"
CHAT_HEADER = "x-openwebui-chat-id"
TASK_HEADER = "x-hachi-task"
QUESTION_HEADER, FOLLOWS_HEADER, BROWSER_HEADER = "x-hachi-question", "x-hachi-follows", "x-hachi-browser"
WHO = "Who speaks, with a service's key: any stable id, in UTF-8."
CALLED = "The name to show for them."
SIGNED = "Both, signed: a JWT by HS256 with `sub`, `name` and `exp`."
WHICH = "The client's name for the conversation."
OWN_TASK = "What a client asks for itself, as a title; empty: a person speaks. Unset, its template tells."
MAX_NAME, MAX_CHAT, MAX_TOKEN = 200, 128, 8_000
"""Characters."""
_BY_CLOCK: Any = {"verify_exp": False, "verify_iat": False, "require": ["sub", "exp"]}
"""`jwt` would compare with the system's clock; Hachi compares with its own."""


@dataclass(frozen=True, slots=True)
class Caller:
    key: Key | None
    """None if no key is needed."""
    user: str | None
    """The user that the caller acts for; None is anonymous."""
    author: str | None = None
    """The name to show for the user."""
    chat: str | None = None
    """The client's name for the conversation."""
    task: str | None = None
    """The client's own task; empty if a person speaks, None if the client does not say."""
    question: str = ""
    """The client's id of the message that is answered."""
    begins: bool = False
    """Whether that message is the first of the conversation, as the client says."""
    program: bool = False
    """Whether a program writes in the user's name, as the client says."""
    must_sign: bool = False
    """Whether the caller may name a user only by a signed token."""

    @property
    def bucket(self) -> str:
        """Return the name under which requests and bodies are counted."""
        return f"{self.key.id if self.key else ''} {self.user or ''}"

    @property
    def admin(self) -> bool:
        return self.key is None or self.key.admin

    @property
    def service(self) -> bool:
        """Return whether the caller may name the user: it has a service's key, or no key is needed."""
        return self.key is None or self.key.kind == "service"

    def acting_for(self, named: str | None) -> str | None:
        """Return the user. `named` is the user that the body names. Raises ApiError if the caller may not act
        for them."""
        named = named.strip() if named else None
        if not named or named == self.user:
            return self.user
        if self.user is not None:
            raise forbidden(f"this request is for {self.user!r}, and names {named!r}")
        self.check_may_name()
        return named

    def check_may_name(self) -> None:
        """Raise ApiError if the key may name people and places only by a signed token, and the request has
        none."""
        if self.must_sign and self.user is None:
            raise forbidden(f"this key may name a user by a signed token alone, in {TOKEN_HEADER}")


def caller_of(key: Key | None, headers: Headers, secret: str, now: datetime) -> Caller:
    """Return whom the request acts for. With a `secret`, a service's key that is not an admin's names them by
    a token signed with it. Raises ApiError."""
    signed = _claims(_header(headers, TOKEN_HEADER, MAX_TOKEN), secret, now)
    by_token, by_header = _signed_text(signed, "sub"), _header(headers, USER_HEADER, MAX_NAME)
    own = key.user if key else None
    for header, named in ((TOKEN_HEADER, by_token), (USER_HEADER, by_header)):
        if own and named not in (None, own):
            raise forbidden(f"this key acts for its own user only, and {header} names another")
    caller = Caller(
        key,
        own or by_token,
        _signed_text(signed, "name") or _name(headers),
        _header(headers, CHAT_HEADER, MAX_CHAT),
        _header(headers, TASK_HEADER, MAX_NAME) or ("" if TASK_HEADER in headers else None),
        question=(question := _header(headers, QUESTION_HEADER, MAX_CHAT) or ""),
        begins=bool(question) and headers.get(FOLLOWS_HEADER, "-").strip() == "",
        program=headers.get(BROWSER_HEADER, "-").strip() == "",
        must_sign=bool(secret and key and not (own or key.admin)),
    )
    return replace(caller, user=caller.acting_for(by_header))


def _claims(token: str | None, secret: str, now: datetime) -> dict[str, Any]:
    """Return the claims of a token; empty if there is none. Raises ApiError if it is not valid now."""
    if token is None:
        return {}
    if not secret:
        raise _unverified("this server has no FORWARD_USER_INFO_HEADER_JWT_SECRET to verify it with")
    with suppress(jwt.PyJWTError, TypeError, ValueError):
        claims: dict[str, Any] = jwt.decode(token, secret, ["HS256"], options=_BY_CLOCK)
        if float(claims["exp"]) > now.timestamp():
            return claims
    raise _unverified("it is not signed with FORWARD_USER_INFO_HEADER_JWT_SECRET, or has expired")


def _unverified(why: str) -> ApiError:
    message = f"{TOKEN_HEADER}: {why}"
    return ApiError(401, "invalid_user_token", message, type="authentication_error")


def _signed_text(claims: dict[str, Any], name: str) -> str | None:
    return str(claims.get(name) or "").strip()[:MAX_NAME] or None


def _name(headers: Headers) -> str | None:
    """Return the name to show. Open WebUI percent-encodes it if it is not ASCII."""
    name = _header(headers, NAME_HEADER, 4 * MAX_NAME)
    return name and (unquote(name).strip()[:MAX_NAME] or None)


def _header(headers: Headers, name: str, most: int) -> str | None:
    """Return the value of a header, of which there may be only one. Servers decode headers as Latin-1, but
    names are UTF-8."""
    values = {value.strip() for value in headers.getlist(name)} - {""}
    if not values:
        return None
    if len(values) > 1:
        raise ApiError(400, "bad_header", f"{name} is given twice, with different values")
    text = values.pop()
    with suppress(UnicodeError):
        text = text.encode("latin-1").decode()
    if len(text) > most:
        raise ApiError(400, "bad_header", f"{name} has more than {most} characters")
    return text
