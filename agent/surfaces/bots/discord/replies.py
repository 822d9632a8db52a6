"""Replies on Discord: a typing indicator, and messages that are edited while the reply is generated."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import discord

from agent.surfaces.bots.answers import Asker
from agent.surfaces.bots.commands import Commands
from agent.surfaces.bots.discord.content import content_of
from agent.surfaces.bots.discord.rendering import (
    LIMIT,
    MAX_RECEIPTS,
    answer_text,
    answer_view,
    receipt_lines,
    receipt_view,
)
from agent.surfaces.bots.live_text import PostedText
from agent.surfaces.bots.platform import Content, IncomingMessage, ToForget
from agent.surfaces.bots.splitting import close_code_block
from memory.records import Decision, ForgetCandidate

log = logging.getLogger("hachi.discord")

_NO_HISTORY = 160002
"""Discord's code where the bot may write, but not reply, since it may not read the history."""


@dataclass(eq=False)
class DiscordPlatform:
    client: discord.Client
    commands: Commands
    busy_seconds: float = 8.0  # Discord shows typing for ten seconds

    async def read(self, message: IncomingMessage) -> Content:
        return content_of(message.source, self.client.user)

    async def set_busy(self, message: IncomingMessage, busy: bool) -> None:
        if busy:  # the reply ends the typing indicator
            await message.source.channel.typing()

    def reply_to(self, message: IncomingMessage) -> "DiscordReply":
        return DiscordReply(message, self.commands)


class DiscordReply:
    """In a channel the first message is a reply on Discord too. Receipts follow the text. What to forget
    is asked in a message of its own."""

    def __init__(self, message: IncomingMessage, commands: Commands) -> None:
        self._message: discord.Message = message.source
        self._asker = Asker(message.user, message.place)
        self._commands = commands
        self._posted: PostedText[discord.Message] = PostedText(
            LIMIT, self._post, _edit, discord.Message.delete, discord.NotFound
        )
        self._count = 0

    async def show(self, text: str) -> None:
        await self._posted.show(close_code_block(text))

    async def finish(self, text: str, new: Sequence[Decision] = (), forget: ToForget = None) -> None:
        items = await self._commands.receipts(new[:MAX_RECEIPTS], self._asker)
        lines = receipt_lines(items, len(new) - len(items))
        try:
            await self._posted.show(close_code_block(text) if lines else text, lines)
            if view := receipt_view(items, self._message.author.id):
                await self._posted.handles[-1].edit(view=view, suppress=True)
            if forget is not None:
                await self._ask_what_to_forget(forget)
        except discord.Forbidden as error:
            log.warning("not allowed to answer in channel %s: %s", self._message.channel.id, error)

    async def _ask_what_to_forget(self, candidates: Sequence[ForgetCandidate]) -> None:
        """Ask. Discord ignores a second message with this nonce."""
        question = await self._commands.forgetting.question(candidates, self._asker)
        view = answer_view(question, self._message.author.id) or discord.utils.MISSING
        nonce = f"{self._message.id}-ask"
        await self._message.channel.send(answer_text(question), view=view, nonce=nonce, suppress_embeds=True)

    async def _post(self, text: str) -> discord.Message:
        """Post a message. If Discord already has one with this nonce, it returns that, with its text."""
        options: dict[str, Any] = {"nonce": f"{self._message.id}-{self._count}", "suppress_embeds": True}
        if self._count == 0 and not self._asker.place.private:
            options["reference"] = self._message.to_reference(fail_if_not_exists=False)
        try:
            sent = await self._message.channel.send(text, **options)
        except discord.Forbidden as error:
            if error.code != _NO_HISTORY:
                raise
            del options["reference"]
            sent = await self._message.channel.send(text, **options)
        if sent.content.strip() != text.strip():
            await _edit(sent, text)
        self._count += 1
        return sent


async def _edit(message: discord.Message, text: str) -> None:
    await message.edit(content=text, suppress=True)  # without `suppress` an edit adds link previews
