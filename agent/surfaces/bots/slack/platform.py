"""Replies and reminders on Slack: messages that are edited while the reply is generated."""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial

from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from agent.surfaces.bots.answers import Answer, Item
from agent.surfaces.bots.platform import IncomingMessage
from agent.surfaces.bots.slack.access import API_ERRORS, is_final
from agent.surfaces.bots.slack.messages import Reader, Source, origin_of
from agent.surfaces.bots.slack.rendering import answer_blocks, answer_text, escape_markdown, markdown_blocks
from agent.surfaces.bots.streamed_reply import Closed, Gone, Refused
from memory.audience import Place

log = logging.getLogger("hachi.slack")

LIMIT = 11_500
"""Characters of a message; Slack takes 12,000 of Markdown."""
REACTION = "eyes"
BUSY_SECONDS = 90.0
"""Slack removes a status after two minutes."""
_GONE = ("message_not_found", "not_in_channel", "channel_not_found", "is_archived", "restricted_action")
"""How the errors begin where a message is gone, or the bot may not write."""
_CLOSED = frozenset({"cant_update_message", "edit_window_closed"})
"""Errors of a message that may not be edited, or not any more."""


@dataclass(eq=False)
class SlackPlatform(Reader):
    edit_seconds: float = 2.0
    """Slack guarantees 50 edits a minute for all conversations of a workspace."""
    _may_react: bool = True

    async def show_busy(self, message: IncomingMessage) -> None:
        """Show a status in the thread of the answer, with a button to stop; a reaction instead on a message
        of a channel without a thread, or where Slack shows no status."""
        source: Source = message.source
        reacted = False
        try:
            reacted = not (message.place.private or source.thread) and await self._react(source)
            await self._show_status(source)
        except API_ERRORS as error:
            log.info("Slack shows no status: %s", error)
            reacted = reacted or await self._react(source)
            await asyncio.Event().wait()
        finally:
            if reacted:
                with suppress(*API_ERRORS):
                    await self.client.reactions_remove(
                        channel=source.channel, timestamp=source.ts, name=REACTION
                    )

    async def _react(self, source: Source) -> bool:
        """Return whether a reaction of ours is there. Without the scope for it none is tried again."""
        if not self._may_react:
            return False
        try:
            await self.client.reactions_add(channel=source.channel, timestamp=source.ts, name=REACTION)
        except API_ERRORS as error:
            code = error.response.get("error") if isinstance(error, SlackApiError) else None
            self._may_react = code != "missing_scope"
            log.info("no reaction is shown: %s", error)
            return code == "already_reacted"
        return True

    async def _show_status(self, source: Source) -> None:
        channel, thread = source.session
        show = partial(self.client.agents_sessions_setStatus, channel_id=channel, thread_ts=thread)
        try:
            while True:
                await show(status="processing")
                await asyncio.sleep(BUSY_SECONDS)
        finally:
            await show(status="active")

    async def write(self, user: str, place: Place, answer: Answer, asked_in: str = "") -> str:
        """Write to a person, mentioning them if it is in a channel."""
        id, channel = user.rpartition(":")[2], "".join(place.path[2:3])
        said_in, ts = (*asked_in.split(":"), *[""] * 4)[2:4]
        if place.path and not channel:
            return ""
        try:
            channel = channel or (await self.client.conversations_open(users=id))["channel"]["id"]
            thread = await self.thread_of(channel, ts) if said_in == channel else None
            to = "" if place.private else id
            text, blocks = answer_text(answer), answer_blocks(answer, to=to)
            sent = await self.client.chat_postMessage(
                channel=channel, text=text, blocks=blocks, thread_ts=thread
            )
        except SlackApiError as error:
            log.warning("cannot write to %s in %s: %s", user, place, error.response.get("error"))
            return ""
        return f"{user.rpartition(':')[0]}:{channel}:{sent['ts']}"

    def reply_to(self, message: IncomingMessage) -> "SlackPosts":
        return SlackPosts(self.client, message.source)

    def posts_at(self, origin: str) -> "SlackPosts":
        _, team, channel, ts = origin.split(":")
        return SlackPosts(self.client, Source(team, channel, "", ts, ""))


@dataclass
class SlackPosts:
    """Receipts and questions are messages that only the author sees."""

    client: AsyncWebClient
    source: Source
    """Of `posts_at`, nobody's: nothing is posted."""
    limit: int = LIMIT

    def origin(self, handle: str) -> str:
        return origin_of(self.source.team, self.source.channel, handle)

    def handle(self, origin: str) -> str:
        return origin.rpartition(":")[2]

    def markup(self, text: str) -> str:
        return escape_markdown(text)

    async def post(self, text: str, *, final: bool) -> str:
        source = self.source
        with _refusals():
            posted = await self.client.chat_postMessage(
                channel=source.channel,
                thread_ts=source.reply_in,
                text=text,
                blocks=markdown_blocks(text),
                unfurl_links=False,  # Slack must not fetch addresses that a model wrote
                unfurl_media=False,
            )
        return str(posted["ts"])

    async def edit(self, handle: str, text: str) -> None:
        with _refusals():
            await self.client.chat_update(
                channel=self.source.channel, ts=handle, text=text, blocks=markdown_blocks(text)
            )

    async def remove(self, handle: str) -> None:
        with suppress(Gone), _refusals():
            await self.client.chat_delete(channel=self.source.channel, ts=handle)

    def footer(self, receipts: Sequence[Item]) -> str:
        return ""

    async def conclude(self, handles: Sequence[str], receipts: Sequence[Item]) -> None:
        if receipts:
            await self.ask(Answer("Remembered:", tuple(receipts)))

    async def ask(self, question: Answer) -> None:
        source = self.source
        text, blocks = answer_text(question), answer_blocks(question)
        try:
            await self.client.chat_postEphemeral(
                channel=source.channel, user=source.user, thread_ts=source.reply_in, text=text, blocks=blocks
            )
        except API_ERRORS as error:
            log.warning("cannot show receipts or what to forget: %s", error)


@contextmanager
def _refusals() -> Iterator[None]:
    """Raise Gone, Closed or Refused where Slack refuses a call for good."""
    try:
        yield
    except SlackApiError as error:
        code = str(error.response.get("error"))
        if code.startswith(_GONE):
            raise Gone from error
        if code in _CLOSED:
            raise Closed from error
        if is_final(error):
            raise Refused from error
        raise
