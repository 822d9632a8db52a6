"""Reads the content of a message: its text with people's names, and its files.

Slack requires the bot's token to download a file.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from slack_sdk.web.async_client import AsyncWebClient

from agent.surfaces.bots.attachments import MAX_BYTES, TOO_LARGE, Attachment, Unreadable, display_name
from agent.surfaces.bots.platform import Content
from agent.surfaces.bots.slack.client import API_ERRORS, without_waiting
from agent.surfaces.bots.slack.messages import SlackMessage
from agent.surfaces.bots.slack.mrkdwn import mentioned_users, plain_text

log = logging.getLogger("hachi.slack")

MAX_NAMES = 10_000
"""People in the cache. The oldest are dropped first; a restart makes a changed name visible."""
TIMEOUT = aiohttp.ClientTimeout(total=20)
THREAD_SECONDS = 2.0
_HOSTS = (".slack.com", ".slack-gov.com", ".slack-files.com")
"""Hosts that receive the bot's token, by https. Files elsewhere can be anybody's."""


@dataclass(eq=False)
class Reader:
    """Reads messages. It asks Slack once for each person's name and time zone."""

    client: AsyncWebClient
    _people: dict[str, tuple[str, str | None]] = field(default_factory=dict)

    async def read(self, message: SlackMessage) -> Content:
        people = [message.user, *mentioned_users(message.text)]
        names = {user: await self.name(user) for user in dict.fromkeys(people)}
        text = plain_text(message.text_without_call, names)
        if not text and not message.files:
            text = f"@{names.get(message.bot, 'Hachi')}"
        files = [attachment_of(self.client, file) for file in message.files]
        _, zone = await self._person(message.user)
        return Content(names[message.user], text, files, zone)

    async def thread(self, message: SlackMessage) -> list[Mapping[str, Any]]:
        """Return the lines of the message's thread; none if Slack does not tell them soon. The event that
        brought the message is acknowledged after this, for which Slack waits three seconds."""
        lines: list[Mapping[str, Any]] = []
        hasty = without_waiting(self.client)
        try:
            async with asyncio.timeout(THREAD_SECONDS):
                async for page in await hasty.conversations_replies(
                    channel=message.channel, ts=str(message.thread), latest=message.ts, limit=1_000
                ):
                    lines += page["messages"]
        except API_ERRORS as error:
            log.warning("cannot read a thread of %s: %s", message.channel, error)
        return lines

    async def name(self, user: str) -> str:
        """Return the person's display name; the id if Slack does not know it."""
        name, _ = await self._person(user)
        return name

    async def _person(self, user: str) -> tuple[str, str | None]:
        """Return the person's name and their time zone, if Slack knows it."""
        if user not in self._people:
            try:
                person = (await self.client.users_info(user=user)).get("user") or {}
            except API_ERRORS as error:
                log.warning("cannot get the name of %s: %s", user, error)
                return user, None
            profile = person.get("profile") or {}
            names = (profile.get("display_name"), profile.get("real_name"), person.get("name"))
            name = display_name(next((n for n in names if n and n.strip()), None), user)
            self._people[user] = name, person.get("tz")
            while len(self._people) > MAX_NAMES:
                del self._people[next(iter(self._people))]
        return self._people[user]


def attachment_of(client: AsyncWebClient, file: Mapping[str, Any]) -> Attachment:
    return Attachment(
        name=str(file.get("name") or file.get("title") or ""),
        media_type=str(file.get("mimetype") or ""),
        size=int(file.get("size") or 0),
        fetch=partial(_fetch, client, file),
        is_text=file.get("mode") == "snippet",
    )


async def _fetch(client: AsyncWebClient, file: Mapping[str, Any]) -> bytes:
    headers = {"Authorization": f"Bearer {client.token}"}
    address = _address(client, file)
    async with (
        aiohttp.ClientSession(timeout=TIMEOUT) as session,
        session.get(address, headers=headers, allow_redirects=False) as answer,
    ):
        # without the scope files:read, Slack returns a sign-in page
        if answer.status != 200 or answer.content_type == "text/html":
            raise Unreadable("it could not be fetched")
        content = b""
        async for piece in answer.content.iter_chunked(16_384):
            content += piece
            if len(content) > MAX_BYTES:
                raise Unreadable(TOO_LARGE)
    return content


def _address(client: AsyncWebClient, file: Mapping[str, Any]) -> str:
    address = str(file.get("url_private_download") or file.get("url_private") or "")
    url, api = urlsplit(address), urlsplit(client.base_url)
    at_slack = url.scheme == "https" and f".{url.hostname}".endswith(_HOSTS)
    if file.get("is_external") or not (at_slack or url.hostname == api.hostname):
        raise Unreadable("it is not kept at Slack")
    return address
