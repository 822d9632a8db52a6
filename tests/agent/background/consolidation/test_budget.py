"""A person's consolidations, and a place's, make so many model calls in a day; the rest waits."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import select

from agent.background.consolidation.budget import BudgetSpent, ConsolidationBudget
from hachi import Companion, Settings
from hachi.testing import AnsweringModel
from memory.sql.engine import Database
from memory.sql.tables import figures

MIDNIGHT = datetime(2026, 11, 22, tzinfo=UTC)


@pytest.fixture
def model() -> AnsweringModel:
    return AnsweringModel(then={"summary": ""})


async def say(pet: Companion, *texts: str, user: str = "ana", **where: Any) -> None:
    for text in texts:
        await pet.respond(text, user=user, **where)
        await pet.settle()


def consolidated(model: AnsweringModel, text: str) -> int:
    return sum(text in asked for asked in model.asked)


async def test_what_is_over_the_budget_waits_and_is_not_lost(open_pet, model, clock):
    pet = await open_pet(given=AnsweringModel(), consolidating=model, consolidate_per_day=2)

    await say(pet, *(f"I bought boat number {n}" for n in range(6)))

    assert len(model.asked) == 2
    waiting = await pet.admin.pending_consolidations()
    assert (waiting.jobs, waiting.until) == (1, MIDNIGHT)
    clock.advance(hours=15)
    await pet.settle()
    assert [consolidated(model, f"boat number {n}") for n in range(6)] == [1] * 6
    assert (await pet.admin.pending_consolidations()).jobs == 0


async def test_the_budget_of_a_day_holds_over_restarts(model, clock, home, light_embedder):
    settings = Settings(home=home, embedder="bundled", consolidate_per_day=1)
    for hours in (2, 13):
        answering = AnsweringModel()
        async with Companion.open(
            settings, clock=clock, model=answering, consolidation_model=model, periodic_jobs=False
        ) as pet:
            await say(pet, "I bought another boat")
            waiting = await pet.admin.pending_consolidations()
        clock.advance(hours=hours)

    assert (len(model.asked), waiting.until) == (1, MIDNIGHT)
    async with Companion.open(
        settings, clock=clock, model=answering, consolidation_model=model, periodic_jobs=False
    ) as pet:
        await pet.settle()
    assert len(model.asked) == 2, "the rest is one slice"


async def test_a_place_pays_for_what_is_said_in_it_and_nobody_for_others(open_pet, model):
    pet = await open_pet(given=AnsweringModel(), consolidating=model, consolidate_per_day=1)

    await say(pet, "I bought a boat", "I bought an oar")
    await say(pet, "I bought a cat", "I bought a dog", place="acme/general")
    await say(pet, "I bought a tent", "I bought a lamp", user="ben")

    assert [consolidated(model, f"I bought a {what}") for what in ("boat", "cat", "tent")] == [1, 1, 1]
    assert [consolidated(model, what) for what in ("an oar", "a dog", "a lamp")] == [0, 0, 0]


@pytest.mark.parametrize("on", ["sqlite", "postgresql"])
async def test_many_at_once_do_not_exceed_it_and_only_this_day_is_kept(on, request, home, clock):
    url = await request.getfixturevalue("postgresql").new() if on == "postgresql" else None
    database = await Database.open(url, home)
    budget = ConsolidationBudget(database, clock, per_day=5)
    try:
        for _ in range(2):
            tried = await asyncio.gather(
                *(budget.spend("user:ana") for _ in range(9)), return_exceptions=True
            )
            assert all(isinstance(one, BudgetSpent) for one in tried if one)
            kept = await database.rows(select(figures))
            assert max(row.value for row in kept) == 5
            assert len(kept) == 1
            clock.advance(days=1)
    finally:
        await database.close()


async def test_zero_is_any_number(home, clock, rows):
    database = await Database.open(None, home)
    budget = ConsolidationBudget(database, clock, per_day=0)
    for _ in range(4):
        await budget.spend("user:ana")
        await budget.check("user:ana")
    assert (await budget.waiting()).jobs == 0
    await database.close()
    assert rows("SELECT * FROM figures WHERE name LIKE 'consolidation calls%'") == []
