"""Reach Slack: its client, what its tokens and scopes let the bot do, and files that people attach."""

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
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from agent.errors import HachiError, SettingsError
from agent.settings import Settings
from agent.surfaces.bots.attachments.attachment import Attachment, Unreadable, download, is_at

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
APPS = "https://api.slack.com/apps"
NO_BOT_TOKEN = "set SLACK_BOT_TOKEN to the bot's token (xoxb-…); docs/slack.md shows where it comes from"
NO_APP_TOKEN = (
    "set SLACK_APP_TOKEN to the app's token (xapp-…) for Socket Mode, or pass --http PORT; see docs/slack.md"
)
NO_SECRET = "set SLACK_SIGNING_SECRET to the app's signing secret; docs/slack.md shows where it comes from"
KINDS = {
    "slack_bot_token": ("xoxb-", "the bot's token (xoxb-…)"),
    "slack_app_token": ("xapp-", "the app's token (xapp-…)"),
}
"""Setting → how its value begins, and what it is."""
_REFUSED = frozenset(
    "invalid_auth not_authed account_inactive token_revoked token_expired not_allowed_token_type "
    "missing_scope no_permission".split()
)
SCOPES = frozenset(
    "app_mentions:read assistant:write channels:history channels:read chat:write commands files:read "
    "groups:history groups:read im:history im:write mpim:history mpim:read usergroups:read users:read".split()
)
"""Those that the manifest asks for and the bot cannot do without."""


async def check_access(settings: Settings) -> str:
    """Return who the bot is. Raises SettingsError if a token is missing or refused, or scopes are not
    granted, and HachiError if Slack cannot be reached."""
    check(settings, http=settings.slack_app_token is None)
    client, by_http = build_client(settings), settings.slack_app_token is None
    me = await identify(client)
    granted = me.headers.get("x-oauth-scopes")
    if granted is not None and (lacking := SCOPES.difference(granted.replace(",", " ").split())):
        what = ", ".join(sorted(lacking))
        raise SettingsError(f"Slack does not grant {what}; add them to the app at {APPS} and reinstall it")
    if not by_http:
        await open_socket(client, settings)
    how = "by HTTP" if by_http else "in Socket Mode"
    return f"{me.get('user')} in {me.get('team')}, {how}"


async def identify(client: AsyncWebClient) -> AsyncSlackResponse:
    """Ask who the bot is. Raises SettingsError if Slack refuses its token, HachiError if it is away."""
    try:
        return await client.auth_test()
    except API_ERRORS as error:
        raise explain(error, "SLACK_BOT_TOKEN", "the bot's token from OAuth & Permissions") from error


async def open_socket(client: AsyncWebClient, settings: Settings) -> str:
    """Ask for an address of Socket Mode. Raises as `identify` does."""
    token = settings.slack_app_token
    try:
        opened = await client.apps_connections_open(app_token=token.get_secret_value() if token else "")
    except API_ERRORS as error:
        what = "an app-level token with connections:write from Basic Information"
        raise explain(error, "SLACK_APP_TOKEN", what) from error
    return str(opened["url"])


def check(settings: Settings, *, http: bool) -> None:
    """Raise SettingsError if a token is missing or of another kind."""
    for name, (start, what) in KINDS.items():
        token = getattr(settings, name)
        if token and not token.get_secret_value().startswith(start):
            raise SettingsError(f"{name.upper()} is a token of another kind; set it to {what}")
    if settings.slack_bot_token is None:
        raise SettingsError(NO_BOT_TOKEN)
    if http and settings.slack_signing_secret is None:
        raise SettingsError(NO_SECRET)
    if not http and settings.slack_app_token is None:
        raise SettingsError(NO_APP_TOKEN)


def explain(error: Exception, variable: str, what: str) -> HachiError:
    """Return what a call with the token in this setting failed of; `what` is to be copied in its place."""
    code = error.response.get("error") if isinstance(error, SlackApiError) else None
    if code in _REFUSED:
        return SettingsError(f"Slack refuses {variable} ({code}); copy {what} at {APPS}")
    return HachiError(f"Slack cannot be reached ({code or error or type(error).__name__})")


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
    """Return a file. Slack is asked about one from another workspace, of which an event has only the id."""
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
