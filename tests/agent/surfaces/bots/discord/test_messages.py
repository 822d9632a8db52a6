"""Who and where things on Discord are to Hachi."""

import pytest

from agent.surfaces.bots.discord.messages import channel_id, place_of, user_id, user_name
from memory.audience import Place


def test_user_names_have_the_platform_as_prefix() -> None:
    assert user_name(12) == "discord:12"
    assert user_id("discord:12") == 12


@pytest.mark.parametrize("name", ["slack:T1:U1", "discord:", "discord:ana", "ana"])
def test_users_of_other_platforms_have_no_discord_id(name: str) -> None:
    assert user_id(name) is None


def test_channels_and_threads_have_an_id() -> None:
    assert channel_id(Place(("discord", "1", "2"))) == 2
    assert channel_id(Place(("discord", "1", "2", "3"))) == 3


@pytest.mark.parametrize(
    "path", [(), ("discord",), ("discord", "1"), ("slack", "1", "2"), ("discord", "1", "general")]
)
def test_other_places_have_none(path: tuple[str, ...]) -> None:
    assert channel_id(Place(path)) is None


def test_an_unknown_channel_is_not_private() -> None:
    assert place_of(None) is None
    assert place_of(object()) is None
