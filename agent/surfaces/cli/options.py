"""Options that several commands share, and how typed values are read."""

import os
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, TypeVar

import typer

from agent.errors import BadInput
from memory.text import storable

T = TypeVar("T")


def clean(text: str) -> str:
    """Without the surrogate halves that stand for undecodable bytes on the command line."""
    return storable(text)


def read_by(read: Callable[[str], T]) -> Callable[[str], T]:
    """A parser for typer; what the reader raises is wrong usage."""

    def parse(text: str | T) -> T:
        if not isinstance(text, str):
            return text  # the default
        try:
            return read(clean(text).strip())
        except (BadInput, ValueError, OverflowError) as error:
            raise typer.BadParameter(str(error)) from error

    return parse


def login() -> str:
    """The user if none is named."""
    return next((name for key in ("LOGNAME", "USER", "USERNAME") if (name := os.environ.get(key))), "you")


def _person(text: str) -> str:
    if not text:
        raise ValueError("a name, which tells one person from others")
    return text


def moment(text: str) -> datetime:
    """ISO 8601; a time without a zone is local. Raises ValueError."""
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{text!r} is no time such as 2026-01-10 or 2026-01-10T09:30") from error


def _fraction(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0.0 <= number <= 1.0:
        raise ValueError(f"{text!r} is no number from 0 to 1")
    return number


person = read_by(_person)

User = Annotated[
    str,
    typer.Option(
        "--user",
        "-u",
        default_factory=login,
        parser=person,
        metavar="NAME",
        help="Whose memory it is; your login name unless said.",
        show_default=False,
    ),
]
OneUser = Annotated[
    str | None,
    typer.Option("--user", "-u", parser=person, metavar="NAME", help="Only this person's."),
]
PlaceName = Annotated[
    str,
    typer.Option(
        "--place",
        parser=clean,
        metavar="dm|NAME",
        help="In private (dm), or in a place such as acme/general.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, help="At most so many.")]
Subjects = Annotated[
    list[str] | None,
    typer.Option("--subject", parser=clean, metavar="TAG", help="May be given several times."),
]
ShortId = Annotated[
    str, typer.Argument(parser=clean, metavar="ID", help="Its id, or the first 8 characters of it.")
]
Query = Annotated[str, typer.Argument(parser=clean, metavar="QUERY")]
Content = Annotated[str, typer.Argument(parser=clean, metavar="CONTENT", help="The fact, as a sentence.")]
Ttl = Annotated[
    str | None,
    typer.Option(
        "--ttl", parser=clean, metavar="TIME", help="How long it holds: 1h, 7d, 2w … For good unless said."
    ),
]
Importance = Annotated[float, typer.Option(parser=read_by(_fraction), metavar="0..1")]
SaidAt = Annotated[
    datetime | None,
    typer.Option(
        parser=read_by(moment), metavar="TIME", help="When it was said, if not now: 2026-01-10T09:30."
    ),
]
Host = Annotated[
    str, typer.Option("--host", metavar="ADDRESS", help="Where to listen; 127.0.0.1 unless said.")
]
Port = Annotated[int, typer.Option("--port", min=0, max=65535, help="0: any that is free.")]
