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
    slack.names |= {"UA": "Ana:  the\nfirst", "UB": "", "UC": "דָּנָה"}
    assert await known.of(["UA", "UB", "UC"]) == {"UA": "Ana the first", "UB": "of Acme", "UC": "דָּנָה"}


async def test_unknown_people_are_asked_for_again_and_the_cache_is_limited(
    known: Names, slack: SlackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await known.of(["UNEW"]) == {"UNEW": "UNEW"}
    slack.names["UNEW"] = "Eve"
    assert await known.of(["UNEW"]) == {"UNEW": "Eve"}
    monkeypatch.setattr(names, "MAX_CACHED", 1)
    for user in ("UANA", "UBEN", "UANA"):
        await known.of([user])
    assert len(slack.called("users.info")) == 5
