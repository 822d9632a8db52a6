"""What is read of a message on Slack: the names of people, and files."""

import asyncio
from typing import Any

import pytest
from slack_server import SlackServer

from agent.surfaces.bots.attachments import MAX_BYTES, read_attachments
from agent.surfaces.bots.platform import ASK_AGAIN, IncomingMessage
from agent.surfaces.bots.slack.client import attachment_of, build_client
from agent.surfaces.bots.slack.messages import Reader, Source
from hachi import Settings
from memory.audience import Place
from memory.people.places import Listening


@pytest.fixture
def client(settings: Settings) -> Any:
    return build_client(settings)


async def label(name: str, user: str, place: Place) -> str:
    return name


async def listening(place: Place) -> Listening:
    return "mentions"


async def read(client: Any, file: dict[str, Any]) -> str:
    return await read_attachments([attachment_of(client, file)])


async def test_slack_is_asked_once_for_each_person_it_knows(
    client: Any, slack: SlackServer, clock: Any
) -> None:
    reader = Reader(client, label, listening, clock)
    slack.names |= {"UA": "Ana:  the\nfirst", "UB": "", "UC": "דָּנָה"}
    for _ in range(2):
        names = [await reader.name(user) for user in ("UA", "UB", "UC", "UNEW")]
        assert names == ["Ana the first", "of Acme", "דָּנָה", "UNEW"]
    assert [call["user"] for call in slack.called("users.info")] == ["UA", "UB", "UC", "UNEW", "UNEW"]
    slack.names["UA"] = "Annie"
    clock.now += ASK_AGAIN
    assert await reader.name("UA") == "Ana the first"
    clock.advance(seconds=1)
    assert await reader.name("UA") == "Annie"


async def test_slack_is_asked_for_several_people_side_by_side(client, slack, monkeypatch, clock) -> None:
    both, ask = asyncio.Barrier(2), client.users_info

    async def users_info(**given: Any) -> Any:
        await both.wait()
        return await ask(**given)

    monkeypatch.setattr(client, "users_info", users_info)
    source = Source("T1", "C1", "UANA", "1.5", "UHACHI", "and <@UBEN>?")
    said = IncomingMessage("slack:T1:UANA", Place(("slack", "T1", "C1")), source=source)
    async with asyncio.timeout(10):
        content = await Reader(client, label, listening, clock).read(said, begins=False)
    assert (content.author, content.text) == ("Ana", "and @Ben?")


async def test_files_and_snippets_are_read(client: Any, slack: SlackServer) -> None:
    assert "één" in await read(client, slack.attach("a.txt", "één".encode()))
    snippet = slack.attach("b", b"{}", "", mode="snippet")
    assert await read(client, snippet) == "[file b]\n{}\n[end of b]"
    assert "a file (" in await read(client, {"mimetype": "image/png"})


@pytest.mark.parametrize(
    ("content", "other", "reason"),
    [
        (b"x" * (MAX_BYTES + 1), {"size": 1}, "more than 64 kB"),
        (b"<html>", {"type": "text/html"}, "could not be fetched"),
        (b"text", {"is_external": True}, "not kept at Slack"),
        (b"text", {"url_private_download": "https://evilslack.com/a"}, "not kept at Slack"),
        (b"text", {"url_private_download": "http://files.slack.com/a"}, "not kept at Slack"),
        (b"text", {"url_private_download": "http://127.0.0.1:1/a"}, "could not be fetched"),
        (b"text", {"url_private_download": ""}, "not kept at Slack"),
    ],
)
async def test_the_reason_is_given_for_a_file_that_is_not_read(client, slack, content, other, reason) -> None:
    assert reason in await read(client, slack.attach("thing", content, **other))


async def test_without_the_scope_slack_shows_a_page_to_sign_in(slack: SlackServer) -> None:
    stranger = build_client(Settings.load(slack_bot_token="xoxb-other", slack_api_url=slack.api))
    assert "could not be fetched" in await read(stranger, slack.attach("a.txt", b"text"))
