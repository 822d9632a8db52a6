"""The Slack bot on Bolt, in Socket Mode or behind HTTP: messages become turns; commands and buttons
get answers.

Bolt acknowledges an event before its listener runs, so messages are received in a middleware: if that fails,
Slack sends the event again. Bolt does not recognise an event that comes twice; `Deliveries` does.
"""

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from aiohttp import web
from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.errors import SlackApiError
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.web.async_client import AsyncWebClient

from agent.companion import Companion
from agent.errors import HachiError, SettingsError
from agent.settings import Settings
from agent.surfaces.bots.commands import Commands
from agent.surfaces.bots.conversations import Conversations
from agent.surfaces.bots.platform_jobs import MOST_DMS, PlatformJobs, is_late, who_answers
from agent.surfaces.bots.slack.access import build_client, identify, is_final, open_socket, sdk_logger
from agent.surfaces.bots.slack.interactions import Interactions
from agent.surfaces.bots.slack.messages import (
    as_edited,
    deleted_message,
    parse_event,
    place_of,
    sent_at,
    source_of,
)
from agent.surfaces.bots.slack.platform import SlackPlatform
from agent.surfaces.signals import on_stop_signal

PATH = "/slack/events"
"""The HTTP path for events, commands and buttons."""
ASK_SECONDS = 60.0
"""After so long Slack is asked whether it still takes the tokens."""
PING_SECONDS = 5.0
"""Seconds after which a lost connection is detected and reopened."""
log = logging.getLogger("hachi.slack")
MOST_MESSAGES = 100
"""The newest messages of a channel, and the first since then of a thread below one of these, that are caught
up: Slack delivers an event again for some minutes only."""
_ANY = re.compile("")


class SlackBot:
    """`app` is Bolt's, for Socket Mode and for HTTP."""

    def __init__(self, pet: Companion, settings: Settings, heartbeat: Path | None = None) -> None:
        self.pet = pet
        self.heartbeat = heartbeat
        self.settings = settings
        self.client = build_client(settings)
        secret, logger = settings.slack_signing_secret, sdk_logger()
        self.app = AsyncApp(
            name=logger.name,  # Bolt sets the level of the logger of this name, with each event
            token=self.client.token,  # given a client instead, Bolt warns of SLACK_BOT_TOKEN
            logger=logger,
            signing_secret=secret.get_secret_value() if secret else "",
        )
        self.app.client.base_url = self.client.base_url
        self.app.client.retry_handlers = self.client.retry_handlers
        label, listening = pet.components.transcript.speakers.label, pet.people.places.listening
        self.platform = SlackPlatform(self.client, label, listening, pet.clock)
        self.conversations = Conversations(pet, self.platform)
        self.connection: Callable[[], object | None] = lambda: "HTTP"
        self.app.event("app_mention", middleware=[self._receive])(_acknowledge)
        self.app.event("message", middleware=[self._receive])(_acknowledge)
        self.app.event("agent_session_stopped")(self._stop)
        Interactions(self.app, Commands(pet), self.client, self.platform)
        # without a listener Bolt acknowledges nothing, and Slack repeats the event
        self.app.event(_ANY)(_acknowledge)

    async def _receive(self, event: dict[str, Any], context: Any, next: Callable[[], Awaitable[Any]]) -> None:
        team = context.team_id or context.enterprise_id
        try:
            await self._come(event, team)
        except Exception as error:  # Slack sends it again for some minutes
            if message := parse_event(as_edited(event), team, self.platform.bot, flat=False):
                self.conversations.note_failure([message], error)
            raise
        await next()

    async def _come(self, event: Mapping[str, Any], team: str, *, late: bool = False) -> None:
        """Queue a message that is to be answered, let an edit replace it, or forget one that was deleted.
        Both events of a mention, and repeated ones, have the same id."""
        if deleted := deleted_message(event, team):
            await self.conversations.deleted(deleted)
        listening = await self.pet.people.places.listening(place_of(team, event["channel"]))
        flat = listening == "everything"
        message = parse_event(as_edited(event), team, self.platform.bot, flat=flat)
        if message is not None:
            come = self.conversations.edited if message.version else self.conversations.receive
            await come(replace(message, late=late), listening)

    def jobs(self, team: str) -> PlatformJobs:
        source, catch_up = source_of(team), partial(self._catch_up, team)
        return PlatformJobs(self.conversations, source, catch_up, lambda: self.connection(), self.heartbeat)

    def follow(self, client: SocketModeClient) -> None:
        """Take the client's session, once Slack has greeted it, for the connection."""
        greeted: Any = None

        async def greet(_: Any, message: Mapping[str, Any], raw: str | None) -> None:
            nonlocal greeted
            if message.get("type") == "hello":
                greeted = client.current_session

        def connection() -> object | None:
            session: Any = client.current_session
            is_lost = session is None or session is not greeted or session.closed or client.stale
            return None if is_lost else session

        client.message_listeners.append(greet)
        self.connection = connection

    async def _catch_up(self, team: str, since: datetime) -> None:
        """Receive what was written since the bot was last there."""
        now = self.pet.clock()
        private = await self.pet.conversations.deliveries.private_channels(source_of(team), MOST_DMS)
        async for event in missed_events(self.client, since, private):
            try:
                await self._come(event, team, late=is_late(sent_at(event["ts"]), now))
            except Exception as error:
                log.warning("message %s of %s is not caught up: %s", event["ts"], event["channel"], error)

    async def _stop(self, event: Mapping[str, Any]) -> None:
        """End the replies in a thread: somebody pressed Slack's button to stop."""
        thread = (event["channel"], event.get("thread_ts"))
        self.conversations.interrupt(lambda message: message.source.session == thread)


