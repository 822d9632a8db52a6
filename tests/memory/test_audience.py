"""Who may read what."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.audience import GLOBAL, PRIVATE, Audience, Place, owners_of

NAME = st.text(min_size=1).filter(lambda name: name == name.strip())
PLACE = st.lists(NAME, min_size=1, max_size=4).map(lambda path: Place(tuple(path)))


def test_in_private_one_reads_ones_own_and_what_is_everybodys() -> None:
    assert Audience.of("anna").keys == Audience.of("anna", PRIVATE).keys == {"user:anna", GLOBAL}


def test_in_a_place_one_reads_the_places_and_those_it_lies_in_and_nothing_private() -> None:
    keys = Audience.of("anna", Place.parse("acme/general/thread-7")).keys
    assert keys == {"place:acme", "place:acme/general", "place:acme/general/thread-7", GLOBAL}


@pytest.mark.parametrize("place", [None, PRIVATE, Place.parse("acme")])
def test_an_anonymous_turn_reads_nothing(place: Place | None) -> None:
    nobody = Audience.of(None, place)
    assert nobody.keys == frozenset()
    assert not nobody.may_read([GLOBAL, "user:anna", "place:acme"])


@given(st.sampled_from([None, "", "dm", "DM", " dm ", "  "]))
def test_no_place_is_private(text: str | None) -> None:
    assert Place.parse(text) == PRIVATE
    assert PRIVATE.private
    assert str(PRIVATE) == "dm"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("general", ("general",)),
        ("acme/general", ("acme", "general")),
        (" acme / general /", ("acme", "general")),
        ("//acme", ("acme",)),
        ("dms", ("dms",)),
        ("dm/x", ("dm", "x")),
    ],
)
def test_places_are_read_from_the_outermost_in(text: str, path: tuple[str, ...]) -> None:
    assert Place.parse(text) == Place(path)


@pytest.mark.parametrize("text", ["/", " // ", "%64m", "..", "user:anna"])
def test_no_odd_name_passes_for_a_private_conversation(text: str) -> None:
    place = Place.parse(text)
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
def test_ones_private_conversation_knows_what_one_said_anywhere_and_nobody_elses(
    speaker: str, reader: str, place: Place
) -> None:
    for owners in (owners_of(speaker), owners_of(speaker, place)):
        assert Audience.of(reader).may_read(owners) == (speaker == reader)
