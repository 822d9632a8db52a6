"""Replies on Discord: a typing indicator, and messages that are edited while the reply is generated."""

import logging
from collections.abc import Sequence
from typing import Any

import discord

from agent.surfaces.bots.answers import Asker
from agent.surfaces.bots.commands import Commands
from agent.surfaces.bots.conversations import Content, IncomingMessage
from agent.surfaces.bots.discord.buttons import receipt_view
from agent.surfaces.bots.discord.messages import content_of
from agent.surfaces.bots.discord.rendering import LIMIT, MAX_RECEIPTS, receipt_lines
from agent.surfaces.bots.items import Receipt
from agent.surfaces.bots.live_text import MessageGone, PostedText
from agent.surfaces.bots.splitting import close_code_block

log = logging.getLogger("hachi.discord")

API_ERRORS = (discord.DiscordException, OSError)
"""The exceptions that calls of Discord's API raise."""


class DiscordPlatform:
    busy_seconds = 8.0  # Discord shows typing for ten seconds

    def __init__(self, client: discord.Client, commands: Commands) -> None:
        self._client = client
        self._commands = commands

    async def read(self, message: IncomingMessage) -> Content:
        return content_of(message.source, self._client.user)

    async def show_busy(self, message: IncomingMessage) -> None:
        await message.source.channel.typing()

    async def hide_busy(self, message: IncomingMessage) -> None:
        """Do nothing: the reply ends the typing indicator."""

    def reply_to(self, message: IncomingMessage) -> "DiscordReply":
        return DiscordReply(message, self._commands)


class DiscordReply:
    """A reply in Discord messages. In a channel the first one is a Discord reply too. Receipts follow the
    text."""

    def __init__(self, message: IncomingMessage, commands: Commands) -> None:
        self._message: discord.Message = message.source
        self._asker = Asker(message.user, message.place)
        self._commands = commands
        self._posted: PostedText[discord.Message] = PostedText(LIMIT, self._post, _edit, _remove)
        self._count = 0

    async def show(self, text: str) -> None:
        await self._posted.show(close_code_block(text))

    async def finish(self, text: str, receipts: Sequence[Receipt]) -> None:
        items = await self._commands.receipt_items(tuple(receipts[:MAX_RECEIPTS]), self._asker)
        lines = receipt_lines(items, len(receipts) - len(items))
        try:
            await self._posted.show(close_code_block(text) if lines else text, lines)
            if view := receipt_view(items, self._message.author.id):
                await self._posted.handles[-1].edit(view=view, suppress=True)
        except discord.Forbidden as error:
            log.warning("not allowed to answer in channel %s: %s", self._message.channel.id, error)

    async def _post(self, text: str) -> discord.Message:
        """Post a message. If Discord already knows its nonce, it returns the first message, which may have an
        older text."""
        reference: dict[str, Any] = {}
        if self._count == 0 and not self._asker.place.private:
            reference["reference"] = self._message.to_reference(fail_if_not_exists=False)
        nonce = f"{self._message.id}-{self._count}"
        sent = await self._message.channel.send(text, nonce=nonce, suppress_embeds=True, **reference)
        if sent.content.strip() != text.strip():
            await _edit(sent, text)
        self._count += 1
        return sent


async def _edit(message: discord.Message, text: str) -> None:
    try:
        await message.edit(content=text, suppress=True)  # without `suppress` an edit adds link previews
    except discord.NotFound as error:
        raise MessageGone from error


async def _remove(message: discord.Message) -> None:
    try:
        await message.delete()
    except discord.NotFound as error:
        raise MessageGone from error
