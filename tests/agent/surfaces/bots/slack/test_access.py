"""What `hachi doctor` says of Slack."""

import pytest

from agent.errors import HachiError
from agent.surfaces.bots.slack.access import SCOPES, check_access
from hachi import Settings


async def test_the_bot_is_named_where_its_tokens_and_scopes_are_in_order(settings, slack) -> None:
    slack.scopes = ",".join(SCOPES)
    assert await check_access(settings) == "hachi in Acme, in Socket Mode"
    by_http = settings.model_copy(update={"slack_app_token": None})
    assert await check_access(by_http) == "hachi in Acme, by HTTP"


@pytest.mark.parametrize(
    ("changed", "granted", "told"),
    [
        ({}, SCOPES - {"im:write", "commands"}, "does not grant commands, im:write; add them"),
        ({"slack_bot_token": "xoxb-wrong"}, SCOPES, r"refuses SLACK_BOT_TOKEN \(invalid_auth\); copy"),
        ({"slack_app_token": "xapp-wrong"}, SCOPES, r"refuses SLACK_APP_TOKEN \(invalid_auth\); copy"),
        ({"slack_bot_token": "xapp-test-1"}, SCOPES, "SLACK_BOT_TOKEN is a token of another kind; set it to"),
        ({"slack_bot_token": None}, SCOPES, "set SLACK_BOT_TOKEN"),
        ({"slack_app_token": None, "slack_signing_secret": None}, SCOPES, "set SLACK_SIGNING_SECRET"),
        ({"slack_api_url": "http://127.0.0.1:1/"}, SCOPES, "Slack cannot be reached"),
    ],
)
async def test_what_is_wrong_is_told_with_what_to_do(slack, settings, changed, granted, told) -> None:
    slack.scopes = ",".join(granted)
    names = ("slack_bot_token", "slack_app_token", "slack_signing_secret")
    tokens = {name: getattr(settings, name).get_secret_value() for name in names}
    with pytest.raises(HachiError, match=told):
        await check_access(Settings.load(**{"slack_api_url": slack.api} | tokens | changed))
