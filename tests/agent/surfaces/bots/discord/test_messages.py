"""Who and where things on Discord are to Hachi."""

import pytest

from agent.surfaces.bots.discord.messages import channel_id, place_of, user_id, user_name
from memory.audience import Place


def test_people_bear_the_name_of_their_platform() -> None:
    assert user_name(12) == "discord:12"
    assert user_id("discord:12") == 12


@pytest.mark.parametrize("name", ["slack:T1:U1", "discord:", "discord:ana", "ana"])
def test_others_have_no_id_there(name: str) -> None:
    assert user_id(name) is None


def test_a_channel_and_a_thread_can_be_written_to() -> None:
    assert channel_id(Place(("discord", "1", "2"))) == 2
    assert channel_id(Place(("discord", "1", "2", "3"))) == 3


@pytest.mark.parametrize(
    "path", [(), ("discord",), ("discord", "1"), ("slack", "1", "2"), ("discord", "1", "general")]
)
def test_what_is_no_channel_cannot(path: tuple[str, ...]) -> None:
    assert channel_id(Place(path)) is None


def test_what_is_nowhere_is_not_private() -> None:
    assert place_of(None) is None
    assert place_of(object()) is None
