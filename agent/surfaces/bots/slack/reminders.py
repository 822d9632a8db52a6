"""Reminders on Slack, for the people of one workspace."""

import logging
from typing import Any

from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from agent.surfaces.bots.reminders import ReminderSender
from agent.surfaces.bots.slack.markup import escape
from memory.audience import Place
from memory.people.places import Places

log = logging.getLogger("hachi.slack")


def reminder_sender(client: AsyncWebClient, places: Places, team: str) -> ReminderSender:
    async def post(user: str, place: Place, text: str) -> bool:
        if len(place.path) < 3:
            return False
        channel, thread = place.path[2], place.path[3] if len(place.path) > 3 else None
        return await send(channel, f"<@{_id(user)}> {escape(text)}", thread_ts=thread)

    async def post_privately(user: str, text: str) -> bool:
        try:
            opened = await client.conversations_open(users=_id(user))
        except SlackApiError as error:
            log.warning("cannot open direct messages with %s: %s", user, error.response.get("error"))
            return False
        return await send(opened["channel"]["id"], escape(text))

    async def send(channel: str, text: str, **thread: Any) -> bool:
        try:
            await client.chat_postMessage(channel=channel, text=text, **thread)
        except SlackApiError as error:
            log.warning("cannot write to %s: %s", channel, error.response.get("error"))
            return False
        return True

    return ReminderSender(places, Place(("slack", team)), post, post_privately)


def _id(user: str) -> str:
    return user.rpartition(":")[2]
