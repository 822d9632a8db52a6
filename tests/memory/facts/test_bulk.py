"""Many facts at once end as they would one by one."""

import random
from datetime import timedelta
from typing import Any

import pytest

from memory.audience import Audience, Place
from memory.facts.bulk import remember_many
from memory.facts.candidate import Provenance
from memory.records import Decision, NewMemory
from tests.memory.conftest import Stack, on_both


def statements(stack: Stack, seed: int, count: int = 40) -> list[tuple[NewMemory, timedelta, str]]:
    """Random drafts with how long ago and in which place they were told: new, told before in the same words,
    about people with two names, and ones that are refused."""
    dice = random.Random(seed)
    drafts = []
    for _ in range(count):
        n, city = dice.randrange(3), dice.choice(["Lyon", "Oslo"])
        text = dice.choice(
            [
                f"Ana keeps {n} hens in {city}",
                f"Annie keeps {n} hens in {city}",
                f"ana keeps {n} hens in {city}!",
                f"Ana saw film number {dice.randrange(100)}",
                dice.choice(["Ana is also called Annie", "", "x" * 2001, "🙂", "Ben is also called Benno"]),
            ]
        )
        about: dict[str, Any] = {
            "importance": dice.choice([0.1, 0.4, 0.6, 0.8]),
            "ttl": dice.choice([None, None, "never", "1d", "7d"]),
            "subjects": dice.choice([(), ("hens",)]),
        }
        place = dice.choice(["", "", "", "den"])
        drafts.append((NewMemory(text, **about), timedelta(days=dice.choice([0, 0, 2, 5])), place))
    return drafts


async def remember(
    stack: Stack, user: str, drafts: list[tuple[NewMemory, timedelta, str]], *, together: bool
) -> list[Decision]:
    stated = [
        (
            new_memory,
            Provenance(user, stack.clock.now - ago, Place((user, place) if place else ()), source="note"),
        )
        for new_memory, ago, place in drafts
    ]
    if together:
        return await remember_many(stack.writer, stated)
    return [decision for one in stated for decision in await stack.writer.remember_each([one])]


async def state(stack: Stack, user: str) -> list[Any]:
    """What the person knows anywhere, with what is stored of it, but for ids."""
    facts = []
    for place in (Place(), Place((user, "den"))):
        for memory in await stack.store.newest(Audience.of(user, place), stack.clock.now):
            steps = [step.reason for step in await stack.history.of(memory.id, Audience.of(user, place))]
            owners = len(memory.owners)
            about = (memory.importance, memory.expires_at, memory.subjects, memory.created_at, owners)
            facts.append((str(place)[-3:], memory.content, *about, steps))
    return sorted(facts, key=str)


@on_both
async def test_many_at_once_end_as_one_by_one(stack: Stack) -> None:
    for seed in range(2):  # the second time much of it is known
        drafts = statements(stack, seed)
        one_by_one = await remember(stack, "ana", drafts, together=False)
        together = await remember(stack, "bea", drafts, together=True)
        for one, other in zip(one_by_one, together, strict=True):
            assert (one.action, one.content, one.reason) == (other.action, other.content, other.reason)
            assert (one.id is None, one.expires_at) == (other.id is None, other.expires_at)
        assert await state(stack, "ana") == await state(stack, "bea")
        stack.clock.advance(days=3)
    assert any(decision.action in ("merge", "ignore") and decision.id for decision in together)


async def test_what_was_told_together_is_found_once(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory.facts.bulk.PER_TRANSACTION", 10)
    durable: list[int] = []
    origin = Provenance("ana", stack.clock.now)
    stated = [(NewMemory(f"Ana's shelf {n} holds red boxes"), origin) for n in range(13)]
    decisions = await remember_many(stack.writer, stated, durable.append)
    assert {decision.action for decision in decisions} == {"add"}
    assert durable == [10, 3]
    await stack.indexing.catch_up()
    assert "Ana's shelf 7 holds red boxes" in await stack.found("which boxes are on shelf 7?", "ana")
    assert {one.reason for one in await remember_many(stack.writer, stated)} == {"known word for word"}
    stack.clock.advance(seconds=1)
    corrected = NewMemory("All are blue now", replaces=decisions[7].id)
    [decision] = await remember_many(stack.writer, [(corrected, Provenance("ana", stack.clock.now))])
    assert (decision.action, decision.target_id) == ("replace", decisions[7].id)
