"""A model's rulings on facts: what is offered, what may follow, and that nothing is harmed by any of them."""

from datetime import timedelta
from typing import Any

import pytest

from memory.audience import Place
from memory.facts.candidate import Provenance
from memory.facts.decide import Ruling
from memory.records import NewMemory
from tests.memory.conftest import Stack, on_both

HOME, MOVED = "Ana lives in Paris", "Ana moved to Lyon"


async def rule(stack: Stack, new: Any, old: Any, ruling: Ruling, user: str = "anna", place: str = "") -> Any:
    origin = Provenance(user, stack.clock.now, Place.parse(place))
    return await stack.writer.rule(str(new.id), str(old.id), ruling, origin)


@on_both
async def test_a_ruling_replaces_a_stored_fact(stack: Stack) -> None:
    old = await stack.remember(HOME)
    stack.clock.advance(days=1)
    new = await stack.remember(MOVED)
    decision = await rule(stack, new, old, "replaces")
    assert (decision.action, decision.id, decision.target_id) == ("replace", new.id, old.id)
    assert await stack.known() == {MOVED}
    assert await stack.found("where does Ana live") == {MOVED}
    assert await stack.reasons(str(new.id)) == ["a model judged that it takes its place"]


@pytest.mark.parametrize(("ruling", "action"), [("same", "merge"), ("ignore", "ignore")])
async def test_what_is_said_again_joins_and_keeps_its_end(stack: Stack, ruling: Ruling, action: str) -> None:
    old = await stack.remember("Ana has the flu", ttl="7d", importance=0.4)
    before = await stack.the_memory()
    stack.clock.advance(days=1)
    new = await stack.remember("Ana is down with the flu", importance=0.8)
    decision = await rule(stack, new, old, ruling)
    assert (decision.action, decision.id) == (action, old.id)
    after = await stack.the_memory()
    assert (after.id, after.importance, after.expires_at) == (old.id, 0.8, before.expires_at)


@on_both
@pytest.mark.parametrize("ruling", ["same", "ignore"])
async def test_a_ruling_that_would_lose_a_value_leaves_both(stack: Stack, ruling: Ruling) -> None:
    early, late, later = (f"The train leaves at {time}" for time in ("9:15", "9:45", "10:05"))
    old = await stack.remember(early)
    stack.clock.advance(days=1)
    assert await rule(stack, await stack.remember(late), old, ruling) is None
    origin = Provenance("anna", stack.clock.now, live=True)
    [decision] = await stack.writer.remember([NewMemory(later)], origin, {str(old.id): ruling})
    assert decision.action == "add"
    assert await stack.known() == {early, late, later}


CARDS = "Rachel sees her cardiologist Dr. Lin in Leeds on the first Monday of every month"


@on_both
@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize(
    ("old", "ttl", "new", "ruling", "stays"),
    [
        ("Sofia is afraid of thunderstorms", None, "Thunderstorms scare Sofia", "same", 1),
        ("Sofia is ill", "7d", "Sofia has caught a cold", "same", 0),
        (CARDS, None, "Rachel visits Leeds regularly", "ignore", 0),
        ("Rachel has a dog", None, "Rachel's dog died", "ignore", None),
        ("Rachel loves tea", None, "Rachel hates tea", "same", None),
        ("Rachel has a dog", None, "Rachel is the owner of a dog called Rex", "same", None),
    ],
)
async def test_of_two_in_other_words_one_stays_and_the_other_is_history_unless_a_value_is_lost(
    stack: Stack, stored: bool, old: str, ttl: str | None, new: str, ruling: Ruling, stays: int | None
) -> None:
    first = await stack.remember(old, ttl=ttl)
    stack.clock.advance(days=1)
    if stored:
        await rule(stack, await stack.remember(new), first, ruling)
    else:
        origin = Provenance("anna", stack.clock.now, live=True)
        await stack.writer.remember([NewMemory(new)], origin, {str(first.id): ruling})
    assert await stack.known() == ({old, new} if stays is None else {(old, new)[stays]})


async def test_another_name_of_the_same_person_is_no_value(stack: Stack) -> None:
    await stack.remember("Mickael is also called dev")
    old = await stack.remember("Mickael has the flu")
    stack.clock.advance(days=1)
    assert (await rule(stack, await stack.remember("dev is down with the flu"), old, "same")).id == old.id


async def test_no_ruling_touches_what_somebody_else_told(stack: Stack) -> None:
    old = await stack.remember(HOME, "anna", "acme")
    stack.clock.advance(days=1)
    new = await stack.remember(MOVED, "ben", "acme")
    rulings: tuple[Ruling, ...] = ("replaces", "same", "ignore")
    for ruling in rulings:
        assert await rule(stack, new, old, ruling, "ben", "acme") is None
    assert await stack.known("cleo", "acme") == {HOME, MOVED}


async def test_a_ruling_in_a_place_is_for_the_owners_who_have_both(stack: Stack) -> None:
    old = await stack.remember(HOME, "anna", "acme")
    stack.clock.advance(days=1)
    new = await stack.remember(MOVED, "anna")
    await rule(stack, new, old, "replaces")
    assert await stack.known("anna") == {MOVED}
    assert await stack.known("cleo", "acme") == {HOME}


async def test_what_is_about_to_be_stored_follows_its_rulings(stack: Stack) -> None:
    old = await stack.remember("Ana is 29")
    stack.clock.advance(days=1)
    origin = Provenance("anna", stack.clock.now, live=True)
    [decision] = await stack.writer.remember(
        [NewMemory("Ana is 30 years old")], origin, {str(old.id): "replaces"}
    )
    assert (decision.action, decision.target_id) == ("replace", old.id)
    [again] = await stack.writer.remember(
        [NewMemory("Ana is in her thirties")], origin, {str(decision.id): "ignore"}
    )
    assert (again.action, again.id) == ("ignore", decision.id)


@on_both
async def test_facts_are_offered_by_meaning_words_and_tags_of_one_person(stack: Stack) -> None:
    for n in range(12):
        await stack.remember(f"Ana's shelf {n} holds books", "anna", "acme")
    await stack.remember("Ana builds with Bun", "anna", "acme")
    await stack.remember("Ana adores cats", "anna", "acme", subjects=("health",))
    await stack.remember("Ana builds with Deno", "ben", "acme")
    await stack.remember("Ana builds in secret", "anna")
    origin = Provenance("anna", stack.clock.now, Place.parse("acme"))

    offered = await stack.similar.around([("Ana builds with Bun or Node", ("health",))], origin, 6)

    contents = [memory.content for memory in offered]
    assert contents[0] == "Ana builds with Bun"
    assert "Ana adores cats" in contents
    assert not {"Ana builds with Deno", "Ana builds in secret"} & set(contents)
    ranked = {memory.content for memory in await stack.similar.around([("Ana builds", ())], origin, 99)}
    assert not {"Ana builds with Deno", "Ana builds in secret"} & ranked


async def test_a_ruling_on_itself_on_what_is_gone_or_by_what_is_older_or_ends_is_void(stack: Stack) -> None:
    earlier = await stack.remember(MOVED, said_at=stack.clock.now - timedelta(days=1))
    old = await stack.remember(HOME)
    stack.clock.advance(days=1)
    for_a_week = await stack.remember("Ana is in Rome", ttl="7d")
    for new in (old, earlier, for_a_week):
        assert await rule(stack, new, old, "replaces") is None
    assert await stack.known() == {HOME, MOVED, "Ana is in Rome"}
    [home] = [memory for memory in await stack.memories() if memory.content == HOME]
    await stack.delete(home)
    assert await rule(stack, for_a_week, old, "replaces") is None
