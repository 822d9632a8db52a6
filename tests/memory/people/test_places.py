"""What the companion listens to in a place, on both databases."""

from typing import Any

import pytest

from memory.audience import PRIVATE, Place
from memory.people.places import Places
from tests.memory.conftest import Stack

CHANNEL = Place(("discord", "acme", "general"))
THREAD = Place(("discord", "acme", "general", "thread-7"))
OTHER = Place(("discord", "acme", "random"))


async def test_the_nearest_setting_counts_and_mentions_without_one(stack: Stack) -> None:
    places, now = Places(stack.database), stack.clock.now
    assert await places.listening(CHANNEL) == "mentions"
    await places.set(CHANNEL, "everything", "discord:1", now)
    assert [await places.listening(at) for at in (CHANNEL, THREAD, OTHER)] == ["everything"] * 2 + [
        "mentions"
    ]
    await places.set(THREAD, "nothing", "discord:2", now)
    assert [await places.listening(at) for at in (CHANNEL, THREAD)] == ["everything", "nothing"]
    await places.set(CHANNEL, "mentions", "discord:2", now)
    assert await places.listening(CHANNEL) == "mentions"


async def test_in_private_everything_is_listened_to_and_unknown_settings_are_refused(stack: Stack) -> None:
    places = Places(stack.database)
    assert await places.listening(PRIVATE) == "everything"
    wrong: list[Any] = [(PRIVATE, "nothing"), (CHANNEL, "sometimes")]
    for place, listening in wrong:
        with pytest.raises(ValueError, match="mentions, everything, nothing"):
            await places.set(place, listening, "discord:1", stack.clock.now)


async def test_the_last_place_where_somebody_spoke_is_known(stack: Stack) -> None:
    places, within = Places(stack.database), Place(("discord",))
    assert await places.last_of("discord:1", within) is None
    for place in (CHANNEL, THREAD, OTHER, Place(("slack", "acme", "general"))):
        await stack.receive("hello", user="discord:1", place=str(place))
    await stack.receive("hello", user="discord:2", place=str(CHANNEL))
    await stack.receive("hello", user="discord:1")
    assert await places.last_of("discord:1", within) == OTHER
    assert await places.last_of("discord:2", within) == CHANNEL
    await stack.receive("hello", user="ana", place="ACME/secret")
    assert await places.last_of("ana", Place(("acme",))) is None, "that is another place"
