"""What comes in and what goes out of a turn."""

from datetime import UTC, datetime

from agent.types import TurnRequest
from hachi import Place

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def test_a_conversation_is_the_users_own_the_places_or_the_one_that_is_named():
    place = Place(("acme", "general"))

    assert TurnRequest("hi", "ana", NOW).conversation_id == "dm:ana"
    assert TurnRequest("hi", "ana", NOW, place).conversation_id == place.key
    assert TurnRequest("hi", "ana", NOW, place, "c1").conversation_id == "c1"


def test_a_speaker_has_a_name_to_show():
    assert TurnRequest("hi", "u1", NOW, author="Ana").speaker == "Ana"
    assert TurnRequest("hi", "u1", NOW).speaker == "u1"
    assert TurnRequest("hi", None, NOW).speaker == "someone"


def test_an_audience_follows_from_who_speaks_and_where():
    place = Place(("acme", "general"))

    assert TurnRequest("hi", "ana", NOW).audience.keys == {"user:ana", "global"}
    assert TurnRequest("hi", "ana", NOW, place).audience.keys == {place.key, "place:acme", "global"}
    assert TurnRequest("hi", None, NOW, place).audience.keys == frozenset()
