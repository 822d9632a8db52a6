"""Answers as Discord shows them: Markdown and buttons."""

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Self

import discord

from agent.surfaces.bots.answers import Answer, Button, Item, Settled
from agent.surfaces.bots.splitting import units
from memory.remember import MAX_CONTENT

LIMIT = 2_000
"""UTF-16 code units of a message."""
MOST_BUTTONS = 25
REMEMBERED = "-# Remembered"
"""How a receipt begins, in small print."""
RECEIPTS = 5
"""Of one reply; how many more there are is told."""

WIDTHS = (300, 180, 120, 60)
"""Characters an item may have; the widest that fits is taken."""

_SIGNS = re.compile(r"[\\`*~|<>\[\]]|(?<!\w)_|_(?!\w)|^[#-]", re.MULTILINE)
"""Of Discord's Markdown. The `_` in a name or an address is none."""

_STYLES = {"plain": discord.ButtonStyle.secondary, "danger": discord.ButtonStyle.danger}

Pressed = Callable[["HachiButton", discord.Interaction], Awaitable[None]]
Submitted = Callable[[discord.Interaction, str], Awaitable[None]]
"""Is given the words."""
EDIT_SECONDS = 900.0
"""For so long a modal is waited for; Discord takes answers to it for as long."""


class HachiButton(
    discord.ui.DynamicItem[discord.ui.Button[discord.ui.View]],
    template=r"hachi:(?P<action>[a-z-]{1,12}):(?P<user>\d{1,20}):(?P<value>.{0,60})",
):
    """A button that says in its id what it does and for whom, so that it works after a restart too. What
    happens then is set on the client, as `pressed`."""

    def __init__(self, user: int, button: Button, label: str | None = None, row: int | None = None) -> None:
        self.user = user
        self.action = button.action
        self.value = button.value
        self.label = label or button.label
        super().__init__(
            discord.ui.Button(
                label=self.label,
                style=_STYLES[button.style],
                custom_id=f"hachi:{button.action}:{user}:{button.value}",
            ),
            row=row,
        )

    @classmethod
    async def from_custom_id(
        cls, interaction: discord.Interaction, item: discord.ui.Item[Any], match: re.Match[str]
    ) -> Self:
        return cls.of(match, getattr(item, "label", None))

    @classmethod
    def of(
        cls, match: re.Match[str], label: str | None, *, danger: bool = False, row: int | None = None
    ) -> Self:
        button = Button(label or "…", match["action"], match["value"], "danger" if danger else "plain")
        return cls(int(match["user"]), button, row=row)

    async def callback(self, interaction: discord.Interaction) -> None:
        pressed: Pressed = interaction.client.pressed  # type: ignore[attr-defined]
        await pressed(self, interaction)


class EditModal(discord.ui.Modal, title="Say it differently"):
    """Asks for the new words of a memory."""

    def __init__(self, words: str, submitted: Submitted) -> None:
        super().__init__(timeout=EDIT_SECONDS)
        self._submitted = submitted
        self.words: discord.ui.TextInput[Self] = discord.ui.TextInput(
            custom_id="words",
            style=discord.TextStyle.paragraph,
            default=words,
            max_length=MAX_CONTENT,
        )
        self.add_item(discord.ui.Label(text="What I am to remember", component=self.words))

    async def on_submit(self, interaction: discord.Interaction) -> None:
        await self._submitted(interaction, self.words.value)


def text_of(answer: Answer) -> str:
    """At most `LIMIT` long; what people said is shown as text, whatever is in it."""
    text = ""
    for width in WIDTHS:
        numbered = any(item.buttons for item in answer.items)
        lines = [
            f"{f'{number}. ' if numbered else '- '}{_line(item, width)}"
            for number, item in enumerate(answer.items, start=1)
        ]
        note = [f"-# {answer.note}"] if answer.note else []
        text = "\n".join([answer.text, *lines, *note])
        if units(text) <= LIMIT:
            return text
    return text[: LIMIT // 2]


def view_of(answer: Answer, user: int) -> discord.ui.View | None:
    """Its buttons, with the numbers of their items; None where there are none."""
    buttons = [
        HachiButton(user, button, f"{button.label} {number}")
        for number, item in enumerate(answer.items, start=1)
        for button in item.buttons
    ]
    return _view([*buttons, *(HachiButton(user, button) for button in answer.buttons)])


def receipt_lines(items: Sequence[Item], more: int) -> str:
    """What stands small below a reply."""
    lines = []
    for item in items:
        until = f" {item.note}" if item.note else ""
        lines.append(f"{REMEMBERED}{until}: {shown(item.text)}")
    if more:
        lines.append(f"-# … and {more} more: /memories")
    return "\n".join(lines)


def receipt_view(items: Sequence[Item], user: int) -> discord.ui.View | None:
    """A row of buttons each."""
    several = len(items) > 1
    return _view(
        [
            HachiButton(user, button, f"{button.label} {number}" if several else button.label, row)
            for row, item in enumerate(items)
            for number in (row + 1,)
            for button in item.buttons
        ]
    )


def struck(content: str, settled: Settled) -> str:
    """A reply with the receipt that no longer holds: that there was one stays, what it said goes."""
    text = shown(settled.text)
    lines = [
        f"-# ({settled.became})" if line.startswith(REMEMBERED) and line.endswith(f": {text}") else line
        for line in content.split("\n")
    ]
    return "\n".join(lines)


def without(message: discord.Message, value: str) -> discord.ui.View | None:
    """The buttons of a message but for those of one memory or task."""
    left = []
    for row, parts in enumerate(message.components):
        for part in getattr(parts, "children", ()):
            template = HachiButton.__discord_ui_compiled_template__
            match = template.fullmatch(getattr(part, "custom_id", None) or "")
            if match and match["value"] != value:
                danger = getattr(part, "style", None) is discord.ButtonStyle.danger
                left.append(HachiButton.of(match, part.label, danger=danger, row=row))
    return _view(left)


def shown(text: str) -> str:
    """What somebody said, so that no sign in it does anything."""
    return _SIGNS.sub(r"\\\g<0>", text)


def _line(item: Item, width: int) -> str:
    label = f"**{item.label}:** " if item.label else ""
    text = item.text if item.label or len(item.text) <= width else f"{item.text[: width - 2]} …"
    return f"{label}{shown(text)}{f' ({item.note})' if item.note else ''}"


def _view(buttons: Sequence[HachiButton]) -> discord.ui.View | None:
    if not buttons:
        return None
    view = discord.ui.View(timeout=None)
    for button in buttons[:MOST_BUTTONS]:
        view.add_item(button)
    return view
