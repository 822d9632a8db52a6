"""Files that come with a message on Slack."""

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from slack_sdk.web.async_client import AsyncWebClient

from agent.surfaces.bots import files as shared
from agent.surfaces.bots.files import MOST_BYTES, TOO_BIG, File, Unreadable

log = logging.getLogger("hachi.slack")

TIMEOUT = aiohttp.ClientTimeout(total=20)
SLACK = (".slack.com", ".slack-gov.com", ".slack-files.com")
"""Hosts that are shown the bot's token, by https; where else a file lies may be anybody's."""


async def read_files(client: AsyncWebClient, files: Sequence[Mapping[str, Any]]) -> str:
    """What is in them, as the bots tell it. Raises nothing of Slack's."""
    return await shared.read_files([_file(client, file) for file in files])


def _file(client: AsyncWebClient, file: Mapping[str, Any]) -> File:
    return File(
        name=str(file.get("name") or file.get("title") or ""),
        kind=str(file.get("mimetype") or ""),
        size=int(file.get("size") or 0),
        fetch=partial(_content, client, file),
        text=file.get("mode") == "snippet",
    )


def _address(client: AsyncWebClient, file: Mapping[str, Any]) -> str:
    address = str(file.get("url_private_download") or file.get("url_private") or "")
    there, own = urlsplit(address), urlsplit(client.base_url)
    at_slack = there.scheme == "https" and f".{there.hostname}".endswith(SLACK)
    if file.get("is_external") or not (at_slack or there.hostname == own.hostname):
        raise Unreadable("it is not kept at Slack")
    return address


async def _content(client: AsyncWebClient, file: Mapping[str, Any]) -> bytes:
    address = _address(client, file)
    try:
        return await _download(address, str(client.token))
    except (aiohttp.ClientError, OSError) as error:
        log.warning("an attachment cannot be read: %s: %s", type(error).__name__, error)
        raise Unreadable("it could not be fetched") from error


async def _download(address: str, token: str) -> bytes:
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        aiohttp.ClientSession(timeout=TIMEOUT) as session,
        session.get(address, headers=headers, allow_redirects=False) as answer,
    ):
        if answer.status != 200 or answer.content_type == "text/html":  # a page to sign in: no files:read
            raise Unreadable("it could not be fetched")
        content = b""
        async for piece in answer.content.iter_chunked(16_384):
            content += piece
            if len(content) > MOST_BYTES:
                raise Unreadable(TOO_BIG)
    return content