async def _acknowledge() -> None:
    """Do nothing: Bolt acknowledges the event before it calls this."""


async def missed_events(
    client: AsyncWebClient, since: datetime, private: Sequence[str]
) -> AsyncIterator[Mapping[str, Any]]:
    """Yield a `message` event for each message that is newer than `since`, in the channels that the bot is in
    and in the `private` ones; those of a channel in order. Raises what may be over at the next try."""
    channels = list(private)
    kinds = "public_channel,private_channel,mpim"
    try:
        async for page in await client.users_conversations(types=kinds, exclude_archived=True, limit=200):
            channels += [channel["id"] for channel in page["channels"]]
    except SlackApiError as error:
        if not is_final(error):
            raise
        log.warning("what was written in channels meanwhile is not read: %s", error)
    for channel in channels:
        try:
            lines = await _lines(client, channel, since.timestamp())
        except SlackApiError as error:
            if not is_final(error):
                raise
            log.warning("what was written in channel %s meanwhile is not read: %s", channel, error)
            continue
        for line in sorted(lines, key=lambda line: str(line["ts"])):
            yield {**line, "type": "message", "channel": channel}


async def _lines(client: AsyncWebClient, channel: str, since: float) -> list[Mapping[str, Any]]:
    page = await client.conversations_history(channel=channel, limit=MOST_MESSAGES)
    lines = {line["ts"]: line for line in page["messages"]}
    for line in page["messages"]:
        if float(line.get("latest_reply") or 0) > since:
            thread = await client.conversations_replies(
                channel=channel, ts=line["ts"], oldest=str(since), limit=MOST_MESSAGES
            )
            lines |= {reply["ts"]: reply for reply in thread["messages"]}
    return [line for line in lines.values() if float(line["ts"]) > since]


async def run(
    pet: Companion,
    settings: Settings,
    say: Callable[[str], None],
    http: tuple[str, int] | None = None,
    heartbeat: Path | None = None,
) -> None:
    """Run until SIGTERM or Ctrl-C: by HTTP at this address and port, or else in Socket Mode. Raises
    SettingsError if Slack rejects a token, HachiError if Slack cannot be reached."""
    bot, stop = SlackBot(pet, settings, heartbeat), asyncio.Event()
    with on_stop_signal(stop.set):
        try:
            async with listening(bot, http) as where:
                say(f"{where}; {who_answers(settings)}; Ctrl-C stops")
                refused = asyncio.create_task(_refused(bot), name="hachi tokens of Slack")
                refused.add_done_callback(lambda _: stop.set())
                await stop.wait()
                refused.cancel()
        finally:
            await bot.conversations.stop()
    if not refused.cancelled():
        raise refused.result()


async def _refused(bot: SlackBot) -> SettingsError:
    """Return what is wrong once Slack refuses a token that it took before, of which no event tells."""
    while True:
        await asyncio.sleep(ASK_SECONDS)
        try:
            await identify(bot.client)
            if bot.connection() is None:
                await open_socket(bot.client, bot.settings)
        except SettingsError as error:
            return error
        except HachiError as error:
            log.warning("%s", error)


@asynccontextmanager
async def listening(bot: SlackBot, http: tuple[str, int] | None = None) -> AsyncIterator[str]:
    """Receive events inside the block. Yields a line that says how."""
    me = await identify(bot.client)
    bot.platform.bot = str(me.get("user_id"))
    name, team = f"on Slack in {me.get('team')} as {me.get('user')}", str(me.get("team_id"))
    async with AsyncExitStack() as leaving:
        where = await leaving.enter_async_context(_by_http(bot, *http) if http else _by_socket(bot))
        await leaving.enter_async_context(bot.jobs(team).running())
        yield f"{name}, {where}"


@asynccontextmanager
async def _by_socket(bot: SlackBot) -> AsyncIterator[str]:
    token = bot.settings.slack_app_token
    secret = token.get_secret_value() if token else ""
    handler = AsyncSocketModeHandler(bot.app, secret, ping_interval=PING_SECONDS)
    bot.follow(handler.client)
    try:
        handler.client.wss_uri = await open_socket(bot.client, bot.settings)
        await handler.connect_async()  # type: ignore[no-untyped-call]
        yield "in Socket Mode"
    finally:
        await handler.close_async()  # type: ignore[no-untyped-call]


@asynccontextmanager
async def _by_http(bot: SlackBot, host: str, port: int) -> AsyncIterator[str]:
    runner = web.AppRunner(bot.app.web_app(PATH))
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        address, bound_port, *_ = runner.addresses[0]
        yield f"waiting for events at http://{address}:{bound_port}{PATH}"
    finally:
        await runner.cleanup()
