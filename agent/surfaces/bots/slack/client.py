"""The client of Slack's API, and the pace of its calls."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field

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
"""The exceptions that calls of Slack's API raise. A time-out is an OSError."""
RATE_LIMIT_RETRIES = 3
"""Retries, each after the delay that Slack requests."""
PER_MINUTE = {"chat_update": 50, "chat_appendStream": 100, "chat_startStream": 20, "chat_stopStream": 20}
"""The calls of a method that Slack guarantees to an app in a workspace: its tiers 3, 4, 2 and 2."""
MARGIN = 1.1
"""Calls are spaced this much wider than the guarantee allows."""
PATIENCE = 5.0
"""Seconds after which a reply that does not ask again loses its turn."""


@dataclass(eq=False)
class Pace:
    """Spaces the calls of each method over the whole workspace. Its conversations take turns."""

    monotonic: Callable[[], float] = time.monotonic
    _free_at: dict[str, float] = field(default_factory=dict)
    _waiting: dict[str, dict[str, float]] = field(default_factory=dict)
    """Method → who was refused, in order, and when they last asked."""

    def take(self, method: str, who: str, *, needed: bool) -> bool:
        """Return whether `who` may call the method now. A call that is needed always may; others then wait
        for longer."""
        now, waiting = self.monotonic(), self._waiting.setdefault(method, {})
        waiting[who] = now
        for other in [other for other, asked in waiting.items() if asked < now - PATIENCE]:
            del waiting[other]
        free_at = max(now, self._free_at.get(method, now))
        if not needed and (free_at > now or next(iter(waiting)) != who):
            return False
        del waiting[who]
        self._free_at[method] = free_at + (60 * MARGIN / PER_MINUTE[method] if method in PER_MINUTE else 0)
        return True

    def pause(self, method: str, seconds: float) -> None:
        """Leave the method alone, as Slack requests."""
        self._free_at[method] = max(self._free_at.get(method, 0), self.monotonic() + seconds)


def build_client(settings: Settings) -> AsyncWebClient:
    """Return a client with the bot's token."""
    token = settings.slack_bot_token.get_secret_value() if settings.slack_bot_token else None
    base_url = settings.slack_api_url or AsyncWebClient.BASE_URL
    client = AsyncWebClient(token=token, base_url=f"{base_url.rstrip('/')}/", logger=sdk_logger())
    client.retry_handlers = [
        AsyncConnectionErrorRetryHandler(),
        AsyncRateLimitErrorRetryHandler(max_retry_count=RATE_LIMIT_RETRIES),
    ]
    return client


def without_waiting(client: AsyncWebClient) -> AsyncWebClient:
    """Return a client that raises at once where Slack limits the rate."""
    return AsyncWebClient(
        token=client.token,
        base_url=client.base_url,
        logger=sdk_logger(),
        retry_handlers=[AsyncConnectionErrorRetryHandler()],
    )


def sdk_logger() -> logging.Logger:
    """Return the logger for the SDK and Bolt, which format debug lines from all traffic unless their own
    logger has a level."""
    logger = logging.getLogger("hachi.slack.sdk")
    logger.setLevel(max(log.getEffectiveLevel(), logging.INFO))
    return logger
