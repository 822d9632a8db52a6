"""Replies on Slack: a stream in a thread, and an edited message elsewhere.

Slack ends a stream that is idle for a while, and some workspaces have no streams. The reply then edits its
message.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from agent.surfaces.bots.answers import Asker
from agent.surfaces.bots.commands import Commands
from agent.surfaces.bots.conversations import Content, IncomingMessage, ToForget
from agent.surfaces.bots.live_text import MessageGone, PostedText
from agent.surfaces.bots.slack.blocks import Block, answer_blocks, answer_text, receipt_blocks
from agent.surfaces.bots.slack.client import API_ERRORS
from agent.surfaces.bots.slack.content import Reader
from agent.surfaces.bots.slack.messages import SlackMessage
from agent.surfaces.bots.slack.mrkdwn import escape_markdown
from memory.records import Decision

log = logging.getLogger("hachi.slack")

LIMIT = 11_500
"""Characters of a message; Slack takes 12,000 of Markdown."""
STATUS = "is thinking…"
_GONE = frozenset({"message_not_found", "cant_update_message", "edit_window_closed"})
_NO_STREAMS = frozenset({"unknown_method", "method_not_supported_for_channel_type", "missing_scope"})
"""Errors of a workspace or an app without streams."""


@dataclass(eq=False)
class SlackPlatform:
    client: AsyncWebClient
    commands: Commands
    reader: Reader
    busy_seconds: float = 90.0  # Slack removes a status after two minutes
    has_streams: bool = True
    """Until Slack says otherwise."""

    async def read(self, message: IncomingMessage) -> Content:
        return await self.reader.read(message.source)

    async def set_busy(self, message: IncomingMessage, busy: bool) -> None:
        source: SlackMessage = message.source
        thread, status = source.thread or source.ts, STATUS if busy else ""
        await self.client.assistant_threads_setStatus(
            channel_id=source.channel, thread_ts=thread, status=status
        )

    def reply_to(self, message: IncomingMessage) -> "SlackReply":
        return SlackReply(self, message)


@dataclass(slots=True)
class _Posted:
    """A message of the bot as Slack shows it now."""

    ts: str
    text: str
    streaming: bool


class SlackReply:
    """A reply in Slack messages. Only the author sees its receipts and questions, in ephemeral messages."""

    def __init__(self, platform: SlackPlatform, message: IncomingMessage) -> None:
        self._platform = platform
        self._client = platform.client
        self._asker = Asker(message.user, message.place)
        self._source: SlackMessage = message.source
        self._posted = PostedText(LIMIT, self._post, self._edit, self._remove)
        self._finished = False

    async def show(self, text: str) -> None:
        await self._posted.show(escape_markdown(text))

    async def finish(self, text: str, new: Sequence[Decision] = (), forget: ToForget = None) -> None:
        await self.show(text)
        for posted in self._posted.handles:
            await self._end_stream(posted)
        if self._finished:
            return
        self._finished, commands = True, self._platform.commands
        if new:
            await self._show_author(*receipt_blocks(await commands.receipts(new, self._asker)))
        if forget is not None:
            question = await commands.forget_question(forget, self._asker)
            await self._show_author(answer_text(question), answer_blocks(question))

    async def _show_author(self, text: str, blocks: list[Block]) -> None:
        source = self._source
        try:
            await self._client.chat_postEphemeral(
                channel=source.channel, user=source.user, thread_ts=source.thread, text=text, blocks=blocks
            )
        except API_ERRORS as error:
            log.warning("cannot show receipts or what to forget: %s", error)

    async def _post(self, text: str) -> _Posted:
        if self._platform.has_streams and self._source.thread:
            with suppress(SlackApiError):
                return await self._start_stream(text, self._source.thread)
        answer = await self._client.chat_postMessage(
            channel=self._source.channel,
            thread_ts=self._source.thread,
            markdown_text=text,
            unfurl_links=False,  # Slack must not fetch addresses that a model wrote
            unfurl_media=False,
        )
        return _Posted(str(answer["ts"]), text, streaming=False)

    async def _start_stream(self, text: str, thread: str) -> _Posted:
        try:
            answer = await self._client.chat_startStream(
                channel=self._source.channel,
                thread_ts=thread,
                markdown_text=text,
                recipient_team_id=self._source.team,
                recipient_user_id=self._source.user,
            )
        except SlackApiError as error:
            if error.response.get("error") in _NO_STREAMS:
                self._platform.has_streams = False
            raise
        return _Posted(str(answer["ts"]), text, streaming=True)

    async def _edit(self, posted: _Posted, text: str) -> None:
        if not await self._append(posted, text):
            await self._end_stream(posted)
            with _raising_gone():
                await self._client.chat_update(channel=self._source.channel, ts=posted.ts, markdown_text=text)
        posted.text = text

    async def _append(self, posted: _Posted, text: str) -> bool:
        """Append to the stream. Returns False if none is open, or the text begins differently."""
        if not (posted.streaming and text.startswith(posted.text)):
            return False
        try:
            with _raising_gone():
                await self._client.chat_appendStream(
                    channel=self._source.channel, ts=posted.ts, markdown_text=text[len(posted.text) :]
                )
        except SlackApiError:
            posted.streaming = False  # Slack ended it
        return posted.streaming

    async def _end_stream(self, posted: _Posted) -> None:
        if posted.streaming:
            with suppress(SlackApiError):  # the stream ended already, or the message was deleted
                await self._client.chat_stopStream(channel=self._source.channel, ts=posted.ts)
            posted.streaming = False

    async def _remove(self, posted: _Posted) -> None:
        await self._end_stream(posted)
        with _raising_gone():
            await self._client.chat_delete(channel=self._source.channel, ts=posted.ts)


@contextmanager
def _raising_gone() -> Iterator[None]:
    try:
        yield
    except SlackApiError as error:
        if error.response.get("error") in _GONE:
            raise MessageGone from error
        raise
