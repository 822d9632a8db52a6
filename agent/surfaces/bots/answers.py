"""The answer of a command, as data. Each platform turns it into text and buttons."""

from dataclasses import dataclass
from typing import Literal

from memory.audience import PRIVATE, Place


@dataclass(frozen=True, slots=True)
class Asker:
    """The person who uses a command or a button, and the place they use it in."""

    user: str
    place: Place = PRIVATE


@dataclass(frozen=True, slots=True)
class Button:
    """When somebody presses it, the platform calls `Commands.press(asker, action, value)`."""

    label: str
    action: str
    """undo, delete, edit, private, done, more, erase or keep. For `edit` the platform asks for the new text
    and calls `Commands.edit`."""
    value: str = ""
    """At most 60 characters."""
    style: Literal["plain", "danger"] = "plain"


@dataclass(frozen=True, slots=True)
class Item:
    """One line of a list: label, text, note."""

    text: str
    """Often written by people, so a platform escapes its markup."""
    note: str = ""
    """A remark about the text, such as until when it is kept."""
    buttons: tuple[Button, ...] = ()
    label: str = ""


@dataclass(frozen=True, slots=True)
class ReceiptUpdate:
    """A change to a receipt that no longer holds: the platform replaces its `text` with the `outcome`."""

    text: str
    outcome: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a command. Only the person who asked sees it."""

    text: str
    items: tuple[Item, ...] = ()
    note: str = ""
    """Shown after the items."""
    buttons: tuple[Button, ...] = ()
    update: ReceiptUpdate | None = None
