"""Who may read what."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.audience import GLOBAL, PRIVATE, Audience, Place, owners_of

NAME = st.text(min_size=1).filter(lambda name: name == name.strip())
PLACE = st.lists(NAME, min_size=1, max_size=4).map(lambda path: Place(tuple(path)))


def test_one_reads_ones_own_in_private_and_in_a_place_the_places_and_those_it_lies_in() -> None:
    assert Audience.of("anna").keys == Audience.of("anna", PRIVATE).keys == {"user:anna", GLOBAL}
    keys = Audience.of("anna", Place.parse("acme/general/thread-7")).keys
    assert keys == {"place:acme", "place:acme/general", "place:acme/general/thread-7", GLOBAL}


@pytest.mark.parametrize("place", [None, PRIVATE, Place.parse("acme")])
def test_an_anonymous_turn_reads_nothing(place: Place | None) -> None:
    nobody = Audience.of(None, place)
    assert nobody.keys == frozenset()
    assert not nobody.may_read([GLOBAL, "user:anna", "place:acme"])


@pytest.mark.parametrize("text", [None, "", "dm", "DM", " dm ", "  "])
def test_no_place_is_private(text: str | None) -> None:
    assert Place.parse(text) == PRIVATE
    assert PRIVATE.private
    assert str(PRIVATE) == "dm"


PATHS = {"general": "general", "acme/general": "acme general", " acme / general /": "acme general"}
PATHS |= {"//acme": "acme", "dms": "dms", "dm/x": "dm x"}


@pytest.mark.parametrize("text", [*PATHS, "/", " // ", "%64m", "..", "user:anna"])
def test_places_are_read_from_the_outermost_in_and_no_odd_name_passes_for_a_private_one(text: str) -> None:
    place = Place.parse(text)
    assert text not in PATHS or place == Place(tuple(PATHS[text].split()))
    assert not place.private
    assert Audience.of("anna", place).keys.isdisjoint({"user:anna"})


@given(PLACE)
def test_a_place_is_read_as_it_was_written(place: Place) -> None:
    assert Place.parse(str(place)) == place


@given(PLACE, PLACE)
def test_a_place_is_read_where_it_is_and_further_in_and_nowhere_else(said_in: Place, read_in: Place) -> None:
    inside = read_in.path[: len(said_in.path)] == said_in.path
    assert Audience.of("ben", read_in).may_read(owners_of("anna", said_in)) == inside


@given(NAME, NAME, PLACE)
def test_in_private_one_reads_what_one_said_anywhere_alone(speaker: str, reader: str, place: Place) -> None:
    for owners in (owners_of(speaker), owners_of(speaker, place)):
        assert Audience.of(reader).may_read(owners) == (speaker == reader)
