"""Runs the Slack bot until it is stopped, in Socket Mode or behind HTTP."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from aiohttp import web
from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler
from slack_sdk.errors import SlackApiError

from agent.companion import Companion
from agent.errors import HachiError, SettingsError
from agent.settings import Settings
from agent.surfaces.bots.reminders import reminder_sender
from agent.surfaces.bots.slack.bot import SlackBot
from agent.surfaces.bots.slack.client import API_ERRORS
from agent.surfaces.bots.slack.messages import user_name
from agent.surfaces.bots.slack.reminders import reminder_post
from agent.surfaces.signals import on_stop_signal
from memory.audience import Place

PATH = "/slack/events"
"""The HTTP path for events, commands and buttons."""
PING_SECONDS = 5.0
"""Seconds after which a lost connection is detected and reopened."""
APPS = "https://api.slack.com/apps"
NO_BOT_TOKEN = "set SLACK_BOT_TOKEN to the bot's token (xoxb-…); docs/slack.md shows where it comes from"
NO_APP_TOKEN = (
    "set SLACK_APP_TOKEN to the app's token (xapp-…) for Socket Mode, or give --http PORT; see docs/slack.md"
)
NO_SECRET = "set SLACK_SIGNING_SECRET to the app's signing secret; docs/slack.md shows where it comes from"
KINDS = {
    "slack_bot_token": ("xoxb-", "the bot's token (xoxb-…)"),
    "slack_app_token": ("xapp-", "the app's token (xapp-…)"),
    "slack_signing_secret": ("", "the signing secret"),
}
"""Setting → how its value begins, and what it is."""
_REFUSED = frozenset(
    "invalid_auth not_authed account_inactive token_revoked token_expired not_allowed_token_type "
    "missing_scope no_permission".split()
)


def check(settings: Settings, *, http: bool) -> None:
    """Raises SettingsError if a token is missing or is another one."""
    _check_kinds(settings)
    if settings.slack_bot_token is None:
        raise SettingsError(NO_BOT_TOKEN)
    if http and settings.slack_signing_secret is None:
        raise SettingsError(NO_SECRET)
    if not http and settings.slack_app_token is None:
        raise SettingsError(NO_APP_TOKEN)


def _check_kinds(settings: Settings) -> None:
    wrong = []
    for name, (start, what) in KINDS.items():
        given = getattr(settings, name)
        value = given.get_secret_value() if given else start
        found = next((kind for kind in KINDS if KINDS[kind][0] and value.startswith(KINDS[kind][0])), None)
        if found != name and (found or start):
            held = (
                f"holds {KINDS[found][1]}, which goes in {found.upper()}" if found else "holds something else"
            )
            wrong.append(f"{name.upper()} {held}; it takes {what}")
    if wrong:
        raise SettingsError(". ".join(wrong))


async def run(
    pet: Companion, settings: Settings, say: Callable[[str], None], http: tuple[str, int] | None = None
) -> None:
    """Run until SIGTERM or Ctrl-C: by HTTP at this address and port, or else in Socket Mode. Raises
    SettingsError if Slack rejects a token, HachiError if Slack cannot be reached."""
    check(settings, http=http is not None)
    bot, stop = SlackBot(pet, settings), asyncio.Event()
    with on_stop_signal(stop.set):
        try:
            async with listening(bot, http) as where:
                say(f"{where}; Ctrl-C stops")
                await stop.wait()
        finally:
            await bot.conversations.stop()


@asynccontextmanager
async def listening(bot: SlackBot, http: tuple[str, int] | None = None) -> AsyncIterator[str]:
    """Receive events inside the block. Yields a line that says how."""
    try:
        me = await bot.client.auth_test()
    except API_ERRORS as error:
        raise _explain(error, "SLACK_BOT_TOKEN", "the bot's token from OAuth & Permissions") from error
    name = f"on Slack in {me.get('team')} as {me.get('user')}"
    async with AsyncExitStack() as leaving:
        if http is not None:
            address = await leaving.enter_async_context(_by_http(bot, *http))
            where = f"{name}, waiting for events at {address}"
        else:
            await leaving.enter_async_context(_by_socket(bot))
            where = f"{name}, in Socket Mode"
        team = str(me.get("team_id"))
        send = reminder_sender(bot.pet.people.places, Place(("slack", team)), reminder_post(bot.client))
        leaving.callback(bot.pet.reminders.register(user_name(team, ""), send))
        yield where


@asynccontextmanager
async def _by_socket(bot: SlackBot) -> AsyncIterator[None]:
    token = bot.settings.slack_app_token
    secret = token.get_secret_value() if token else ""
    handler = AsyncSocketModeHandler(bot.app, secret, ping_interval=PING_SECONDS)
    try:
        try:
            handler.client.wss_uri = await handler.client.issue_new_wss_url()
        except API_ERRORS as error:
            what = "an app-level token with connections:write from Basic Information"
            raise _explain(error, "SLACK_APP_TOKEN", what) from error
        await handler.connect_async()  # type: ignore[no-untyped-call]
        yield
    finally:
        await handler.close_async()  # type: ignore[no-untyped-call]


@asynccontextmanager
async def _by_http(bot: SlackBot, host: str, port: int) -> AsyncIterator[str]:
    runner = web.AppRunner(bot.app.web_app(PATH))
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        address, found, *_ = runner.addresses[0]
        yield f"http://{address}:{found}{PATH}"
    finally:
        await runner.cleanup()


def _explain(error: Exception, variable: str, what: str) -> HachiError:
    code = error.response.get("error") if isinstance(error, SlackApiError) else None
    if code in _REFUSED:
        return SettingsError(f"Slack refuses {variable} ({code}); copy {what} at {APPS}")
    return HachiError(f"Slack cannot be reached ({code or error or type(error).__name__})")
