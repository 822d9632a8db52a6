"""Replies on Slack: a stream in a thread, and an edited message elsewhere.

Slack ends a stream that is idle for a while, and some workspaces have no streams. The reply then edits its
message.

Slack limits how often a method is called in a workspace. While a reply is generated, calls that find no room
are left out. Its final text never waits for that: where Slack refuses an edit, the text is posted anew.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from agent.surfaces.bots.answers import Asker
from agent.surfaces.bots.commands import Commands
from agent.surfaces.bots.live_text import MessageGone, NotNow, PostedText, Stopped
from agent.surfaces.bots.platform import Content, IncomingMessage, ToForget
from agent.surfaces.bots.slack.client import API_ERRORS, Pace, without_waiting
from agent.surfaces.bots.slack.content import Reader
from agent.surfaces.bots.slack.messages import SlackMessage
from agent.surfaces.bots.slack.mrkdwn import escape_markdown
from agent.surfaces.bots.slack.rendering import Block, answer_blocks, answer_text, receipt_blocks
from memory.records import Decision

log = logging.getLogger("hachi.slack")

LIMIT = 11_500
"""Characters of a message; Slack takes 12,000 of Markdown."""
STATUS = "is thinking…"
_GONE = frozenset({"message_not_found", "cant_update_message", "edit_window_closed"})
_STOPPED = "stopped_by_user"
"""The error of a call about a stream that a person stopped."""
_STREAMING = "streaming_state_conflict"
"""The error of an edit while the message's stream is open."""
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
    pace: Pace = field(default_factory=Pace)
    _ending: set["asyncio.Task[None]"] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.hasty = without_waiting(self.client)

    async def read(self, message: IncomingMessage) -> Content:
        return await self.reader.read(message.source)

    async def set_busy(self, message: IncomingMessage, busy: bool) -> None:
        """Slack shows a button to stop with it. An app that is none of Slack's agents has a status only."""
        channel, thread = message.source.session
        try:
            await self.client.agents_sessions_setStatus(
                channel_id=channel, thread_ts=thread, status="processing" if busy else "active"
            )
        except SlackApiError:
            await self.client.assistant_threads_setStatus(
                channel_id=channel, thread_ts=thread, status=STATUS if busy else ""
            )

    def reply_to(self, message: IncomingMessage) -> "SlackReply":
        return SlackReply(self, message)

    def end_stream_later(self, channel: str, ts: str) -> None:
        """End a stream as soon as Slack takes the call. Nobody waits for it: its text is there."""

        async def end() -> None:
            with suppress(*API_ERRORS):
                await self.client.chat_stopStream(channel=channel, ts=ts)

        ending = asyncio.create_task(end(), name=f"hachi ends stream {ts}")
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)


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
        self._final = self._finished = False
        self._outdated: list[_Posted] = []
        """Messages that Slack let nobody edit when the text was final, and that were posted anew."""

    async def show(self, text: str) -> None:
        await self._posted.show(escape_markdown(text, final=self._final))

    async def finish(self, text: str, new: Sequence[Decision] = (), forget: ToForget = None) -> None:
        self._final = True
        await self.show(text)
        for posted in self._posted.handles:
            await self._end_stream(posted)
        while self._outdated:
            with suppress(MessageGone):
                await self._remove(self._outdated[-1])
            self._outdated.pop()
        if self._finished:
            return
        self._finished, commands = True, self._platform.commands
        if new:
            await self._show_author(*receipt_blocks(await commands.receipts(new, self._asker)))
        if forget is not None:
            question = await commands.forgetting.question(forget, self._asker)
            await self._show_author(answer_text(question), answer_blocks(question))

    async def _show_author(self, text: str, blocks: list[Block]) -> None:
        source = self._source
        try:
            await self._client.chat_postEphemeral(
                channel=source.channel, user=source.user, thread_ts=source.thread, text=text, blocks=blocks
            )
        except API_ERRORS as error:
            log.warning("cannot show receipts or what to forget: %s", error)

    @property
    def _caller(self) -> AsyncWebClient:
        """The client for calls that the final text cannot do without."""
        return self._client if self._final else self._platform.hasty

    async def _call(self, call: Callable[..., Awaitable[AsyncSlackResponse]], **arguments: Any) -> str:
        """Call Slack about the message and return its `ts`. Raises NotNow if there is no room for the call
        and the text is not final."""
        pace, method = self._platform.pace, call.__name__
        if not pace.take(method, self._source.origin, needed=self._final):
            raise NotNow
        try:
            return str((await call(channel=self._source.channel, **arguments))["ts"])
        except SlackApiError as error:
            if error.response.status_code == 429:
                pace.pause(method, float(error.response.headers.get("Retry-After", 1)))
                if not self._final:
                    raise NotNow from error
            raise

    async def _post(self, text: str) -> _Posted:
        if self._platform.has_streams and self._source.thread:
            with suppress(SlackApiError, NotNow):
                return await self._start_stream(text, self._source.thread)
        ts = await self._call(
            self._caller.chat_postMessage,
            thread_ts=self._source.thread,
            markdown_text=text,
            unfurl_links=False,  # Slack must not fetch addresses that a model wrote
            unfurl_media=False,
        )
        return _Posted(ts, text, streaming=False)

    async def _start_stream(self, text: str, thread: str) -> _Posted:
        try:
            ts = await self._call(
                self._platform.hasty.chat_startStream,
                thread_ts=thread,
                markdown_text=text,
                recipient_team_id=self._source.team,
                recipient_user_id=self._source.user,
            )
        except SlackApiError as error:
            if error.response.get("error") in _NO_STREAMS:
                self._platform.has_streams = False
            raise
        return _Posted(ts, text, streaming=True)

    async def _edit(self, posted: _Posted, text: str) -> None:
        if not await self._append(posted, text):
            await self._end_stream(posted)
            try:
                with _raising_gone():
                    await self._call(self._platform.hasty.chat_update, ts=posted.ts, markdown_text=text)
            except SlackApiError as error:
                if error.response.status_code != 429 and error.response.get("error") != _STREAMING:
                    raise
                self._outdated.append(posted)
                raise MessageGone from error
        posted.text = text

    async def _append(self, posted: _Posted, text: str) -> bool:
        """Append to the stream. Returns False if none is open, or the text begins differently."""
        if not (posted.streaming and text.startswith(posted.text)):
            return False
        new = text[len(posted.text) :]
        try:
            with _raising_gone():
                await self._call(self._platform.hasty.chat_appendStream, ts=posted.ts, markdown_text=new)
        except SlackApiError as error:
            if error.response.get("error") == _STOPPED and not self._final:
                raise Stopped from error
            return False  # Slack ended it, or takes no more at present
        return True

    async def _end_stream(self, posted: _Posted) -> None:
        if not posted.streaming:
            return
        try:
            await self._call(self._platform.hasty.chat_stopStream, ts=posted.ts)
        except SlackApiError as error:  # the stream ended already, or the message was deleted, but for this:
            if error.response.status_code == 429:
                self._platform.end_stream_later(self._source.channel, posted.ts)
        posted.streaming = False

    async def _remove(self, posted: _Posted) -> None:
        await self._end_stream(posted)
        with _raising_gone():
            await self._call(self._caller.chat_delete, ts=posted.ts)


@contextmanager
def _raising_gone() -> Iterator[None]:
    try:
        yield
    except SlackApiError as error:
        if error.response.get("error") in _GONE:
            raise MessageGone from error
        raise
