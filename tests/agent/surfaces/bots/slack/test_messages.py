"""What is read of a message on Slack: the names of people, and files."""

import asyncio
from typing import Any

import pytest
from slack_sdk.errors import SlackApiError
from slack_server import SlackServer

from agent.surfaces.bots.attachments.read import MAX_BYTES, AttachmentReader
from agent.surfaces.bots.platform import ASK_AGAIN, IncomingMessage, Unreadable
from agent.surfaces.bots.slack.access import attachment_of, build_client
from agent.surfaces.bots.slack.messages import Reader, Source, line_of
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
    [place] = (await AttachmentReader().read([await attachment_of(client, file)])).places
    return place


@pytest.mark.parametrize(
    ("text", "addressed", "to_others"),
    [
        ("tea?", False, False),
        (" <@UBEN>, tea?", False, True),
        ("tea for <@UBEN>?", False, False),
        ("<@UHACHI> <@UBEN>, tea?", True, False),
        ("<@UBEN>, ask <@UHACHI>", True, True),
    ],
)
def test_a_message_is_to_whom_it_mentions_first(text: str, addressed: bool, to_others: bool) -> None:
    line = line_of({"user": "UANA", "text": text}, "T1", "UHACHI")
    assert line[:3] == ("slack:T1:UANA", addressed, to_others)


async def test_slack_is_asked_once_for_each_person_it_knows(client, slack, clock) -> None:
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
        if given["user"] != "UANA":
            await both.wait()
        return await ask(**given)

    monkeypatch.setattr(client, "users_info", users_info)
    source = Source("T1", "C1", "UANA", "1.5", "UHACHI", {"text": "<@UCLEO> and <@UBEN>?"})
    said = IncomingMessage("slack:T1:UANA", Place(("slack", "T1", "C1")), source=source)
    async with asyncio.timeout(60):
        content = await Reader(client, label, listening, clock).read(said)
    assert (content.author, content.text) == ("Ana", "@UCLEO and @Ben?")


async def test_a_message_is_read_again_as_it_is_now(client: Any, slack: SlackServer, clock: Any) -> None:
    reader, now = Reader(client, label, listening, clock), int(clock().timestamp())
    slack.says("UANA", "tea?", channel="C1", ts=f"{now}.000001")
    message = await reader.fetch(f"slack:T1:C1:{now}.000001")
    assert message is not None
    assert message.source.event["text"] == "tea?"
    assert await reader.fetch(f"slack:T1:C1:{now}.000002") is None, "somebody deleted it"
    with pytest.raises(Unreadable):  # or the workspace keeps it no longer
        await reader.fetch(f"slack:T1:C1:{now - 2 * 86_400}.000001")
    slack.refused["conversations.replies"] = "fatal_error"
    with pytest.raises(SlackApiError):
        await reader.fetch(f"slack:T1:C1:{now}.000001")
    assert await reader.thread_of("C1", f"{now}.000001") is None
    slack.refused["conversations.replies"] = "channel_not_found"
    with pytest.raises(Unreadable):
        await reader.fetch(f"slack:T1:C1:{now}.000001")


async def test_files_and_snippets_are_read(client: Any, slack: SlackServer) -> None:
    assert "één" in await read(client, slack.attach("a.txt", "één".encode()))
    snippet = slack.attach("b", b"{}", "", mode="snippet")
    assert await read(client, snippet) == "[file b]\n{}\n[end of b]"
    assert "[file without a name; not read: " in await read(client, {"mimetype": "application/pdf"})


@pytest.mark.parametrize(
    ("content", "other", "reason"),
    [
        (b"x" * (MAX_BYTES["text"] + 1), {"size": 1}, "more than 64 kB"),
        (b"<html>", {"type": "text/html"}, "could not be fetched"),
        (b"text", {"is_external": True}, "stored outside Slack"),
        (b"text", {"url_private_download": "https://evilslack.com/a"}, "stored outside the platform"),
        (b"text", {"url_private_download": "http://127.0.0.1:1/a"}, "stored outside the platform"),
    ],
)
async def test_the_reason_is_given_for_a_file_that_is_not_read(client, slack, content, other, reason) -> None:
    assert reason in await read(client, slack.attach("thing", content, **other))


async def test_what_an_event_leaves_out_of_a_file_is_asked_for(client, slack, clock) -> None:
    plan = slack.attach("plan.txt", b"soup")  # of another workspace
    slack.told[plan["id"]] = [plan]
    foreign = {"id": plan["id"], "mode": "file_access", "file_access": "check_file_info"}
    voice = slack.attach("audio_message.m4a", b"", "audio/mp4", subtype="slack_audio", duration_ms=71_400)
    source = Source("T1", "C1", "UANA", "1.5", "UHACHI", {"text": "", "files": [voice, foreign]})
    said = IncomingMessage("slack:T1:UANA", Place(("slack", "T1", "C1")), source=source)
    content = await Reader(client, label, listening, clock).read(said)
    places = (await AttachmentReader().read(content.attachments)).places
    assert places == (
        "(spoken, 1:11; not heard: no transcriber is set up)",
        "[file plan.txt]\nsoup\n[end of plan.txt]",
    )
    assert content.text == ""


@pytest.mark.parametrize(
    "there", ["https://files.slack.evil.com/x", "http://127.0.0.1:9/x", "http://slack.com/x"]
)
async def test_the_token_goes_to_slack_alone_also_where_slack_sends_on(client, slack, there) -> None:
    """What `files.slack.com` sends on to `files-origin.slack.com` wants the token again."""
    slack.files["b.txt"] = ("text/plain", b"moved")
    slack.moved |= {"a.txt": f"{slack.url}/files/b.txt", "c.txt": there}
    assert "moved" in await read(client, slack.attach("a.txt", b""))
    assert "stored outside the platform" in await read(client, slack.attach("c.txt", b""))
    slack.moved["a.txt"] = f"{slack.url}/files/a.txt"
    assert "could not be fetched" in await read(client, slack.attach("a.txt", b""))


async def test_without_the_scope_slack_shows_a_page_to_sign_in(slack: SlackServer) -> None:
    stranger = build_client(Settings.load(slack_bot_token="xoxb-other", slack_api_url=slack.api))
    assert "could not be fetched" in await read(stranger, slack.attach("a.txt", b"text"))
