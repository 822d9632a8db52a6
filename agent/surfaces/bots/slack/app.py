"""Hachi on Slack: what is written there becomes turns, and commands, buttons and the App Home answers.

Bolt acknowledges an event before its listener runs; what must not be lost is done in the middleware before
that, so that Slack sends the event again where it fails. Bolt does not tell what comes twice; we do.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from slack_bolt.async_app import AsyncApp
from slack_sdk.http_retry.builtin_async_handlers import (
    AsyncConnectionErrorRetryHandler,
    AsyncRateLimitErrorRetryHandler,
)
from slack_sdk.web.async_client import AsyncWebClient

from agent.settings import Settings
from agent.surfaces.bots.commands import Commands
from agent.surfaces.bots.slack.asking import Asking
from agent.surfaces.bots.slack.events import Written, conversation_of, written_in
from agent.surfaces.bots.slack.files import read_files
from agent.surfaces.bots.slack.markup import mentioned, plain
from agent.surfaces.bots.slack.people import People
from agent.surfaces.bots.slack.screen import Stage, Where
from agent.surfaces.bots.turns import GRACE, Said, Turns
from memory.audience import Audience
from memory.people.places import Listening

if TYPE_CHECKING:
    from agent.companion import Companion

log = logging.getLogger("hachi.slack")

SOURCE = "slack"
RETRIES = 3
"""How often a call is made again that was one too many, each time after as long as Slack says."""
_EVERYTHING = re.compile("")

Next = Callable[[], Awaitable[Any]]


def build_app(pet: "Companion", settings: Settings) -> AsyncApp:
    """Bolt's app, for Socket Mode and for HTTP. Its bot is `HachiOnSlack`."""
    return HachiOnSlack(pet, settings).app


def build_client(settings: Settings) -> AsyncWebClient:
    """The client of Slack's API, with the bot's token."""
    token = settings.slack_bot_token.get_secret_value() if settings.slack_bot_token else None
    base_url = settings.slack_api_url or AsyncWebClient.BASE_URL
    client = AsyncWebClient(token=token, base_url=f"{base_url.rstrip('/')}/", logger=_sdk_log())
    client.retry_handlers = [
        AsyncConnectionErrorRetryHandler(),
        AsyncRateLimitErrorRetryHandler(max_retry_count=RETRIES),
    ]
    return client


class HachiOnSlack:
    def __init__(self, pet: "Companion", settings: Settings) -> None:
        self.pet = pet
        self.settings = settings
        self.client = build_client(settings)
        secret = settings.slack_signing_secret
        self.app = AsyncApp(
            name="hachi",
            token=self.client.token,  # given a client, Bolt complains of SLACK_BOT_TOKEN in the environment
            logger=_sdk_log(),
            signing_secret=secret.get_secret_value() if secret else "",
        )
        self.app.client.base_url = self.client.base_url
        self.app.client.retry_handlers = self.client.retry_handlers
        commands = Commands(pet)
        self.turns = Turns(pet, Stage(self.client, commands))
        self._people = People(self.client)
        self._places = pet.services.places
        self._deliveries = pet.services.deliveries
        self._orders: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._hearing: set[asyncio.Task[Any] | None] = set()
        self.app.event("app_mention", middleware=[self._take])(self._hear)
        self.app.event("message", middleware=[self._take])(self._hear)
        Asking(commands, self.client).add_to(self.app)
        self.app.event(_EVERYTHING)(
            _nothing
        )  # what nobody listens to would go unacknowledged, and come again

    async def settle(self) -> None:
        """Until all that was acknowledged has been answered."""
        while self._hearing:
            await asyncio.wait([task for task in self._hearing if task])
        await self.turns.settle()

    async def stop(self) -> None:
        """Hear no more, and finish what is being answered. What was acknowledged comes from nowhere again: it
        is heard before, if it is not long in coming."""
        if self._hearing:
            await asyncio.wait([task for task in self._hearing if task], timeout=GRACE)
        await self.turns.stop()

    async def _take(self, event: dict[str, Any], context: Any, next: Next) -> None:
        """Before the event is acknowledged: is it ours to answer, and nobody has taken it yet? Both events
        that tell of one message, and those that Slack sends again, bear the same id."""
        written = written_in(event, context.team_id or context.enterprise_id, context.bot_user_id)
        if written is None or (listening := await self._wanted(written)) is None:
            return
        if await self._deliveries.first(SOURCE, written.id, self.pet.clock()):
            context["written"], context["listening"] = written, listening
            await next()

    async def _wanted(self, written: Written) -> Listening | None:
        """What is listened to there; None where the message is not to be answered."""
        listening = await self._places.listening(written.place)
        if listening == "nothing":
            return None
        if written.private or written.mention:
            return listening
        if written.to_another:
            return None
        if listening == "everything" or written.follows_bot or await self._speaks_in(written):
            return listening
        return None

    async def _speaks_in(self, written: Written) -> bool:
        """Whether the bot has spoken in this thread already."""
        if written.conversation is None:
            return False
        audience = Audience.of(written.speaker, written.place)
        return bool(await self.pet.components.transcript.last(written.conversation, audience, 1))

    async def _hear(self, context: Mapping[str, Any]) -> None:
        written: Written = context["written"]
        order = self._orders.setdefault(written.channel, asyncio.Lock())
        task = asyncio.current_task()
        self._hearing.add(task)
        try:
            async with order:  # names may have to be asked for; what comes first is heard first all the same
                names = await self._people.names([written.user, *mentioned(written.text)])
                self.turns.hear(self._said(written, names, context["listening"], context["bot_user_id"]))
        finally:
            self._hearing.discard(task)

    def _said(self, written: Written, names: Mapping[str, str], listening: Listening, bot: str) -> Said:
        """A mention in a channel is answered in a thread that begins with it: to both it is one conversation,
        and what is learned from it belongs to the channel."""
        thread, conversation = written.thread, written.conversation
        if not (written.private or thread or listening == "everything"):
            thread = written.ts
            conversation = conversation_of(written.place, thread)
        text = re.sub(
            rf"^(?:\s*<@{bot}(?:\|[^>]*)?>[\s,:]*)+|(?:\s*<@{bot}(?:\|[^>]*)?>)+\s*$", "", written.text
        )
        empty = "" if written.files else f"@{names.get(bot, 'Hachi')}"
        return Said(
            user=written.speaker,
            author=names[written.user],
            text=plain(text, names) or empty,
            place=written.place,
            conversation=conversation,
            attached=partial(read_files, self.client, written.files) if written.files else None,
            where=Where(written.team, written.channel, written.user, written.ts, thread),
        )


def _sdk_log() -> logging.Logger:
    """Where the libraries log. They look at a logger's own level, and without one they make up lines for
    debugging of all that goes through."""
    logger = logging.getLogger("hachi.slack.sdk")
    logger.setLevel(max(log.getEffectiveLevel(), logging.INFO))
    return logger


async def _nothing() -> None:
    """Acknowledged, and that is all."""
