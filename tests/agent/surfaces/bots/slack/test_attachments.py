"""Files that come with a message."""

from typing import Any

import pytest
from slack_server import SlackServer

from agent import Settings
from agent.surfaces.bots.attachments import MAX_BYTES, read_attachments
from agent.surfaces.bots.slack.attachments import attachment_of
from agent.surfaces.bots.slack.client import build_client


@pytest.fixture
def client(settings: Settings) -> Any:
    return build_client(settings)


async def read(client: Any, file: dict[str, Any]) -> str:
    return await read_attachments([attachment_of(client, file)])


async def test_files_and_snippets_are_read(client: Any, slack: SlackServer) -> None:
    assert "één" in await read(client, slack.attach("a.txt", "één".encode()))
    snippet = slack.attach("b", b"{}", "", mode="snippet")
    assert await read(client, snippet) == "[file b]\n{}\n[end of b]"
    assert "a file (" in await read(client, {"mimetype": "image/png"})


@pytest.mark.parametrize(
    ("content", "media_type", "other", "reason"),
    [
        (b"x" * (MAX_BYTES + 1), "text/plain", {}, "more than 64 kB"),
        (b"x" * (MAX_BYTES + 1), "text/plain", {"size": 1}, "more than 64 kB"),
        (b"<html>", "text/html", {}, "could not be fetched"),
        (b"text", "text/plain", {"is_external": True}, "not kept at Slack"),
        (b"text", "text/plain", {"url_private_download": "https://evil.test/a"}, "not kept at Slack"),
        (b"text", "text/plain", {"url_private_download": "https://evilslack.com/a"}, "not kept at Slack"),
        (b"text", "text/plain", {"url_private_download": "http://files.slack.com/a"}, "not kept at Slack"),
        (b"text", "text/plain", {"url_private_download": "http://127.0.0.1:1/a"}, "could not be fetched"),
        (b"text", "text/plain", {"url_private_download": ""}, "not kept at Slack"),
    ],
)
async def test_the_reason_is_given_for_a_file_that_is_not_read(
    client: Any, slack: SlackServer, content: bytes, media_type: str, other: dict[str, Any], reason: str
) -> None:
    assert reason in await read(client, slack.attach("thing", content, media_type, **other))


async def test_without_the_scope_slack_shows_a_page_to_sign_in(slack: SlackServer) -> None:
    stranger = build_client(Settings.load(slack_bot_token="xoxb-other", slack_api_url=slack.api))
    assert "could not be fetched" in await read(stranger, slack.attach("a.txt", b"text"))
