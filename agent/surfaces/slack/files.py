"""Files that come with a message: text is read, the others are named."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from slack_sdk.web.async_client import AsyncWebClient

from agent.surfaces.bots.people import display_name

log = logging.getLogger("hachi.slack")

MOST_FILES = 5
MOST_BYTES = 64_000
"""Of one file; a longer one is not read."""
MOST_CHARACTERS = 60_000
"""Of all files of a message."""
TIMEOUT = aiohttp.ClientTimeout(total=20)
SLACK = (".slack.com", ".slack-gov.com", ".slack-files.com")
"""Hosts that are shown the bot's token; where else a file lies may be anybody's."""
_TYPES = ("text/", "application/json", "application/xml", "application/x-yaml", "application/toml")


class Unreadable(Exception):
    """The text says why."""


async def read_files(client: AsyncWebClient, files: Sequence[Mapping[str, Any]]) -> str:
    """The text files word for word, each between its name, and why the others were not read. Raises nothing
    of Slack's."""
    parts: list[str] = []
    skipped: list[str] = []
    left = MOST_CHARACTERS
    for number, file in enumerate(files):
        name = display_name(str(file.get("name") or file.get("title") or ""), "a file")
        try:
            if number >= MOST_FILES:
                raise Unreadable("one too many")
            text = await _text(client, file, left)
        except Unreadable as why:
            skipped.append(f"{name} ({why})")
        else:
            left -= len(text)
            parts.append(f"[file {name}]\n{text}\n[end of {name}]")
    if skipped:
        parts.append(f"[attached, but not read: {'; '.join(skipped)}]")
    return "\n\n".join(parts)


async def _text(client: AsyncWebClient, file: Mapping[str, Any], left: int) -> str:
    kind = str(file.get("mimetype") or "")
    if not kind.startswith(_TYPES) and file.get("mode") != "snippet":
        raise Unreadable(f"{display_name(kind, 'not text')}, I read text only")
    if int(file.get("size") or 0) > MOST_BYTES:
        raise Unreadable(f"more than {MOST_BYTES // 1000} kB")
    try:
        text = (await _content(_address(client, file), str(client.token))).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Unreadable("no text in UTF-8") from None
    except (aiohttp.ClientError, OSError) as error:
        log.warning("an attachment cannot be read: %s: %s", type(error).__name__, error)
        raise Unreadable("it could not be fetched") from error
    if len(text) > left:
        raise Unreadable("the files are too long together")
    return text


def _address(client: AsyncWebClient, file: Mapping[str, Any]) -> str:
    address = str(file.get("url_private_download") or file.get("url_private") or "")
    host, own = urlsplit(address).hostname or "", urlsplit(client.base_url).hostname
    if file.get("is_external") or not (f".{host}".endswith(SLACK) or host == own):
        raise Unreadable("it is not kept at Slack")
    return address


async def _content(address: str, token: str) -> bytes:
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
                raise Unreadable(f"more than {MOST_BYTES // 1000} kB")
    return content
