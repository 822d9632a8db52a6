"""Replies, answers and reminders on Discord: Markdown with buttons below it, a typing indicator, and messages
that are edited while the reply is generated."""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import discord
from discord.utils import MISSING, format_dt

from agent.surfaces.bots.answers import TASK, Answer, Button, Item, Words
from agent.surfaces.bots.discord.messages import (
    as_message,
    asked,
    channel_id,
    content_of,
    ids_of,
    incoming,
    is_addressed,
    is_from_person,
    origin_of,
    place_of,
    replied_to,
    user_id,
    user_name,
)
from agent.surfaces.bots.platform import Content, IncomingMessage, Label, Line, Unreadable
from agent.surfaces.bots.replies import Gone
from agent.surfaces.bots.splitting import close_code_block, utf16_length
from memory.audience import Place
from memory.records import MAX_CONTENT

LIMIT = 2_000
"""UTF-16 code units of a message."""
MAX_RECEIPTS = 5
"""Receipts of one reply. Further ones are only counted."""
MAX_BUTTONS = 25
MODAL_SECONDS = 900.0
"""How long Discord accepts answers to a modal."""
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


class EditModal(discord.ui.Modal, title="Say it differently"):
    def __init__(self, text: str, submit: Callable[[discord.Interaction, str], Awaitable[None]]) -> None:
        super().__init__(timeout=MODAL_SECONDS)
        self._submit = submit
        self.text: discord.ui.TextInput[Self] = discord.ui.TextInput(
            style=discord.TextStyle.paragraph, default=text, max_length=MAX_CONTENT
        )
        self.add_item(discord.ui.Label(text="What I am to remember", component=self.text))

    async def on_submit(self, interaction: discord.Interaction) -> None:
        await self._submit(interaction, self.text.value)


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


def answer_view(answer: Answer, user: int) -> discord.ui.View | None:
    """Return the buttons of the items, with the items' numbers, and of the answer; None if it has none."""
    buttons = [
        HachiButton(user, button, f"{button.label} {number}")
        for number, item in enumerate(answer.items, start=1)
        for button in item.buttons
    ]
    return _view([*buttons, *(HachiButton(user, button) for button in answer.buttons)])


def receipt_lines(items: Sequence[Item]) -> str:
    """Return the receipts below a reply, in small print."""
    lines = [
        f"-# {' '.join(filter(None, (item.label or 'Remembered', _words(item.note))))}: {escape(item.text)}"
        for item in items[:MAX_RECEIPTS]
    ]
    more = len(items) - MAX_RECEIPTS
    return "\n".join([*lines, *([f"-# … and {more} more: /memories"] if more > 0 else [])])


def receipt_view(items: Sequence[Item], user: int) -> discord.ui.View | None:
    """Return a row of buttons for each receipt."""
    return _view(
        HachiButton(user, button, f"{button.label} {row + 1}" if len(items) > 1 else None, row)
        for row, item in enumerate(items[:MAX_RECEIPTS])
        for button in item.buttons
    )


def stop_view(user: int, message: int) -> discord.ui.View | None:
    """Return the button that stops the reply to a message."""
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
    """Return the id of what a button is about."""
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


log = logging.getLogger("hachi.discord")

LAST_LINES = 50
"""Messages of a thread that are looked at to see who talks with whom."""
_NO_HISTORY = 160002
"""Discord's code where the bot may write, but not reply, since it may not read the history."""


