"""Reminders on Slack."""

import logging

from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from agent.surfaces.bots.reminders import Post
from agent.surfaces.bots.slack.mrkdwn import escape
from memory.audience import Place

log = logging.getLogger("hachi.slack")


def reminder_post(client: AsyncWebClient) -> Post:
    async def post(user: str, place: Place | None, text: str) -> bool:
        id, text = user.rpartition(":")[2], escape(text)
        channel, thread = (*(place.path if place else ()), *[None] * 4)[2:4]
        if place and channel is None:
            return False
        try:
            if channel is None:
                channel = (await client.conversations_open(users=id))["channel"]["id"]
            else:
                text = f"<@{id}> {text}"
            await client.chat_postMessage(channel=str(channel), text=text, thread_ts=thread)
        except SlackApiError as error:
            log.warning("cannot remind %s in %s: %s", user, channel, error.response.get("error"))
            return False
        return True

    return post
