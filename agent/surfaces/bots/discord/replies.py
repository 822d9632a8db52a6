"""Replies and reminders on Discord: a typing indicator, and messages that are edited while the reply is
generated."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import discord

from agent.surfaces.bots.answers import Answer, Item
from agent.surfaces.bots.discord.messages import (
    channel_id,
    content_of,
    is_addressed,
    replied_to,
    user_id,
    user_name,
)
from agent.surfaces.bots.discord.rendering import (
    LIMIT,
    answer_text,
    answer_view,
    escape,
    receipt_lines,
    receipt_view,
    stop_view,
)
from agent.surfaces.bots.platform import Content, IncomingMessage, Label, Line
from agent.surfaces.bots.replies import Deleted
from agent.surfaces.bots.splitting import close_code_block
from memory.audience import Place

log = logging.getLogger("hachi.discord")

LAST_LINES = 50
"""Messages of a thread that are looked at to see who talks with whom."""
_NO_HISTORY = 160002
"""Discord's code where the bot may write, but not reply, since it may not read the history."""


@dataclass(eq=False)
class DiscordPlatform:
    client: discord.Client
    label: Label
    busy_seconds: float = 8.0  # Discord shows typing for ten seconds
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

    async def set_busy(self, message: IncomingMessage, busy: bool) -> None:
        if busy:  # the reply ends the typing indicator
            await message.source.channel.typing()

    def reply_to(self, message: IncomingMessage) -> "DiscordPosts":
        return DiscordPosts(message.source, is_reply=not message.place.private)


@dataclass
class DiscordPosts:
    """In a channel the first message is a reply on Discord too. Receipts follow the text. What to forget
    is asked in a message of its own. Discord ignores a second message with the same nonce."""

    source: discord.Message
    is_reply: bool
    limit: int = LIMIT
    _count: int = 0
    _stop_on: discord.Message | None = None
    """The message with the button that stops the reply."""

    def markup(self, text: str, *, final: bool) -> str:
        return text if final else close_code_block(text)

    async def post(self, text: str, *, final: bool) -> discord.Message:
        """If Discord already has a message with this nonce, it returns that, with its text."""
        options: dict[str, Any] = {"nonce": f"{self.source.id}-{self._count}", "suppress_embeds": True}
        if self._count == 0 and self.is_reply:
            options["reference"] = self.source.to_reference(fail_if_not_exists=False)
        if self._count == 0 and not final:
            options["view"] = stop_view(self.source.author.id, self.source.id)
        try:
            sent = await self.source.channel.send(text, **options)
        except discord.Forbidden as error:
            if error.code != _NO_HISTORY:
                raise
            del options["reference"]
            sent = await self.source.channel.send(text, **options)
        if sent.content.strip() != text.strip():
            await self.edit(sent, text)
        self._stop_on = sent if "view" in options else self._stop_on
        self._count += 1
        return sent

    async def edit(self, handle: discord.Message, text: str) -> None:
        try:
            await handle.edit(content=text, suppress=True)  # without `suppress` an edit adds link previews
        except discord.NotFound as error:
            raise Deleted from error

    async def remove(self, handle: discord.Message) -> None:
        try:
            await handle.delete()
        except discord.NotFound:
            log.info("message %s was deleted already", handle.id)

    def footer(self, receipts: Sequence[Item]) -> str:
        return receipt_lines(receipts)

    async def conclude(self, handles: Sequence[discord.Message], receipts: Sequence[Item]) -> None:
        if self._stop_on:
            await self._stop_on.edit(view=None, suppress=True)
        if view := receipt_view(receipts, self.source.author.id):
            await handles[-1].edit(view=view, suppress=True)

    async def ask(self, question: Answer) -> None:
        view = answer_view(question, self.source.author.id) or discord.utils.MISSING
        nonce = f"{self.source.id}-ask"
        await self.source.channel.send(answer_text(question), view=view, nonce=nonce, suppress_embeds=True)


async def remind(client: discord.Client, user: str, place: Place | None, text: str) -> bool:
    """Write a reminder, the bot's only message that pings, and pings only its recipient. Returns False if
    Discord does not let the bot write there."""
    id, channel = user_id(user), channel_id(place) if place else None
    if id is None or (place and channel is None):
        return False
    person, text = discord.Object(id), escape(text)
    try:
        if channel is None:
            await (await client.create_dm(person)).send(text, suppress_embeds=True)
        else:
            target: Any = client.get_channel(channel) or await client.fetch_channel(channel)
            mentions = discord.AllowedMentions(everyone=False, roles=False, users=[person])
            await target.send(f"<@{id}> {text}", allowed_mentions=mentions, suppress_embeds=True)
    except (discord.Forbidden, discord.NotFound) as error:
        log.warning("cannot remind %s in %s: %s", user, channel or "direct messages", error)
        return False
    return True
