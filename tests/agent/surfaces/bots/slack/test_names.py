"""What people on Slack are called."""

import pytest
from slack_server import SlackServer

from agent import Settings
from agent.surfaces.bots.slack import names
from agent.surfaces.bots.slack.client import build_client
from agent.surfaces.bots.slack.names import Names


@pytest.fixture
def known(settings: Settings) -> Names:
    return Names(build_client(settings))


async def test_slack_is_asked_once_for_each_person(known: Names, slack: SlackServer) -> None:
    assert await known.of(["UANA", "UBEN", "UANA"]) == {"UANA": "Ana", "UBEN": "Ben"}
    await known.of(["UANA"])
    assert [call["user"] for call in slack.called("users.info")] == ["UANA", "UBEN"]


@pytest.mark.parametrize(
    ("shown", "name"), [("Ana:  the\nfirst", "Ana the first"), ("", "of Acme"), ("דָּנָה", "דָּנָה")]
)
async def test_a_name_is_one_line(known: Names, slack: SlackServer, shown: str, name: str) -> None:
    slack.names["UNNAMED"] = shown
    assert await known.of(["UNNAMED"]) == {"UNNAMED": name}


async def test_unknown_people_are_asked_for_again(known: Names, slack: SlackServer) -> None:
    assert await known.of(["UNEW"]) == {"UNEW": "UNEW"}
    slack.names["UNEW"] = "Eve"
    assert await known.of(["UNEW"]) == {"UNEW": "Eve"}


async def test_the_cache_is_limited(
    known: Names, slack: SlackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(names, "MAX_CACHED", 1)
    for user in ("UANA", "UBEN", "UANA"):
        await known.of([user])
    assert len(slack.called("users.info")) == 3
