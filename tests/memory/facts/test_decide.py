"""A model's rulings on facts: what is offered, what may follow, and that nothing is harmed by any of them."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sqlalchemy import true

from memory.audience import Place, user_key
from memory.facts.candidate import Provenance
from memory.facts.decide import RULINGS
from memory.records import Draft
from memory.sql.memories.store import CORRECTED, FOR_A_TIME, tellers
from memory.sql.tables import memory_updates

if TYPE_CHECKING:
    from memory.facts.decide import Ruling
    from tests.memory.conftest import Stack

HOME, MOVED = "Ana lives in Paris", "Ana moved to Lyon"
on_both = pytest.mark.parametrize("on_database", ["sqlite", "postgresql"], indirect=True)
on_postgresql = pytest.mark.parametrize("on_database", ["postgresql"], indirect=True)


async def rule(stack: Stack, new: Any, old: Any, ruling: Ruling, user: str = "anna", place: str = "") -> Any:
    origin = Provenance(user, stack.clock.now, Place.parse(place))
    return await stack.writer.rule(str(new.id), str(old.id), ruling, origin)


@on_both
async def test_a_ruling_replaces_a_stored_fact(stack: Stack) -> None:
    old = await stack.remember(HOME)
    stack.clock.move(days=1)
    new = await stack.remember(MOVED)
    decision = await rule(stack, new, old, "replaces")
    assert (decision.action, decision.id, decision.target_id) == ("replace", new.id, old.id)
    assert await stack.known() == {MOVED}
    assert await stack.found("where does Ana live") == {MOVED}
    assert await stack.reasons(str(new.id)) == ["a model judged that it takes its place"]


@pytest.mark.parametrize(("ruling", "action"), [("same", "merge"), ("ignore", "ignore")])
async def test_what_is_said_again_joins_what_is_there_and_keeps_its_end(
    stack: Stack, ruling: Ruling, action: str
) -> None:
    old = await stack.remember("Ana has the flu", ttl="7d", importance=0.4)
    before = await stack.the_memory()
    stack.clock.move(days=1)
    new = await stack.remember("Ana is down with the flu", importance=0.8)
    decision = await rule(stack, new, old, ruling)
    assert (decision.action, decision.id) == (action, old.id)
    after = await stack.the_memory()
    assert (after.id, after.importance, after.expires_at) == (old.id, 0.8, before.expires_at)


@pytest.mark.parametrize("ruling", ["replaces", "same", "ignore"])
async def test_no_ruling_touches_what_somebody_else_told(stack: Stack, ruling: Ruling) -> None:
    old = await stack.remember(HOME, "anna", "acme")
    stack.clock.move(days=1)
    new = await stack.remember(MOVED, "ben", "acme")
    assert await rule(stack, new, old, ruling, "ben", "acme") is None
    assert await stack.known("cleo", "acme") == {HOME, MOVED}


async def test_a_ruling_in_a_place_is_for_the_owners_who_have_both(stack: Stack) -> None:
    old = await stack.remember(HOME, "anna", "acme")
    stack.clock.move(days=1)
    new = await stack.remember(MOVED, "anna")
    await rule(stack, new, old, "replaces")
    assert await stack.known("anna") == {MOVED}
    assert await stack.known("cleo", "acme") == {HOME}


async def test_a_ruling_on_what_is_gone_or_on_itself_changes_nothing(stack: Stack) -> None:
    fact = await stack.remember(HOME)
    assert await rule(stack, fact, fact, "same") is None
    await stack.delete(await stack.the_memory(), "anna")
    assert await rule(stack, fact, fact, "replaces") is None


async def test_what_is_about_to_be_stored_follows_its_rulings(stack: Stack) -> None:
    old = await stack.remember("Ana is 29")
    stack.clock.move(days=1)
    origin = Provenance("anna", stack.clock.now, live=True)
    [decision] = await stack.writer.remember(
        [Draft("Ana is 30 years old")], origin, {str(old.id): "replaces"}
    )
    assert (decision.action, decision.target_id) == ("replace", old.id)
    [again] = await stack.writer.remember(
        [Draft("Ana is in her thirties")], origin, {str(decision.id): "ignore"}
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

    found = await stack.similar.around([("Ana builds with Node", ("health",))], origin, 6)

    contents = [memory.content for memory in found]
    assert contents[0] == "Ana builds with Bun"
    assert "Ana adores cats" in contents
    assert not {"Ana builds with Deno", "Ana builds in secret"} & set(contents)
    stack.index.away = True
    known = {memory.content for memory in await stack.similar.around([("Ana builds", ())], origin, 99)}
    assert not {"Ana builds with Deno", "Ana builds in secret"} & known


USERS, PLACES = ("ana", "ben"), ("dm", "acme")
TEXTS = ("Ana is ill", "Ana is ill again", "Ana has 2 cats", "Ana has 3 cats", "Ana moved to Rome")
who, where, which = st.sampled_from(USERS), st.sampled_from(PLACES), st.integers(0, 9)
TTL, RULING = st.sampled_from([None, "7d"]), st.sampled_from(["replaces", "same", "ignore"])
TELL = st.tuples(who, where, st.sampled_from(TEXTS), TTL, st.integers(0, 3), st.none() | which)
RULE = st.tuples(who, where, which, which, RULING)
FOLDED = tuple(RULINGS[ruling].reason for ruling in ("same", "ignore"))

_worlds = count()


BOTH_SAY = [
    ("ana", "dm", "Ana is ill", None, 0, None),
    ("ben", "acme", "Ana is ill again", None, 0, None),
    ("ana", "acme", "Ana is ill", None, 1, None),
]
"""Ana and Ben state the same in a place, in other words."""
IN_HIS_WORDS = ("ana", "acme", "Ana is ill again", None, 0, 2)
STEPS = st.lists(TELL | RULE, min_size=3, max_size=12)
PROFILE: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.function_scoped_fixture],
}


@example(steps=[*BOTH_SAY, (*IN_HIS_WORDS[:3], "7d", 0, 2)])
@example(steps=[*BOTH_SAY, ("ana", "dm", "Ana is ill again", None, 0, None), IN_HIS_WORDS])
@settings(max_examples=8, **PROFILE)
@given(steps=STEPS)
async def test_whatever_is_told_and_ruled_replaces_only_what_the_same_person_said_before(
    stack: Stack, steps: list[Any]
) -> None:
    await tell_and_rule(stack, steps)


@on_postgresql
@settings(max_examples=3, **PROFILE)
@given(steps=STEPS)
async def test_so_it_is_on_postgresql(stack: Stack, steps: list[Any]) -> None:
    await tell_and_rule(stack, steps)


async def tell_and_rule(stack: Stack, steps: list[Any]) -> None:
    world, told, last, here = next(_worlds), list[str](), dict[str, datetime](), set[tuple[str, str]]()
    stack.rule(True)
    for who, where, *step in steps:
        user, place = f"{who}{world}", where if where == "dm" else f"{where}{world}"
        if isinstance(step[0], str):
            text, ttl, age, named = step
            replaces = told[named % len(told)] if told and named is not None else None
            said_at = stack.clock.now - timedelta(hours=age)
            decision = await stack.remember(text, user, place, ttl=ttl, replaces=replaces, said_at=said_at)
            if decision.id:
                told.append(decision.id)
                last[decision.id] = max(said_at, last.get(decision.id, said_at))
                if where == "acme":
                    here.add((decision.id, user))
        elif told:
            new, old, ruling = step
            origin = Provenance(user, stack.clock.now, Place.parse(place))
            await stack.writer.rule(told[new % len(told)], told[old % len(told)], ruling, origin)
    await nothing_was_harmed(stack, world, last, here)


async def nothing_was_harmed(
    stack: Stack, world: int, last: dict[str, datetime], here: set[tuple[str, str]]
) -> None:
    """`last` is when each memory was stated last, `here` who stated each in the place, first or again."""
    users = [f"{name}{world}" for name in USERS]
    memories = {memory.id: memory for memory in await stack.store.where(true())}
    async with stack.database.read() as connection:
        query = memory_updates.select().where(memory_updates.c.user_id.in_(users))
        steps = (await connection.execute(query)).all()
    for step in steps:
        old, new, own = memories[step.old_id], memories[step.new_id], user_key(step.user_id)
        place = f"place:acme{world}"
        assert set(step.owners) <= {own, place}
        # Who corrects a fact of theirs to what somebody else has said before them states that too.
        agreed = step.reason in {CORRECTED, FOR_A_TIME} and (new.id, step.user_id) in here
        assert own in {*step.owners, *tellers(old.owners, old.user_id)}
        assert own in {*step.owners, *tellers(new.owners, new.user_id)} or agreed
        if step.reason not in FOLDED:
            # No decision names what is stored as replaced already: when it was stated first is not in `last`.
            assert old.created_at < max(new.created_at, last.get(new.id, new.created_at))
        if place in step.owners:
            assert old.user_id == step.user_id
            assert new.user_id == step.user_id or agreed
