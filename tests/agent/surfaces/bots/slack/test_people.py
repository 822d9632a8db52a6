"""What people on Slack are called."""

import pytest
from slack_server import SlackServer

from agent import Settings
from agent.surfaces.bots.slack import people
from agent.surfaces.bots.slack.app import build_client
from agent.surfaces.bots.slack.people import People


@pytest.fixture
def known(settings: Settings) -> People:
    return People(build_client(settings))


async def test_a_person_is_asked_for_once(known: People, slack: SlackServer) -> None:
    assert await known.names(["UANA", "UBEN", "UANA"]) == {"UANA": "Ana", "UBEN": "Ben"}
    await known.name("UANA")
    assert [call["user"] for call in slack.called("users.info")] == ["UANA", "UBEN"]


@pytest.mark.parametrize(
    ("shown", "name"), [("Ana:  the\nfirst", "Ana the first"), ("", "of Acme"), ("דָּנָה", "דָּנָה")]
)
async def test_names_stand_on_one_line(known: People, slack: SlackServer, shown: str, name: str) -> None:
    slack.names["UNNAMED"] = shown
    assert await known.name("UNNAMED") == name


async def test_whoever_slack_did_not_tell_of_is_asked_for_again(known: People, slack: SlackServer) -> None:
    assert await known.name("UNEW") == "UNEW"
    slack.names["UNEW"] = "Eve"
    assert await known.name("UNEW") == "Eve"


async def test_only_so_many_names_are_kept(
    known: People, slack: SlackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(people, "MOST_KNOWN", 1)
    for user in ("UANA", "UBEN", "UANA"):
        await known.name(user)
    assert len(slack.called("users.info")) == 3
