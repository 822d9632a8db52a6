"""What a command answers, as data: a platform makes lines and buttons of it."""

from dataclasses import dataclass
from typing import Literal

UNDO, DELETE, MORE, DONE, ERASE, KEEP = "undo", "delete", "more", "done", "erase", "keep"
EDIT, MAKE_PRIVATE = "edit", "private"
"""What buttons do. `EDIT` asks for the new words first: see `Commands.words_of`."""


@dataclass(frozen=True, slots=True)
class Button:
    """Pressed, it comes back as `Commands.press(asker, action, value)`."""

    label: str
    action: str
    """One word, of lower-case letters and dashes."""
    value: str = ""
    """At most 60 characters."""
    style: Literal["plain", "danger"] = "plain"


@dataclass(frozen=True, slots=True)
class Item:
    """One line of a list: the label, the text, the note."""

    text: str
    """Often what people said, word for word: a platform shows it as text, whatever is in it."""
    note: str = ""
    """What is to be told about it, such as until when it is kept."""
    buttons: tuple[Button, ...] = ()
    label: str = ""
    """What it is, where the items are of several kinds."""


@dataclass(frozen=True, slots=True)
class Answer:
    """For the eyes of the person who asked only."""

    text: str
    items: tuple[Item, ...] = ()
    note: str = ""
    """What follows the items."""
    buttons: tuple[Button, ...] = ()
    settled: "Settled | None" = None
    """Of which receipt nothing is left to do."""


@dataclass(frozen=True, slots=True)
class Settled:
    """A receipt no longer holds: whoever shows it shows this instead."""

    text: str
    """What it said is remembered."""
    became: str
    """What became of it, in a few words."""
