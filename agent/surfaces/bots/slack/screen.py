"""Where a reply appears in Slack: a stream in a thread, elsewhere a message that is edited.

Slack ends a stream that nobody writes to for a while, and not every workspace has streams: then the message
is edited as well.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from agent.surfaces.bots.commands import Asker, Commands
from agent.surfaces.bots.posted import Gone, PostedText
from agent.surfaces.bots.receipts import Receipt
from agent.surfaces.bots.slack.blocks import receipt_blocks
from agent.surfaces.bots.slack.markup import markdown
from agent.surfaces.bots.slack.people import FAULTS
from agent.surfaces.bots.turns import Said

log = logging.getLogger("hachi.slack")

LONGEST = 11_500
"""Characters of a message; Slack takes 12,000 of Markdown."""
STATUS = "is thinking…"
STATUS_EVERY = 90.0
"""Seconds; Slack takes a status away after two minutes."""
STATUS_SECONDS = 5.0
"""That setting one may take."""
_GONE = frozenset({"message_not_found", "cant_update_message", "edit_window_closed"})
_NO_STREAMS = frozenset({"unknown_method", "method_not_supported_for_channel_type", "missing_scope"})
"""What Slack says where a workspace or an app has no streams at all."""


@dataclass(frozen=True, slots=True)
class Where:
    """What it takes to answer a message."""

    team: str
    channel: str
    user: str
    ts: str
    thread: str | None
    """The thread in which to answer."""


@dataclass(slots=True)
class _Line:
    """A message of ours as it stands there."""

    ts: str
    text: str
    streaming: bool


class Stage:
    """What Slack brings to a turn."""

    def __init__(self, client: AsyncWebClient, commands: Commands) -> None:
        self.client = client
        self.commands = commands
        self.streams = True
        """Whether streams are worth trying."""

    @asynccontextmanager
    async def busy(self, said: Said) -> AsyncIterator[None]:
        where: Where = said.where
        showing = asyncio.create_task(self._keep_status(where), name="hachi slack status")
        try:
            yield
        finally:
            showing.cancel()
            await asyncio.gather(showing, return_exceptions=True)
            await self._status(where, "")

    async def _keep_status(self, where: Where) -> None:
        while True:
            await self._status(where, STATUS)
            await asyncio.sleep(STATUS_EVERY)

    async def _status(self, where: Where, status: str) -> None:
        thread = where.thread or where.ts
        with suppress(*FAULTS):  # it is an extra, and no reply waits long for it
            async with asyncio.timeout(STATUS_SECONDS):
                await self.client.assistant_threads_setStatus(
                    channel_id=where.channel, thread_ts=thread, status=status
                )

    def screen(self, said: Said) -> "ReplyScreen":
        return ReplyScreen(self, said)


class ReplyScreen:
    def __init__(self, stage: Stage, said: Said) -> None:
        self._stage = stage
        self._client = stage.client
        self._said = said
        self._where: Where = said.where
        self._posted = PostedText(LONGEST, self._post, self._edit, self._remove)
        self._told = False

    async def show(self, text: str) -> None:
        await self._posted.show(markdown(text))

    async def end(self, text: str, receipts: Sequence[Receipt]) -> None:
        await self.show(text)
        for line in self._posted.handles:
            await self._stop(line)
        if receipts and not self._told:
            self._told = True
            await self._tell(tuple(receipts))

    async def _tell(self, receipts: tuple[Receipt, ...]) -> None:
        """To the person alone what was remembered. That it cannot be told is no reason to answer again."""
        asker = Asker(self._said.user, self._said.place)
        text, blocks = receipt_blocks(await self._stage.commands.receipt_items(receipts, asker))
        where = self._where
        try:
            await self._client.chat_postEphemeral(
                channel=where.channel, user=where.user, thread_ts=where.thread, text=text, blocks=blocks
            )
        except FAULTS as error:
            log.warning("what was remembered is not told: %s", error)

    async def _post(self, text: str) -> _Line:
        if self._stage.streams and self._where.thread:
            with suppress(SlackApiError):
                return await self._start_stream(text, self._where.thread)
        answer = await self._client.chat_postMessage(
            channel=self._where.channel,
            thread_ts=self._where.thread,
            markdown_text=text,
            unfurl_links=False,  # what a model writes is not to fetch anything
            unfurl_media=False,
        )
        return _Line(str(answer["ts"]), text, streaming=False)

    async def _start_stream(self, text: str, thread: str) -> _Line:
        where = self._where
        try:
            answer = await self._client.chat_startStream(
                channel=where.channel,
                thread_ts=thread,
                markdown_text=text,
                recipient_team_id=where.team,
                recipient_user_id=where.user,
            )
        except SlackApiError as error:
            if error.response.get("error") in _NO_STREAMS:
                self._stage.streams = False
            raise
        return _Line(str(answer["ts"]), text, streaming=True)

    async def _edit(self, line: _Line, text: str) -> None:
        if line.streaming and text.startswith(line.text):
            try:
                await self._client.chat_appendStream(
                    channel=self._where.channel, ts=line.ts, markdown_text=text[len(line.text) :]
                )
            except SlackApiError as error:
                _raise_gone(error)
                line.streaming = False  # it has ended meanwhile
            else:
                line.text = text
                return
        await self._stop(line)
        try:
            await self._client.chat_update(channel=self._where.channel, ts=line.ts, markdown_text=text)
        except SlackApiError as error:
            _raise_gone(error)
            raise
        line.text = text

    async def _stop(self, line: _Line) -> None:
        if line.streaming:
            with suppress(SlackApiError):  # it has ended, or is gone
                await self._client.chat_stopStream(channel=self._where.channel, ts=line.ts)
            line.streaming = False

    async def _remove(self, line: _Line) -> None:
        await self._stop(line)
        try:
            await self._client.chat_delete(channel=self._where.channel, ts=line.ts)
        except SlackApiError as error:
            _raise_gone(error)
            raise


def _raise_gone(error: SlackApiError) -> None:
    if error.response.get("error") in _GONE:
        raise Gone from error
