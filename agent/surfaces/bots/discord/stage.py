"""What Discord brings to a turn: typing, and messages in which the reply appears."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import discord

from agent.surfaces.bots.commands import Asker, Commands
from agent.surfaces.bots.discord.rendering import LIMIT, RECEIPTS, receipt_lines, receipt_view
from agent.surfaces.bots.posted import Gone, PostedText
from agent.surfaces.bots.receipts import Receipt
from agent.surfaces.bots.splitting import closed
from agent.surfaces.bots.turns import Said

log = logging.getLogger("hachi.discord")

TYPING_SECONDS = 8
"""Discord shows typing for ten."""
FAULTS = (discord.DiscordException, OSError)


class DiscordStage:
    def __init__(self, commands: Commands) -> None:
        self._commands = commands

    @asynccontextmanager
    async def busy(self, said: Said) -> AsyncIterator[None]:
        typing = asyncio.create_task(_typing(said.where.channel))
        try:
            yield
        finally:
            typing.cancel()
            await asyncio.gather(typing, return_exceptions=True)

    def screen(self, said: Said) -> "DiscordScreen":
        return DiscordScreen(said, self._commands)


async def _typing(channel: discord.abc.Messageable) -> None:
    while True:
        try:
            await channel.typing()
        except FAULTS as error:
            log.info("no typing is shown: %s", error)
        await asyncio.sleep(TYPING_SECONDS)


class DiscordScreen:
    """A reply to one message: a text in as many messages as it takes, the first a reply on Discord too."""

    def __init__(self, said: Said, commands: Commands) -> None:
        self._message: discord.Message = said.where
        self._asker = Asker(said.user, said.place)
        self._commands = commands
        self._posted: PostedText[discord.Message] = PostedText(LIMIT, self._post, _edit, _remove)
        self._count = 0

    async def show(self, text: str) -> None:
        await self._posted.show(closed(text))

    async def end(self, text: str, receipts: Sequence[Receipt]) -> None:
        items = await self._commands.receipt_items(tuple(receipts[:RECEIPTS]), self._asker)
        lines = receipt_lines(items, len(receipts) - len(items))
        try:
            await self._posted.show(closed(text) if lines else text, lines)
            if view := receipt_view(items, self._message.author.id):
                await self._posted.handles[-1].edit(view=view, suppress=True)
        except discord.Forbidden as error:
            log.warning("not allowed to answer in channel %s: %s", self._message.channel.id, error)

    async def _post(self, text: str) -> discord.Message:
        """By its nonce Discord knows one that is sent again, and gives back the first, with its text then."""
        answering: dict[str, Any] = {}
        if self._count == 0 and not self._asker.place.private:
            answering["reference"] = self._message.to_reference(fail_if_not_exists=False)
        nonce = f"{self._message.id}-{self._count}"
        sent = await self._message.channel.send(text, nonce=nonce, suppress_embeds=True, **answering)
        if sent.content.strip() != text.strip():
            await _edit(sent, text)
        self._count += 1
        return sent


async def _edit(message: discord.Message, text: str) -> None:
    try:
        await message.edit(content=text, suppress=True)  # else an edit brings the previews of links
    except discord.NotFound as error:
        raise Gone from error


async def _remove(message: discord.Message) -> None:
    try:
        await message.delete()
    except discord.NotFound as error:
        raise Gone from error
