"""Options that several commands share, and how what is typed is read."""

import os
from datetime import datetime
from typing import Annotated

import typer

from memory.text import storable


def clean(text: str) -> str:
    """Without the halves of characters that undecodable bytes on the command line come in as."""
    return storable(text)


def login() -> str:
    """Who is taken to speak where nobody says."""
    return next((name for key in ("LOGNAME", "USER", "USERNAME") if (name := os.environ.get(key))), "you")


def person(text: str) -> str:
    if not (name := clean(text).strip()):
        raise typer.BadParameter("a name, which tells one person from others")
    return name


def moment(text: str) -> datetime:
    """A time as people write it: ISO 8601; one without a zone is meant as the clock here shows it."""
    try:
        return datetime.fromisoformat(clean(text).strip()).astimezone()
    except (ValueError, OverflowError) as error:
        raise typer.BadParameter(f"{text!r} is no time such as 2026-01-10 or 2026-01-10T09:30") from error


def fraction(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0.0 <= number <= 1.0:
        raise typer.BadParameter(f"{text!r} is no number from 0 to 1")
    return number


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
Subjects = Annotated[
    list[str] | None,
    typer.Option("--subject", parser=clean, metavar="TAG", help="May be given several times."),
]
MemoryId = Annotated[
    str, typer.Argument(parser=clean, metavar="ID", help="Its id, or the first 8 characters of it.")
]
Content = Annotated[str, typer.Argument(parser=clean, metavar="CONTENT", help="The fact, as a sentence.")]
Ttl = Annotated[
    str | None,
    typer.Option(
        "--ttl", parser=clean, metavar="TIME", help="How long it holds: 1h, 7d, 2w … For good unless said."
    ),
]
