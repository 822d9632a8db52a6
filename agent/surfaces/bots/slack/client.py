"""The client of Slack's API, and files that people attach."""

import asyncio
import logging
import re
from collections.abc import Mapping
from functools import partial
from typing import Any

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.http_retry.builtin_async_handlers import (
    AsyncConnectionErrorRetryHandler,
    AsyncRateLimitErrorRetryHandler,
    AsyncServerErrorRetryHandler,
)
from slack_sdk.web.async_client import AsyncWebClient

from agent.settings import Settings
from agent.surfaces.bots.attachments.attachment import Attachment, Unreadable
from agent.surfaces.bots.attachments.download import download, is_at

log = logging.getLogger("hachi.slack")

API_ERRORS = (SlackClientError, aiohttp.ClientError, OSError)
"""The exceptions that calls of Slack's API raise. A time-out is an OSError."""
TEMPORARY = frozenset(
    """external_channel_migrating fatal_error internal_error message_limit_exceeded rate_limited ratelimited
    request_timeout service_unavailable team_added_to_org""".split()
)
"""Errors after which the same call may succeed later."""
RATE_LIMIT_RETRIES = 3
VOICE_WAITS = (1.0, 2.0, 4.0)
"""Seconds before Slack is asked again for the words of a voice message."""
MOST_CAPTIONS = 1_000_000
_HOSTS = (".slack.com", ".slack-gov.com", ".slack-files.com")
"""Hosts that receive the bot's token, by https. Files elsewhere can be anybody's."""


def build_client(settings: Settings) -> AsyncWebClient:
    token = settings.slack_bot_token.get_secret_value() if settings.slack_bot_token else None
    base_url = settings.slack_api_url or AsyncWebClient.BASE_URL
    client = AsyncWebClient(token=token, base_url=f"{base_url.rstrip('/')}/", logger=sdk_logger())
    client.retry_handlers = [
        AsyncConnectionErrorRetryHandler(),
        AsyncRateLimitErrorRetryHandler(max_retry_count=RATE_LIMIT_RETRIES),
        AsyncServerErrorRetryHandler(),
    ]
    return client


def is_final(error: Exception) -> bool:
    """Return whether Slack refuses a call for good."""
    if not isinstance(error, SlackApiError) or error.response.get("error") in TEMPORARY:
        return False
    status = int(error.response.status_code)
    return status < 500 and status != 429


def sdk_logger() -> logging.Logger:
    """Return the logger for the SDK and Bolt, which format debug lines from all traffic unless their own
    logger has a level."""
    logger = logging.getLogger("hachi.slack.sdk")
    logger.setLevel(max(log.getEffectiveLevel(), logging.INFO))
    return logger


async def whole_file(
    client: AsyncWebClient, file: Mapping[str, Any], *, patient: bool = True
) -> Mapping[str, Any]:
    """Return all that Slack tells of a file. Of one from another workspace an event has the id alone, and the
    words of a voice message come later: a `patient` call waits for them."""
    for wait in (0, *(VOICE_WAITS if patient else ())):
        said = file.get("transcription") or {}
        if file.get("file_access") != "check_file_info" and said.get("status") != "processing":
            break
        await asyncio.sleep(wait)
        try:
            file = (await client.files_info(file=file["id"]))["file"]
        except API_ERRORS as error:
            log.warning("Slack does not tell what file %s is: %s", file["id"], error)
            break
    return file


async def transcript(client: AsyncWebClient, file: Mapping[str, Any]) -> str:
    """Return the words of a voice message, as Slack has heard them; empty if it has not."""
    heard = file.get("transcription") or {}
    if heard.get("status") != "complete":
        return ""
    preview = heard.get("preview") or {}
    if preview.get("has_more") and file.get("vtt"):
        try:
            return spoken((await _fetch(client, {"url_private": file["vtt"]}, MOST_CAPTIONS)).decode())
        except (Unreadable, UnicodeDecodeError, *API_ERRORS) as error:
            log.warning("the words of file %s are cut: %s", file.get("id"), error)
    return str(preview.get("content") or "").strip()


def spoken(vtt: str) -> str:
    """Return the words of captions in the form WebVTT."""
    cues = [cue.partition("-->")[2].partition("\n")[2] for cue in re.split(r"\n\s*\n", vtt) if "-->" in cue]
    return " ".join(re.sub(r"<[^>]*>", "", " ".join(cues)).split())


async def attachment_of(
    client: AsyncWebClient, file: Mapping[str, Any], *, patient: bool = True
) -> Attachment:
    """Return a file, with its words where Slack has heard them."""
    file = await whole_file(client, file, patient=patient)
    length = file.get("duration_ms")
    return Attachment(
        name=str(file.get("name") or file.get("title") or ""),
        media_type=str(file.get("mimetype") or ""),
        size=int(file.get("size") or 0),
        fetch=partial(_fetch, client, file),
        is_text=file.get("mode") in ("snippet", "file_access"),
        id=str(file.get("id") or ""),
        is_voice=file.get("subtype") in ("slack_audio", "slack_video"),
        seconds=length / 1_000 if isinstance(length, int | float) else None,
        words=await transcript(client, file),
    )


async def _fetch(client: AsyncWebClient, file: Mapping[str, Any], most: int) -> bytes:
    url = str(file.get("url_private_download") or file.get("url_private") or "")
    if file.get("is_external"):
        raise Unreadable("it is stored outside Slack")
    token = {"Authorization": f"Bearer {client.token}"}
    return await download(url, most, lambda one: is_at(one, _HOSTS, client.base_url), token)
