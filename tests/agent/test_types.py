"""What comes in and what goes out of a turn."""

import dataclasses
from datetime import UTC, datetime

import pytest

from agent.types import ToolCall, TurnRequest
from hachi import Place, Reply

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def test_a_conversation_is_the_users_own_the_places_or_the_one_that_is_named() -> None:
    place = Place(("acme", "general"))

    assert TurnRequest("hi", "ana", NOW).conversation_id == "dm:ana"
    assert TurnRequest("hi", "ana", NOW, place).conversation_id == place.key
    assert TurnRequest("hi", "ana", NOW, place, "c1").conversation_id == "c1"


def test_a_speaker_has_a_name_to_show() -> None:
    assert TurnRequest("hi", "u1", NOW, author="Ana").speaker == "Ana"
    assert TurnRequest("hi", "u1", NOW).speaker == "u1"
    assert TurnRequest("hi", None, NOW).speaker == "someone"


def test_an_audience_follows_from_who_speaks_and_where() -> None:
    place = Place(("acme", "general"))

    assert TurnRequest("hi", "ana", NOW).audience.keys == {"user:ana", "global"}
    assert TurnRequest("hi", "ana", NOW, place).audience.keys == {place.key, "place:acme", "global"}
    assert TurnRequest("hi", None, NOW, place).audience.keys == frozenset()


@pytest.mark.parametrize("record", [TurnRequest, Reply, ToolCall])
def test_records_are_frozen(record: type) -> None:
    assert record.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert "__slots__" in vars(record)


def test_a_reply_is_compared_by_what_it_says() -> None:
    reply = Reply("hi", (), (), "trace", "tiny", 1)

    assert reply == dataclasses.replace(reply)
    with pytest.raises(dataclasses.FrozenInstanceError):
        reply.message = "other"  # type: ignore[misc]
