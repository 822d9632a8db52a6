"""Files that come with a message."""

from typing import Any

import pytest
from slack_server import SlackServer

from agent import Settings
from agent.surfaces.bots.files import MOST_BYTES, MOST_CHARACTERS, MOST_FILES
from agent.surfaces.bots.slack.app import build_client
from agent.surfaces.bots.slack.files import read_files


@pytest.fixture
def client(settings: Settings) -> Any:
    return build_client(settings)


async def test_texts_are_read_word_for_word(client: Any, slack: SlackServer) -> None:
    files = [slack.attach("a.txt", "één".encode()), slack.attach("b", b"\xef\xbb\xbf{}", "", mode="snippet")]
    assert await read_files(client, files) == "[file a.txt]\néén\n[end of a.txt]\n\n[file b]\n{}\n[end of b]"


@pytest.mark.parametrize(
    ("content", "kind", "other", "why"),
    [
        (b"\x89PNG", "image/png", {}, "image/png, I read text only"),
        (b"?", "", {}, "not text, I read text only"),
        (b"x" * (MOST_BYTES + 1), "text/plain", {}, "more than 64 kB"),
        (b"x" * (MOST_BYTES + 1), "text/plain", {"size": 1}, "more than 64 kB"),
        (b"x" * (MOST_CHARACTERS + 1), "text/plain", {}, "too long together"),
        (b"\xff\xfe", "text/plain", {}, "no text in UTF-8"),
        (b"<html>", "text/html", {}, "could not be fetched"),
        (b"text", "text/plain", {"is_external": True}, "not kept at Slack"),
        (b"text", "text/plain", {"url_private_download": "https://evil.test/a"}, "not kept at Slack"),
        (b"text", "text/plain", {"url_private_download": "https://evilslack.com/a"}, "not kept at Slack"),
        (b"text", "text/plain", {"url_private_download": "http://files.slack.com/a"}, "not kept at Slack"),
        (b"text", "text/plain", {"url_private_download": "http://127.0.0.1:1/a"}, "could not be fetched"),
        (b"text", "text/plain", {"url_private_download": ""}, "not kept at Slack"),
    ],
)
async def test_what_cannot_be_read_is_named_with_why(
    client: Any, slack: SlackServer, content: bytes, kind: str, other: dict[str, Any], why: str
) -> None:
    file = slack.attach("thing", content, kind, **other)
    read = await read_files(client, [file])
    assert read.startswith("[attached, but not read: thing (")
    assert why in read


async def test_a_file_without_a_name_is_named_as_such(client: Any) -> None:
    assert "a file (" in await read_files(client, [{"mimetype": "image/png"}])


async def test_more_than_a_few_files_are_too_many(client: Any, slack: SlackServer) -> None:
    files = [slack.attach(f"{number}.txt", b"text") for number in range(MOST_FILES + 1)]
    read = await read_files(client, files)
    assert read.count("[end of") == MOST_FILES
    assert f"{MOST_FILES}.txt (one too many)" in read


async def test_without_the_right_to_files_slack_shows_a_page_to_sign_in(slack: SlackServer) -> None:
    stranger = build_client(Settings.load(slack_bot_token="xoxb-other", slack_api_url=slack.api))
    assert "could not be fetched" in await read_files(stranger, [slack.attach("a.txt", b"text")])
