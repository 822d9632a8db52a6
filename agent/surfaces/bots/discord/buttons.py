"""Buttons below messages, and the modal that asks for the new text of a memory."""

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Self

import discord

from agent.surfaces.bots.answers import Answer, Button, Item
from memory.facts.writer import MAX_CONTENT

MAX_BUTTONS = 25
MODAL_SECONDS = 900.0
"""How long Discord accepts answers to a modal."""
_STYLES = {"plain": discord.ButtonStyle.secondary, "danger": discord.ButtonStyle.danger}


class HachiButton(
    discord.ui.DynamicItem[discord.ui.Button[discord.ui.View]],
    template=r"hachi:(?P<action>[a-z-]{1,12}):(?P<user>\d{1,20}):(?P<value>.{0,60})",
):
    """A button whose id holds its action and its user, so that it works after a restart. `client.pressed`
    handles it."""

    def __init__(self, user: int, button: Button, label: str | None = None, row: int | None = None) -> None:
        self.user = user
        self.action = button.action
        self.value = button.value
        super().__init__(
            discord.ui.Button(
                label=label or button.label,
                style=_STYLES[button.style],
                custom_id=f"hachi:{button.action}:{user}:{button.value}",
            ),
            row=row,
        )

    @classmethod
    async def from_custom_id(
        cls, interaction: discord.Interaction, item: discord.ui.Item[Any], match: re.Match[str]
    ) -> Self:
        return cls(int(match["user"]), Button("…", match["action"], match["value"]))

    async def callback(self, interaction: discord.Interaction) -> None:
        await interaction.client.pressed(self, interaction)  # type: ignore[attr-defined]


class EditModal(discord.ui.Modal, title="Say it differently"):
    def __init__(self, text: str, submit: Callable[[discord.Interaction, str], Awaitable[None]]) -> None:
        super().__init__(timeout=MODAL_SECONDS)
        self._submit = submit
        self.text: discord.ui.TextInput[Self] = discord.ui.TextInput(
            custom_id="words",
            style=discord.TextStyle.paragraph,
            default=text,
            max_length=MAX_CONTENT,
        )
        self.add_item(discord.ui.Label(text="What I am to remember", component=self.text))

    async def on_submit(self, interaction: discord.Interaction) -> None:
        await self._submit(interaction, self.text.value)


def answer_view(answer: Answer, user: int) -> discord.ui.View | None:
    """Return the buttons of the items, with the items' numbers, and of the answer. None if it has no
    buttons."""
    buttons = [
        HachiButton(user, button, f"{button.label} {number}")
        for number, item in enumerate(answer.items, start=1)
        for button in item.buttons
    ]
    return _view([*buttons, *(HachiButton(user, button) for button in answer.buttons)])


def receipt_view(items: Sequence[Item], user: int) -> discord.ui.View | None:
    """Return a row of buttons for each receipt."""
    return _view(
        [
            HachiButton(user, button, f"{button.label} {row + 1}" if len(items) > 1 else None, row)
            for row, item in enumerate(items)
            for button in item.buttons
        ]
    )


def view_without(message: discord.Message, value: str) -> discord.ui.View | None:
    """Return the buttons of a message except those of one memory or task."""
    template = HachiButton.__discord_ui_compiled_template__
    left = []
    for row, parts in enumerate(message.components):
        for part in getattr(parts, "children", ()):
            match = template.fullmatch(getattr(part, "custom_id", None) or "")
            if match and match["value"] != value:
                button = Button(part.label or "…", match["action"], match["value"])
                left.append(HachiButton(int(match["user"]), button, row=row))
    return _view(left)


def _view(buttons: Sequence[HachiButton]) -> discord.ui.View | None:
    if not buttons:
        return None
    view = discord.ui.View(timeout=None)
    for button in buttons[:MAX_BUTTONS]:
        view.add_item(button)
    return view
