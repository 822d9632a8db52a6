"""Reminders on Slack: new messages, since changed ones wake nobody."""

import logging

from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from agent.surfaces.bots.slack.markup import escaped
from memory.audience import Place

log = logging.getLogger("hachi.slack")


class Reminding:
    """Reaches the people of one workspace; `send` is what `Companion.reminders` is given."""

    def __init__(self, client: AsyncWebClient) -> None:
        self._client = client

    async def send(self, user: str, place: Place | None, text: str) -> bool:
        """To the person, where they asked for it; in private where that channel is closed to the bot. False
        where neither is to be had; raises what stands in the way of Slack itself."""
        id = user.rpartition(":")[2]
        if place is not None and len(place.path) >= 3 and await self._in_channel(id, place, text):
            return True
        try:
            opened = await self._client.conversations_open(users=id)
            await self._client.chat_postMessage(channel=opened["channel"]["id"], text=escaped(text))
        except SlackApiError as error:
            log.warning("%s cannot be reminded: %s", user, error.response.get("error"))
            return False
        return True

    async def _in_channel(self, user: str, place: Place, text: str) -> bool:
        channel, thread = place.path[2], place.path[3] if len(place.path) > 3 else None
        try:
            await self._client.chat_postMessage(
                channel=channel, thread_ts=thread, text=f"<@{user}> {escaped(text)}"
            )
        except SlackApiError as error:
            log.warning("no reminder in %s: %s", channel, error.response.get("error"))
            return False
        return True
