"""The client of Slack's API."""

import logging

from aiohttp import ClientError
from slack_sdk.errors import SlackClientError
from slack_sdk.http_retry.builtin_async_handlers import (
    AsyncConnectionErrorRetryHandler,
    AsyncRateLimitErrorRetryHandler,
)
from slack_sdk.web.async_client import AsyncWebClient

from agent.settings import Settings

log = logging.getLogger("hachi.slack")

API_ERRORS = (SlackClientError, ClientError, OSError)
"""What a call of Slack's API may raise. A time-out is an OSError."""
RATE_LIMIT_RETRIES = 3
"""Each after as long as Slack asks."""


def build_client(settings: Settings) -> AsyncWebClient:
    """With the bot's token."""
    token = settings.slack_bot_token.get_secret_value() if settings.slack_bot_token else None
    base_url = settings.slack_api_url or AsyncWebClient.BASE_URL
    client = AsyncWebClient(token=token, base_url=f"{base_url.rstrip('/')}/", logger=sdk_logger())
    client.retry_handlers = [
        AsyncConnectionErrorRetryHandler(),
        AsyncRateLimitErrorRetryHandler(max_retry_count=RATE_LIMIT_RETRIES),
    ]
    return client


def sdk_logger() -> logging.Logger:
    """For the SDK and Bolt, which build debug lines from all traffic unless their own logger has a level."""
    logger = logging.getLogger("hachi.slack.sdk")
    logger.setLevel(max(log.getEffectiveLevel(), logging.INFO))
    return logger
