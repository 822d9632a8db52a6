"""Files attached to a message on Slack. Slack requires the bot's token to download them."""

from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from slack_sdk.web.async_client import AsyncWebClient

from agent.surfaces.bots.attachments import MAX_BYTES, TOO_LARGE, Attachment, Unreadable

TIMEOUT = aiohttp.ClientTimeout(total=20)
_HOSTS = (".slack.com", ".slack-gov.com", ".slack-files.com")
"""Hosts that receive the bot's token, by https. Files elsewhere can be anybody's."""


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
        if (
            answer.status != 200 or answer.content_type == "text/html"
        ):  # without the scope files:read, Slack returns a sign-in page
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