@dataclass(eq=False)
class DiscordPlatform:
    client: discord.Client
    label: Label
    edit_seconds: float = 1.0

    async def read(self, message: IncomingMessage, *, begins: bool) -> Content:
        return await content_of(message.source, message.place, self.client.user, self.label)

    async def thread(self, message: IncomingMessage) -> Sequence[Line]:
        me, source = self.client.user, message.source
        found = [one async for one in source.channel.history(limit=LAST_LINES, before=source)]
        return [
            Line(
                "" if me and one.author.id == me.id else user_name(one.author.id),
                is_addressed(one, me),
                bool(one.raw_mentions) or replied_to(one) is not None,
            )
            for one in reversed(found)
        ]

    async def may_write(self, message: IncomingMessage) -> bool:
        channel = message.source.channel
        in_thread = isinstance(channel, discord.Thread)
        known = channel.parent if in_thread else isinstance(channel, discord.abc.GuildChannel)
        if not known or not channel.guild.me:
            return True
        may = channel.permissions_for(channel.guild.me)
        return bool(may.send_messages_in_threads if in_thread else may.send_messages)

    async def show_busy(self, message: IncomingMessage) -> None:
        async with message.source.channel.typing():
            await asyncio.Event().wait()

    async def write(self, user: str, place: Place, answer: Answer, asked_in: str = "") -> str:
        """In a place the message pings, as no other of the bot's does, and only its recipient. There a thread
        is a place."""
        id, channel = user_id(user), channel_id(place)
        if id is None or (channel is None and not place.private):
            return ""
        text, person = answer_text(answer), discord.Object(id)
        options: dict[str, Any] = {"suppress_embeds": True, "view": answer_view(answer, id) or MISSING}
        try:
            if channel is None:
                sent = await (await self.client.create_dm(person)).send(text, **options)
            else:
                target: Any = self.client.get_channel(channel) or await self.client.fetch_channel(channel)
                mentions = discord.AllowedMentions(everyone=False, roles=False, users=[person])
                sent = await target.send(f"<@{id}> {text}", allowed_mentions=mentions, **options)
        except (discord.Forbidden, discord.NotFound) as error:
            log.warning("cannot write to %s in %s: %s", user, place, error)
            return ""
        return origin_of(sent.channel.id, sent.id)

    async def fetch(self, origin: str) -> IncomingMessage | None:
        channel, id = ids_of(origin)
        try:
            return await self.restore(origin, await self.client.http.get_message(channel, id))
        except discord.NotFound:
            return None
        except discord.Forbidden as error:
            raise Unreadable from error

    async def restore(self, origin: str, event: Mapping[str, Any]) -> IncomingMessage | None:
        channel, _ = ids_of(origin)
        where: Any = self.client.get_channel(channel) or await self.client.fetch_channel(channel)
        if (place := place_of(where)) is None:
            return None
        message = as_message(where, event)
        if is_from_person(message):
            return incoming(message, place, self.client.user)
        return asked(message, place, self.client.user)

    def reply_to(self, message: IncomingMessage) -> "DiscordPosts":
        is_reply, user = not message.place.private, user_id(message.user) or 0
        return DiscordPosts(message.source.channel, message.source, user, is_reply=is_reply)

    def posts_at(self, origin: str) -> "DiscordPosts":
        return DiscordPosts(self.client.get_partial_messageable(ids_of(origin)[0]))


@dataclass
class DiscordPosts:
    """In a channel the first message is a reply on Discord too. Receipts follow the text. What to forget
    is asked in a message of its own. Discord ignores a second message with the same nonce."""

    channel: Any
    source: Any = None
    """The message that is answered; without it nothing is posted."""
    user: int = 0
    """Who asked."""
    is_reply: bool = False
    limit: int = LIMIT
    _count: int = 0
    _stop_on: discord.Message | None = None
    """The message with the button that stops the reply."""

    def origin(self, handle: Any) -> str:
        return origin_of(self.channel.id, handle.id)

    def handle(self, origin: str) -> Any:
        self._count += 1
        return self.channel.get_partial_message(ids_of(origin)[1])

    def markup(self, text: str, *, final: bool) -> str:
        return text if final else close_code_block(text)

    async def post(self, text: str, *, final: bool) -> discord.Message:
        """If Discord already has a message with this nonce, it returns that, with its text."""
        options: dict[str, Any] = {"nonce": f"{self.source.id}-{self._count}", "suppress_embeds": True}
        if self._count == 0 and self.is_reply:
            options["reference"] = self.source.to_reference(fail_if_not_exists=False)
        if self._count == 0 and not final:
            options["view"] = stop_view(self.user, self.source.id)
        try:
            sent: discord.Message = await self.channel.send(text, **options)
        except discord.Forbidden as error:
            if error.code != _NO_HISTORY:
                raise Gone from error
            del options["reference"]
            sent = await self.channel.send(text, **options)
        if sent.content.strip() != text.strip():
            await self.edit(sent, text)
        self._stop_on = sent if "view" in options else self._stop_on
        self._count += 1
        return sent

    async def edit(self, handle: Any, text: str) -> None:
        """One that was posted earlier loses its buttons, which belong to what stood there."""
        message, changes = handle, {}
        try:
            if isinstance(handle, discord.PartialMessage):
                message, changes = await handle.fetch(), {"view": None}
            await message.edit(content=text, suppress=True, **changes)  # else an edit adds link previews
        except discord.NotFound as error:
            if message is not handle:  # it is there, and may not be edited
                raise
            raise Gone from error

    async def remove(self, handle: Any) -> None:
        try:
            await handle.delete()
        except discord.NotFound:
            log.info("message %s was deleted already", handle.id)

    def footer(self, receipts: Sequence[Item]) -> str:
        return receipt_lines(receipts)

    async def conclude(self, handles: Sequence[Any], receipts: Sequence[Item]) -> None:
        view = receipt_view(receipts, self.user)
        if self._stop_on and (not view or self._stop_on is not handles[-1]):
            await self._stop_on.edit(view=None, suppress=True)
        if view:
            last = handles[-1]
            last = await last.fetch() if isinstance(last, discord.PartialMessage) else last
            await last.edit(view=view, suppress=True)

    async def ask(self, question: Answer) -> None:
        view = answer_view(question, self.user) or MISSING
        nonce = f"{self.source.id}-ask"
        await self.channel.send(answer_text(question), view=view, nonce=nonce, suppress_embeds=True)
