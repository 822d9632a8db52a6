"""Post, edit and conclude replies and reminders on Discord, with its typing indicator."""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import discord
from discord.utils import MISSING

from agent.surfaces.bots.answers import Answer, Item
from agent.surfaces.bots.discord.messages import Reader, channel_id, ids_of, origin_of, user_id
from agent.surfaces.bots.discord.rendering import (
    LIMIT,
    answer_parts,
    answer_text,
    answer_view,
    receipt_lines,
    receipt_view,
    stop_view,
)
from agent.surfaces.bots.platform import IncomingMessage
from agent.surfaces.bots.streamed_reply import Gone, Refused
from memory.audience import Place

log = logging.getLogger("hachi.discord")

_NO_HISTORY = 160002
"""Discord's code where the bot may write, but not reply, since it may not read the history."""


@dataclass(eq=False)
class DiscordPlatform(Reader):
    edit_seconds: float = 1.0

    async def show_busy(self, message: IncomingMessage) -> None:
        async with message.source.channel.typing():
            await asyncio.Event().wait()

    async def write(self, user: str, place: Place, answer: Answer, asked_in: str = "") -> str:
        """Write to a person, pinging them if it is in a channel; a thread is a place here."""
        id, channel = user_id(user), channel_id(place)
        if id is None or (channel is None and not place.private):
            return ""
        (*before, text), person = answer_parts(answer), discord.Object(id)
        options: dict[str, Any] = {"suppress_embeds": True, "view": answer_view(answer, id) or MISSING}
        try:
            target: Any
            if channel is None:
                target = await self.client.create_dm(person)
            else:
                target = self.client.get_channel(channel) or await self.client.fetch_channel(channel)
                mentions = discord.AllowedMentions(everyone=False, roles=False, users=[person])
                text, options = f"<@{id}> {text}", options | {"allowed_mentions": mentions}
            for part in before:
                await target.send(part, suppress_embeds=True)
            sent = await target.send(text, **options)
        except (discord.Forbidden, discord.NotFound) as error:
            log.warning("cannot write to %s in %s: %s", user, place, error)
            return ""
        return origin_of(sent.channel.id, sent.id)

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

    def markup(self, text: str) -> str:
        return text

    async def post(self, text: str, *, final: bool) -> discord.Message:
        """Post a message, or edit the one that Discord already has with this nonce."""
        options: dict[str, Any] = {"nonce": f"{self.source.id}-{self._count}", "suppress_embeds": True}
        if self._count == 0 and self.is_reply:
            options["reference"] = self.source.to_reference(fail_if_not_exists=False)
        if self._count == 0 and not final:
            options["view"] = stop_view(self.user, self.source.id)
        with _refusals():
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
        """Edit a message. One of an earlier process loses its buttons, which belong to the old text."""
        message, changes = handle, {}
        with _refusals():
            try:
                if not isinstance(handle, discord.Message):  # which is partial too
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
        with _refusals():
            if self._stop_on and (not view or self._stop_on is not handles[-1]):
                await self._stop_on.edit(view=None, suppress=True)
            if view:
                last = handles[-1]
                last = last if isinstance(last, discord.Message) else await last.fetch()
                await last.edit(view=view, suppress=True)

    async def ask(self, question: Answer) -> discord.Message:
        view = answer_view(question, self.user) or MISSING
        options: dict[str, Any] = {"nonce": f"{self.source.id}-ask", "view": view, "suppress_embeds": True}
        with _refusals():
            sent: discord.Message = await self.channel.send(answer_text(question), **options)
        return sent


@contextmanager
def _refusals() -> Iterator[None]:
    """Raise Refused where Discord refuses a call for good."""
    try:
        yield
    except discord.HTTPException as error:
        if 400 <= error.status < 500 and error.status != 429:
            raise Refused from error
        raise
