"""Options that several commands share, and the parsers of their values."""

import os
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, TypeVar

import typer

from agent.errors import BadInput
from agent.tracing.store.filters import read_since

T = TypeVar("T")


def read_by(read: Callable[[str], T]) -> Callable[[str], T]:
    """Return a parser for typer. If `read` refuses a value, that is wrong usage."""

    def parse(text: str | T) -> T:
        if not isinstance(text, str):
            return text  # this is the default
        try:
            return read(text.strip())
        except (BadInput, ValueError, OverflowError) as error:
            raise typer.BadParameter(str(error)) from error

    return parse


def login() -> str:
    """Return the login name of the current user."""
    return next((name for key in ("LOGNAME", "USER", "USERNAME") if (name := os.environ.get(key))), "you")


def _name(text: str) -> str:
    if not text:
        raise ValueError("it is empty; give a name")
    return text


def number(text: str | float) -> float | str:
    """Return the number, or the text if it is none; the API then refuses the text."""
    try:
        return float(text)
    except ValueError:
        return text


moment = read_by(lambda text: read_since(text, datetime.now(UTC)))
"""Parses an ISO 8601 time, or how long ago it was."""
user_option = partial(typer.Option, "--user", "-u", parser=read_by(_name), metavar="NAME")
_WHOSE = "Whose memory to use. Your login name by default."
User = Annotated[str, user_option(default_factory=login, show_default=False, help=_WHOSE)]
OneUser = Annotated[str | None, user_option(help="Only this person's.")]
PlaceName = Annotated[
    str,
    typer.Option("--place", metavar="dm|NAME", help="In private (dm), or in a place such as acme/general."),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would be deleted.")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, help="How many to show at most.")]
Most = Annotated[int, typer.Option("--limit", "-n", help="How many to show at most.")]
"""The API checks the range."""
Before = Annotated[
    str | None, typer.Option("--before", metavar="ID", help="Only messages older than this one.")
]
ShortId = Annotated[str, typer.Argument(metavar="ID", help="The id, or its first 8 characters.")]
Query = Annotated[str, typer.Argument(metavar="QUERY")]
