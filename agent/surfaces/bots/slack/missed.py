"""What was written on Slack while the bot was not there. Slack delivers an event again for some minutes
only."""

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from slack_sdk.web.async_client import AsyncWebClient

from agent.surfaces.bots.slack.client import API_ERRORS

log = logging.getLogger("hachi.slack")

MOST_MESSAGES = 100
"""The newest messages of a channel, and the first since then of a thread below one of these, that are
read."""


async def missed_events(
    client: AsyncWebClient, since: datetime, private: Sequence[str]
) -> AsyncIterator[Mapping[str, Any]]:
    """Yield a `message` event for each message that is newer than `since`, in the channels that the bot is in
    and in the `private` ones; those of a channel in order."""
    channels = list(private)
    kinds = "public_channel,private_channel,mpim"
    try:
        async for page in await client.users_conversations(types=kinds, exclude_archived=True, limit=200):
            channels += [channel["id"] for channel in page["channels"]]
    except API_ERRORS as error:
        log.warning("what was written in channels meanwhile is not read: %s", error)
    for channel in channels:
        try:
            lines = await _lines(client, channel, since.timestamp())
        except API_ERRORS as error:
            log.warning("what was written in channel %s meanwhile is not read: %s", channel, error)
            continue
        for line in sorted(lines, key=lambda line: str(line["ts"])):
            yield {**line, "type": "message", "channel": channel}


async def _lines(client: AsyncWebClient, channel: str, since: float) -> list[Mapping[str, Any]]:
    page = await client.conversations_history(channel=channel, limit=MOST_MESSAGES)
    found = {line["ts"]: line for line in page["messages"]}
    for line in page["messages"]:
        if float(line.get("latest_reply") or 0) > since:
            thread = await client.conversations_replies(
                channel=channel, ts=line["ts"], oldest=str(since), limit=MOST_MESSAGES
            )
            found |= {reply["ts"]: reply for reply in thread["messages"]}
    return [line for line in found.values() if float(line["ts"]) > since]
