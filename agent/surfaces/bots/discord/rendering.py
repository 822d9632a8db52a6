"""Answers, receipts and buttons on Discord: Markdown with rows of buttons below it."""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Self

import discord
from discord.utils import format_dt

from agent.surfaces.bots.answers import TASK, Answer, Button, Item, Words
from agent.surfaces.bots.splitting import split, utf16_length

LIMIT = 2_000
"""UTF-16 code units of a message."""
MENTION = 25
"""Characters that stay free for the mention of a person."""
MAX_RECEIPTS = 5
"""Receipts of one reply. Further ones are only counted."""
MAX_BUTTONS = 25
_STYLES = {"normal": discord.ButtonStyle.secondary, "danger": discord.ButtonStyle.danger}
_RECEIPTS = ("-# Remembered", f"-# {TASK}", "-# (")
"""How the lines below a reply begin."""
_WIDTHS = (300, 180, 120, 60)
"""Maximum characters of an item. The largest that fits into a message is used."""
_MARKUP = re.compile(r"(https?://[^\s<>`|]+)|[\\`*_~|<>\[\]]|^[#-]", re.MULTILINE)
"""Addresses, and the characters of Discord's Markdown."""


class HachiButton(
    discord.ui.DynamicItem[discord.ui.Button[discord.ui.View]],
    template=r"hachi:(?P<action>[a-z-]{1,12}):(?P<user>\d{1,20}):(?P<value>.{0,60})",
):
    """A button whose id holds its action and its user, so that it works after a restart."""

    def __init__(self, user: int, button: Button, label: str | None = None, row: int | None = None) -> None:
        self.user, self.action, self.value = user, button.action, button.value
        id = f"hachi:{button.action}:{user}:{button.value}"
        made: discord.ui.Button[discord.ui.View] = discord.ui.Button(
            label=label or button.label, style=_STYLES[button.style], custom_id=id
        )
        super().__init__(made, row=row)

    @classmethod
    async def from_custom_id(cls, _: Any, item: discord.ui.Item[Any], match: re.Match[str]) -> Self:
        return cls(int(match["user"]), Button("…", match["action"], match["value"]))

    async def callback(self, interaction: discord.Interaction) -> None:
        await interaction.client.pressed(self, interaction)  # type: ignore[attr-defined]


def answer_text(answer: Answer) -> str:
    """Return at most `LIMIT` characters, with numbers for items that have buttons."""
    numbered = any(item.buttons for item in answer.items)
    note = [f"-# {_words(answer.note)}"] if answer.note else []
    text = ""
    for width in _WIDTHS:
        lines = [
            f"{f'{number}. ' if numbered else '- '}{_line(item, width)}"
            for number, item in enumerate(answer.items, start=1)
        ]
        text = "\n".join([escape(answer.text), *lines, *note])
        if utf16_length(text) <= LIMIT:
            return text
    return text[: LIMIT // 2]


def answer_parts(answer: Answer) -> list[str]:
    """Return the texts of the messages that show an answer: several for a question that is too long for one,
    since a person reads all of it before they agree."""
    if answer.buttons and not answer.items and utf16_length(escape(answer.text)) > LIMIT - MENTION:
        return [*map(escape, split(answer.text, LIMIT // 2 - MENTION))]
    return [answer_text(answer)]


def answer_view(answer: Answer, user: int) -> discord.ui.View | None:
    """Return the buttons of the items, with the items' numbers, and of the answer; None if it has none."""
    buttons = [
        HachiButton(user, button, f"{button.label} {number}")
        for number, item in enumerate(answer.items, start=1)
        for button in item.buttons
    ]
    return _view([*buttons, *(HachiButton(user, button) for button in answer.buttons)])


def receipt_lines(items: Sequence[Item]) -> str:
    lines = [
        f"-# {' '.join(filter(None, (item.label or 'Remembered', _words(item.note))))}: {escape(item.text)}"
        for item in items[:MAX_RECEIPTS]
    ]
    more = len(items) - MAX_RECEIPTS
    return "\n".join([*lines, *([f"-# … and {more} more: /memories"] if more > 0 else [])])


def receipt_view(items: Sequence[Item], user: int) -> discord.ui.View | None:
    return _view(
        HachiButton(user, button, f"{button.label} {row + 1}" if len(items) > 1 else None, row)
        for row, item in enumerate(items[:MAX_RECEIPTS])
        for button in item.buttons
    )


def stop_view(user: int, message: int) -> discord.ui.View | None:
    return _view([HachiButton(user, Button("Stop", "stop", str(message)))])


def without_receipt(message: discord.Message, value: str, outcome: str) -> dict[str, Any]:
    """Return the changes to a message: without the buttons of one memory, message or task, and with the
    outcome in place of its receipt or its numbered line."""
    view, number = discord.ui.View.from_message(message, timeout=None), "1"
    for item in view.children:
        if isinstance(item, discord.ui.Button) and _about(str(item.custom_id)) == value.partition(".")[0]:
            view.remove_item(item)
            number = str(item.label).rpartition(" ")[2]
    view.stop()  # `HachiButton` handles the buttons that are left
    lines = message.content.split("\n")
    receipts = [at for at, line in enumerate(lines) if line.startswith(_RECEIPTS)]
    numbered = [at for at, line in enumerate(lines) if line.startswith(f"{number}. ")]
    if receipts:
        at = receipts[int(number) - 1 if number.isdecimal() and len(receipts) >= int(number) else 0]
        lines[at] = f"-# ({outcome})"
    elif numbered:
        lines[numbered[0]] = f"{number}. ({outcome})"
    else:
        lines.append(f"-# ({outcome})")
    changes: dict[str, Any] = {"view": view if view.children else None}
    return changes | ({"content": "\n".join(lines)} if outcome else {})


def _about(custom_id: str) -> str:
    return custom_id.rpartition(":")[2].partition(".")[0]


def escape(text: str) -> str:
    """Escape the markup in people's text. Addresses stay whole."""
    return _MARKUP.sub(lambda found: found[1] or f"\\{found[0]}", text)


def _words(words: Words) -> str:
    return "".join(escape(word) if isinstance(word, str) else format_dt(word, "f") for word in words)


def _line(item: Item, width: int) -> str:
    label = f"**{escape(item.label)}:** " if item.label else ""
    text = item.text if item.label or len(item.text) <= width else f"{item.text[: width - 2]} …"
    return f"{label}{escape(text)}{f' ({_words(item.note)})' if item.note else ''}"


def _view(buttons: Iterable[HachiButton]) -> discord.ui.View | None:
    view = discord.ui.View(timeout=None)
    for button in list(buttons)[:MAX_BUTTONS]:
        view.add_item(button)
    return view if view.children else None
