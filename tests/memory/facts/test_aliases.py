"""Nobody links the name of somebody else who speaks or is known in the place."""

import pytest

from memory.audience import Audience, Place
from memory.facts.aliases import also_called, names_in
from memory.people.profile_entries import Entry
from memory.people.profile_store import ProfileStore
from tests.memory.conftest import Stack, on_both


async def linked(stack: Stack, name: str, place: str | None) -> tuple[str, ...]:
    aliases = await stack.recall.aliases(Audience.of("ben", Place.parse(place)))
    return aliases.other_names(name)


async def says_call_me(stack: Stack, name: str, place: str | None) -> None:
    await stack.remember(f"Ben is also called {name}", "ben", place)


async def test_one_sentence_gives_a_name_and_no_other(stack: Stack) -> None:
    for text in ("Ana is also called Annie", " Ana is also called Annie. "):
        assert names_in(text) == ("Ana", "Annie")
    assert names_in(also_called("Ana Maria", "安娜")) == ("Ana Maria", "安娜")
    for text in ("Ana is also called ana", "Ana is also called ", "The cat that Ana got is also called Tom"):
        assert names_in(text) is None
    for text in ("Ana goes by bus.", "Ana is called a hero"):
        await stack.remember(text, "ben")
        assert names_in(text) is None
    assert await linked(stack, "Ana", None) == await linked(stack, "ben", None) == ()


@on_both
async def test_a_name_of_ones_own_is_linked(stack: Stack) -> None:
    await stack.receive("hello", "ana", "acme", author="Ana Silva")
    await says_call_me(stack, "Benny", "acme")
    assert await linked(stack, "Ben", "acme") == ("Benny",)


@pytest.mark.parametrize(("place", "name"), [("acme", "ANA"), ("acme/7", "Silva"), ("acme", "asilva")])
async def test_the_name_of_somebody_who_speaks_there_is_not(stack: Stack, place: str, name: str) -> None:
    await stack.receive("hello", "asilva", "acme", author="Ana Silva")
    await says_call_me(stack, name, place)
    assert await linked(stack, "Ben", place) == ()
    assert f"Ben is also called {name}" in await stack.known("ben", place)


@on_both
async def test_nor_of_somebody_who_speaks_in_a_thread_told_a_fact_or_gave_that_name(stack: Stack) -> None:
    await stack.receive("hello", "u1", "acme/7", author="Ana")
    await stack.remember("It rains", "carl", "acme")
    entry = Entry("profile.name", "", "Dora", stack.clock.now)
    await ProfileStore(stack.database).merge("u1", Place.parse("acme"), [entry])
    for name in ("Ana", "Carl", "Dora"):
        await says_call_me(stack, name, "acme")
    assert await linked(stack, "Ben", "acme") == ()


async def test_nobody_else_names_a_speaker(stack: Stack) -> None:
    await stack.receive("hello", "dev", "acme", author="dev")
    await stack.remember("dev is also called Mickael", "ben", "acme")
    assert await linked(stack, "dev", "acme") == ()
    await stack.remember("dev is also called Mick", "dev", "acme")
    assert await linked(stack, "dev", "acme") == ("Mick",)


async def test_in_private_a_name_links_what_that_person_told_alone(stack: Stack) -> None:
    await stack.receive("hello", "ana", "acme", author="Ana")
    await says_call_me(stack, "Ana", None)
    assert await linked(stack, "Ben", None) == ("Ana",)
    assert await linked(stack, "Ben", "acme") == ()


async def test_that_two_names_are_one_persons_shows_only_to_whom_that_was_told(stack: Stack) -> None:
    await stack.remember("dev is also called Mickael", "anna")
    await stack.remember("Mickael sings on Mondays", "anna", "acme")
    assert (await stack.remember("dev sings on Mondays", "anna", "acme")).action == "add"
    await stack.remember("Mickael plays the cello", "anna")
    assert (await stack.remember("dev plays the cello", "anna")).action == "merge"
