"""Stories told to a companion over days, through its public API, with a moving clock. The
statements are handed over as a model would hand them to `remember`. Where one contradicts another,
a scripted model rules; no other model takes part."""

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hachi import Companion, Settings
from memory.audience import Audience, Place
from memory.facts.similar import Doubt


class Days:
    """A clock; `days(3)` lets three days pass."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 12, 9, 0, tzinfo=UTC)

    def __call__(self, days: float = 0) -> datetime:
        self.now += timedelta(days=days)
        return self.now


@pytest.fixture
def days() -> Days:
    return Days()


@pytest.fixture
async def pet(tmp_path: Path, days: Days) -> AsyncIterator[Companion]:
    settings = Settings.load(home=tmp_path, embedder="bundled")
    async with Companion.open(settings, clock=lambda: days.now, upkeep=False) as companion:
        yield companion


class Judge:
    """A model that rules these statements to end each other, and nothing else."""

    def __init__(self, *statements: str) -> None:
        self.statements = statements

    async def __call__(self, doubts: Sequence[Doubt]) -> list[bool]:
        return [{doubt.old, doubt.new} <= set(self.statements) for doubt in doubts]


async def known(pet: Companion, user: str = "mickael", place: str | None = None) -> list[str]:
    return [memory.content for memory in await pet.memories.list(user=user, place=place)]


async def found(pet: Companion, question: str, user: str = "mickael", place: str | None = None) -> list[str]:
    return [hit.content for hit in await pet.search_memories(question, user=user, place=place)]


async def test_a_move_of_house_the_new_address_holds_and_the_old_one_is_kept_in_the_history(
    pet: Companion, days: Days
) -> None:
    here, there, back = "Mickael lives in Paris", "Mickael moved to Lyon", "Mickael moved back to Paris"
    pet.components.similar.judge = Judge(here, there)
    await pet.remember(here, user="mickael", subjects=["mickael"])
    days(30)
    moved = await pet.remember(there, user="mickael", subjects=["mickael"])
    assert await known(pet) == [there]
    assert [step.old_content for step in await pet.memories.history(moved.id or "", user="mickael")] == [here]
    days(30)
    await pet.remember(back, user="mickael", subjects=["mickael"])
    assert back in await known(pet)


async def test_the_flip_flop_only_a_newer_statement_replaces(pet: Companion, days: Days) -> None:
    likes, dislikes = "מיכאל אוהב קפה", "מיכאל כבר לא אוהב קפה"
    pet.components.similar.judge = Judge(likes, dislikes)
    monday, tuesday, wednesday = days(), days(1), days(1)
    await pet.remember(likes, user="mickael", subjects=["mickael"], said_at=monday)
    await pet.remember(dislikes, user="mickael", subjects=["mickael"], said_at=wednesday)
    assert await known(pet) == [dislikes]
    late = await pet.remember(likes, user="mickael", subjects=["mickael"], said_at=tuesday)
    assert await known(pet) == [dislikes], f"said on Tuesday, it must not undo Wednesday: {late}"
    days(1)
    await pet.remember(likes, user="mickael", subjects=["mickael"])
    assert await known(pet) == [likes], "he may change his mind back"


async def test_ill_for_a_week_gone_after_it_before_and_after_the_purge(pet: Companion, days: Days) -> None:
    ill, question = "Mickael est malade", "comment va Mickael ?"
    decision = await pet.remember(ill, user="mickael", subjects=["mickael"], ttl="7d")
    days(6.9)
    assert await found(pet, question) == [ill]
    days(0.2)
    assert await known(pet) == []
    assert await found(pet, question) == []
    assert decision.id is not None
    assert await pet.components.index.present([decision.id]) == {decision.id}, "the purge has not run yet"
    assert [memory.content for memory in await pet.admin.purge()] == [ill]
    assert await pet.components.index.present([decision.id]) == set()
    assert (await pet.remember(ill, user="mickael", subjects=["mickael"], ttl="7d")).action == "add"


async def test_what_everybody_may_know_greets_who_is_new_and_is_found_by_all(pet: Companion) -> None:
    common = "The club meets on Thursdays"
    await pet.remember(common, user="operator", everybody=True)
    assert await found(pet, "when does the club meet?", user="ana") == [common]
    assert await found(pet, "when does the club meet?", user="ana", place="acme/general") == [common]
    for pet_name in ("Rex", "Mia", "Tom", "Zoe", "Pip"):
        recent = [hit.content for hit in await pet.components.recall.recent(Audience.of("ana"), 10)]
        assert common in recent, "who has fewer than five memories is new here"
        await pet.remember(f"Ana has a cat called {pet_name}", user="ana", subjects=["ana"])
    recent = [hit.content for hit in await pet.components.recall.recent(Audience.of("ana"), 10)]
    assert len(recent) == 5
    assert common not in recent


async def test_a_name_learned_in_private_opens_nothing_to_others(pet: Companion) -> None:
    await pet.remember("dev is also called Mickael", user="ana", subjects=[])
    for user in ("ana", "ben"):
        await pet.remember("Mickael plays the cello", user=user, subjects=[])
    await pet.remember("Mickael sings on Mondays", user="ana", subjects=[], place="acme/general")
    assert "Mickael plays the cello" in await found(pet, "what does dev play?", user="ana")
    widened = await pet.components.recall.aliases(Audience.of("ben"))
    assert widened.others("dev") == ()
    in_the_channel = await pet.components.recall.aliases(Audience.of("ana", Place.parse("acme/general")))
    assert in_the_channel.others("dev") == (), "not even to the one who told it, where others read along"
    said = await pet.remember("dev sings on Mondays", user="ana", subjects=[], place="acme/general")
    assert said.action == "add", "that the two are one must not show in the channel"
