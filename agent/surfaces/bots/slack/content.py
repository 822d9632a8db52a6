"""Reads the content of a message: its text with people's names, its files, and the thread it is in.

Slack requires the bot's token to download a file.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from slack_sdk.web.async_client import AsyncWebClient

from agent.surfaces.bots.attachments import MAX_BYTES, TOO_LARGE, Attachment, Unreadable, display_name
from agent.surfaces.bots.platform import Content, IncomingMessage, Label, Line, quoted, without_call
from agent.surfaces.bots.slack.client import API_ERRORS
from agent.surfaces.bots.slack.messages import Source, line_of, user_name
from agent.surfaces.bots.slack.mrkdwn import mentioned_users, plain_text
from memory.audience import Place

log = logging.getLogger("hachi.slack")

MAX_NAMES = 10_000
"""People in the cache. The oldest are dropped first."""
NAME_SECONDS = 3_600.0
"""After so long a person's name is asked for again, since it may have changed."""
TIMEOUT = aiohttp.ClientTimeout(total=20)
_HOSTS = (".slack.com", ".slack-gov.com", ".slack-files.com")
"""Hosts that receive the bot's token, by https. Files elsewhere can be anybody's."""


@dataclass(frozen=True, slots=True)
class _Person:
    name: str
    zone: str | None = None
    asked_at: float = float("-inf")


@dataclass(eq=False)
class Reader:
    """Reads messages. It asks Slack once an hour for each person's name and time zone."""

    client: AsyncWebClient
    label: Label
    monotonic: Callable[[], float] = time.monotonic
    _people: dict[str, _Person] = field(default_factory=dict)

    async def read(self, message: IncomingMessage, *, begins: bool) -> Content:
        """In a thread of others that a conversation begins in, the message replies to the thread's first."""
        source: Source = message.source
        first = await self._first(source) if begins and source.thread else {}
        said, people = str(first.get("text") or ""), [source.user, *mentioned_users(source.text)]
        people += [str(first.get("user")), *mentioned_users(said)] if said else []
        names = await self._names(people, source, message.place)
        text = without_call(source.text, rf"<@{source.bot}(?:\|[^>]*)?>")
        text = "\n".join(filter(None, (plain_text(text, names), *_forwarded(source, names))))
        if not text and not source.files:
            text = f"@{names.get(source.bot, 'Hachi')}"
        author, answered = await self._person(source.user), plain_text(said, names)
        return Content(
            author.name,
            text,
            [attachment_of(self.client, file) for file in source.files],
            author.zone,
            quoted("in reply to", names[str(first["user"])], answered) if answered else "",
        )

    async def _names(self, people: Sequence[str], source: Source, place: Place) -> dict[str, str]:
        """Return what these people are called in the place."""
        asked = list(dict.fromkeys(people))
        names = dict(zip(asked, await asyncio.gather(*map(self.name, asked)), strict=True))
        for user, name in names.items():
            if user != source.bot:
                names[user] = await self.label(name, user_name(source.team, user), place)
        return names

    async def _first(self, source: Source) -> Mapping[str, Any]:
        """Return the first message of the thread; nothing if Slack does not tell it, or it is the source."""
        try:
            thread = await self.client.conversations_replies(
                channel=source.channel, ts=str(source.thread), limit=1
            )
        except API_ERRORS as error:
            log.warning("cannot read a thread of %s: %s", source.channel, error)
            return {}
        return next((line for line in thread["messages"] if line["ts"] != source.ts), {})

    async def thread(self, message: IncomingMessage) -> list[Line]:
        """Return the lines before the message in its thread."""
        source: Source = message.source
        lines: list[Line] = []
        async for page in await self.client.conversations_replies(
            channel=source.channel, ts=str(source.thread), latest=source.ts, limit=1_000
        ):
            said = [line for line in page["messages"] if float(line["ts"]) < float(source.ts)]
            lines += [line_of(line, source.team, source.bot) for line in said]
        return lines

    async def name(self, user: str) -> str:
        """Return the person's display name; the id if Slack does not know it."""
        return (await self._person(user)).name

    async def _person(self, user: str) -> _Person:
        known = self._people.get(user, _Person(user))
        if self.monotonic() - known.asked_at > NAME_SECONDS:
            try:
                person = (await self.client.users_info(user=user)).get("user") or {}
            except API_ERRORS as error:
                log.warning("cannot get the name of %s: %s", user, error)
                return known
            profile = person.get("profile") or {}
            names = (profile.get("display_name"), profile.get("real_name"), person.get("name"))
            name = display_name(next((n for n in names if n and n.strip()), None), user)
            known = _Person(name, person.get("tz"), self.monotonic())
            self._people.pop(user, None)
            self._people[user] = known
            while len(self._people) > MAX_NAMES:
                del self._people[next(iter(self._people))]
        return known


def _forwarded(source: Source, names: Mapping[str, str]) -> Iterator[str]:
    for shared in source.shared:
        if text := plain_text(shared.get("text") or "", names):
            yield quoted("forwarded from", display_name(shared.get("author_name"), "somebody"), text)


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
