"""The client of Slack's API, and files that people attach."""

import logging
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


async def attachment_of(client: AsyncWebClient, file: Mapping[str, Any]) -> Attachment:
    """Return a file. Of one from another workspace an event has the id alone: the rest is asked for."""
    if file.get("file_access") == "check_file_info":
        try:
            file = (await client.files_info(file=file["id"]))["file"]
        except API_ERRORS as error:
            log.warning("Slack does not tell what file %s is: %s", file["id"], error)
    length = file.get("duration_ms")
    return Attachment(
        name=str(file.get("name") or file.get("title") or ""),
        media_type=str(file.get("mimetype") or ""),
        size=int(file.get("size") or 0),
        fetch=partial(_fetch, client, file),
        is_text=file.get("mode") in ("snippet", "file_access"),
        is_voice=file.get("subtype") in ("slack_audio", "slack_video"),
        seconds=length / 1_000 if isinstance(length, int | float) else None,
    )


async def _fetch(client: AsyncWebClient, file: Mapping[str, Any], most: int) -> bytes:
    url = str(file.get("url_private_download") or file.get("url_private") or "")
    if file.get("is_external"):
        raise Unreadable("it is stored outside Slack")
    token = {"Authorization": f"Bearer {client.token}"}
    return await download(url, most, lambda one: is_at(one, _HOSTS, client.base_url), token)
