"""What Slack lets the bot do: its tokens and scopes."""

from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from agent.errors import HachiError, SettingsError
from agent.settings import Settings
from agent.surfaces.bots.slack.client import API_ERRORS, build_client

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
