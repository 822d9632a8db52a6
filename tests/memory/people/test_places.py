"""What is listened to in a place, on both databases."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from memory.audience import PRIVATE, Place
from memory.people.places import Listening, Places
from memory.sql.engine import Database

CHANNEL = Place(("discord", "acme", "general"))
THREAD = Place(("discord", "acme", "general", "thread-7"))
OTHER = Place(("discord", "acme", "random"))


@pytest.fixture
def places(database: Database) -> Places:
    return Places(database)


async def test_unless_it_is_set_only_mentions_are_listened_to(places: Places) -> None:
    assert await places.listening(CHANNEL) == "mentions"


async def test_what_is_set_holds_there_and_in_its_threads_and_nowhere_else(
    places: Places, clock: Callable[[], Any]
) -> None:
    await places.set(CHANNEL, "everything", "discord:1", clock())
    assert await places.listening(CHANNEL) == "everything"
    assert await places.listening(THREAD) == "everything"
    assert await places.listening(OTHER) == "mentions"


async def test_the_nearest_setting_holds(places: Places, clock: Callable[[], Any]) -> None:
    await places.set(CHANNEL, "everything", "discord:1", clock())
    await places.set(THREAD, "nothing", "discord:2", clock())
    assert await places.listening(THREAD) == "nothing"
    assert await places.listening(CHANNEL) == "everything"


async def test_it_can_be_set_anew(places: Places, clock: Callable[[], Any]) -> None:
    await places.set(CHANNEL, "everything", "discord:1", clock())
    await places.set(CHANNEL, "mentions", "discord:2", clock())
    assert await places.listening(CHANNEL) == "mentions"


async def test_in_private_everything_is_listened_to(places: Places, clock: Callable[[], Any]) -> None:
    assert await places.listening(PRIVATE) == "everything"
    with pytest.raises(ValueError, match="mentions, everything, nothing"):
        await places.set(PRIVATE, "nothing", "discord:1", clock())


async def test_what_is_none_of_the_three_is_refused(places: Places, clock: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match="mentions, everything, nothing"):
        await places.set(CHANNEL, cast("Listening", "sometimes"), "discord:1", clock())


async def test_where_somebody_last_spoke_is_known(places: Places, stack: Any) -> None:
    within = Place(("discord",))
    assert await places.last_of("discord:1", within) is None
    for place in (CHANNEL, THREAD, OTHER, Place(("slack", "acme", "general"))):
        await stack.receive("hello", user="discord:1", place=str(place))
    await stack.receive("hello", user="discord:2", place=str(CHANNEL))
    await stack.receive("hello", user="discord:1")
    assert await places.last_of("discord:1", within) == OTHER
    assert await places.last_of("discord:2", within) == CHANNEL
