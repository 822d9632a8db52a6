"""The Slack bot on Bolt: messages become turns; commands, buttons and the App Home get answers.

Bolt acknowledges an event before its listener runs, so messages are received in a middleware: if that fails,
Slack sends the event again. Bolt does not recognise an event that comes twice; `Deliveries` does.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from slack_bolt.async_app import AsyncApp

from agent.companion import Companion
from agent.settings import Settings
from agent.surfaces.bots.commands import Commands
from agent.surfaces.bots.conversations import Conversations
from agent.surfaces.bots.platform import IncomingMessage, should_answer
from agent.surfaces.bots.slack.client import build_client, sdk_logger
from agent.surfaces.bots.slack.content import Reader
from agent.surfaces.bots.slack.interactions import Interactions
from agent.surfaces.bots.slack.messages import SlackMessage, deleted_message, parse_event, replies_to_bot
from agent.surfaces.bots.slack.replies import SlackPlatform
from memory.people.places import Listening

_ANY = re.compile("")


class SlackBot:
    """`app` is Bolt's, for Socket Mode and for HTTP."""

    def __init__(self, pet: Companion, settings: Settings) -> None:
        self.pet = pet
        self.settings = settings
        self.client = build_client(settings)
        secret = settings.slack_signing_secret
        self.app = AsyncApp(
            name="hachi",
            token=self.client.token,  # given a client instead, Bolt warns of SLACK_BOT_TOKEN
            logger=sdk_logger(),
            signing_secret=secret.get_secret_value() if secret else "",
        )
        self.app.client.base_url = self.client.base_url
        self.app.client.retry_handlers = self.client.retry_handlers
        commands = Commands(pet)
        self._reader = Reader(self.client)
        self.conversations = Conversations(pet, SlackPlatform(self.client, commands, self._reader))
        self.app.event("app_mention", middleware=[self._receive])(_acknowledge)
        self.app.event("message", middleware=[self._receive])(_acknowledge)
        self.app.event("agent_session_stopped")(self._stop)
        Interactions(self.app, commands, self.client, self._reader)
        # without a listener Bolt acknowledges nothing, and Slack repeats the event
        self.app.event(_ANY)(_acknowledge)

    async def _receive(self, event: dict[str, Any], context: Any, next: Callable[[], Awaitable[Any]]) -> None:
        """Queue a message that is to be answered, or forget one that was deleted. Both events of a mention,
        and repeated ones, have the same id. The answer starts a thread, in which Slack streams, unless
        the bot answers everything in the channel."""
        team = context.team_id or context.enterprise_id
        message = parse_event(event, team, context.bot_user_id)
        if deleted := deleted_message(event, team):
            await self.conversations.deleted(deleted)
        if message is not None:
            listening = await self.pet.people.places.listening(message.place)
            if await self._should_answer(message, listening):
                if not message.thread and (message.private or listening != "everything"):
                    message = replace(message, thread=message.ts)
                asked = (message.author, message.place, message.conversation, message, message.origin)
                await self.conversations.accept(IncomingMessage(*asked))
        await next()

    async def _stop(self, event: Mapping[str, Any]) -> None:
        """Somebody pressed Slack's button to stop what the bot does in a thread."""
        thread = (event["channel"], event.get("thread_ts"))
        self.conversations.interrupt(lambda message: message.source.session == thread)

    async def _should_answer(self, message: SlackMessage, listening: Listening) -> bool:
        """Without a mention, a message in a thread is addressed to the bot if it follows what the bot said
        there. After the words of others, people talk to each other."""
        addressed = message.private or message.mention
        if message.conversation and listening == "mentions" and not (addressed or message.to_others):
            transcripts = self.pet.conversations
            spoke = message.follows_bot or await transcripts.exists(
                message.conversation, user=message.author, place=message.place
            )
            addressed = spoke and replies_to_bot(message, await self._reader.thread(message))
        return should_answer(listening, addressed=addressed, to_others=message.to_others)


async def _acknowledge() -> None:
    """Do nothing: Bolt acknowledges the event before it calls this."""
