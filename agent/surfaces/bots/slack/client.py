"""The client of Slack's API. It repeats calls as the SDK does: after lost connections and errors of Slack's,
and, where Slack limits the rate, after as long as Slack asks."""

import logging

from aiohttp import ClientError
from slack_sdk.errors import SlackClientError
from slack_sdk.http_retry.builtin_async_handlers import (
    AsyncConnectionErrorRetryHandler,
    AsyncRateLimitErrorRetryHandler,
    AsyncServerErrorRetryHandler,
)
from slack_sdk.web.async_client import AsyncWebClient

from agent.settings import Settings

log = logging.getLogger("hachi.slack")

API_ERRORS = (SlackClientError, ClientError, OSError)
"""The exceptions that calls of Slack's API raise. A time-out is an OSError."""
RATE_LIMIT_RETRIES = 3


def build_client(settings: Settings) -> AsyncWebClient:
    """Return a client with the bot's token."""
    token = settings.slack_bot_token.get_secret_value() if settings.slack_bot_token else None
    base_url = settings.slack_api_url or AsyncWebClient.BASE_URL
    client = AsyncWebClient(token=token, base_url=f"{base_url.rstrip('/')}/", logger=sdk_logger())
    client.retry_handlers = [
        AsyncConnectionErrorRetryHandler(),
        AsyncRateLimitErrorRetryHandler(max_retry_count=RATE_LIMIT_RETRIES),
        AsyncServerErrorRetryHandler(),
    ]
    return client


def sdk_logger() -> logging.Logger:
    """Return the logger for the SDK and Bolt, which format debug lines from all traffic unless their own
    logger has a level."""
    logger = logging.getLogger("hachi.slack.sdk")
    logger.setLevel(max(log.getEffectiveLevel(), logging.INFO))
    return logger
