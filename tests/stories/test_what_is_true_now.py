"""Stories told to a companion over days, in three languages, through its public API, with a moving clock. The
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


@pytest.mark.parametrize(
    ("short", "detailed", "question"),
    [
        (
            "Mickael broke his shoulder",
            "Mickael broke his shoulder on 10 January 2026",
            "what about the shoulder?",
        ),
        (
            "Mickael s'est cassé l'épaule",
            "Mickael s'est cassé l'épaule le 10 janvier 2026",
            "qu'est-il arrivé à son épaule ?",
        ),
        ("מיכאל שבר את הכתף", "מיכאל שבר את הכתף ב-10 בינואר 2026", "מה קרה לכתף?"),
    ],
)
async def test_the_broken_shoulder_one_memory_the_more_detailed(
    pet: Companion, days: Days, short: str, detailed: str, question: str
) -> None:
    pet.components.similar.judge = Judge(short, detailed)
    first = await pet.remember(short, user="mickael", subjects=["mickael"])
    days(2)
    second = await pet.remember(detailed, user="mickael", subjects=["mickael"])
    assert second.action == "replace"
    assert await known(pet) == [detailed]
    assert await found(pet, question) == [detailed]
    [step] = await pet.memories.history(first.id or "", user="mickael")
    assert (step.old_content, step.new_content) == (short, detailed)


@pytest.mark.parametrize(
    ("here", "there", "back"),
    [
        ("Mickael lives in Paris", "Mickael moved to Lyon", "Mickael moved back to Paris"),
        ("Mickael habite à Paris", "Mickael a déménagé à Lyon", "Mickael est revenu habiter à Paris"),
        ("מיכאל גר בפריז", "מיכאל עבר לגור בליון", "מיכאל חזר לגור בפריז"),
    ],
)
async def test_a_move_of_house_the_new_address_holds_and_the_old_one_is_kept_in_the_history(
    pet: Companion, days: Days, here: str, there: str, back: str
) -> None:
    pet.components.similar.judge = Judge(here, there)
    await pet.remember(here, user="mickael", subjects=["mickael"])
    days(30)
    moved = await pet.remember(there, user="mickael", subjects=["mickael"])
    assert await known(pet) == [there]
    assert [step.old_content for step in await pet.memories.history(moved.id or "", user="mickael")] == [here]
    days(30)
    await pet.remember(back, user="mickael", subjects=["mickael"])
    assert back in await known(pet)


@pytest.mark.parametrize(
    ("likes", "dislikes"),
    [
        ("Mickael likes coffee", "Mickael no longer likes coffee"),
        ("Mickael aime le café", "Mickael n'aime plus le café"),
        ("מיכאל אוהב קפה", "מיכאל כבר לא אוהב קפה"),
    ],
)
async def test_the_flip_flop_only_a_newer_statement_replaces(
    pet: Companion, days: Days, likes: str, dislikes: str
) -> None:
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


@pytest.mark.parametrize(
    ("team", "trip", "question"),
    [
        ("Mickael supports PSG", "Mickael is going to Greece in August", "which team does Mickael support?"),
        ("Mickael supporte le PSG", "Mickael part en Grèce en août", "quelle équipe Mickael supporte-t-il ?"),
        ("מיכאל אוהד פ.ס.ז'", "מיכאל טס ליוון באוגוסט", "איזו קבוצה מיכאל אוהד?"),
    ],
)
async def test_psg_and_greece_what_has_nothing_to_do_with_each_other_stays_side_by_side(
    pet: Companion, days: Days, team: str, trip: str, question: str
) -> None:
    assert (await pet.remember(team, user="mickael", subjects=["mickael"])).action == "add"
    days(1)
    assert (await pet.remember(trip, user="mickael", subjects=["mickael"])).action == "add"
    assert set(await known(pet)) == {team, trip}
    assert (await found(pet, question))[0] == team


@pytest.mark.parametrize(
    ("brother", "colleague"),
    [
        ("David, Mickael's brother, lives in Rome", "David from work lives in Berlin"),
        ("David, le frère de Mickael, habite à Rome", "David du bureau habite à Berlin"),
        ("דוד, אח של מיכאל, גר ברומא", "דוד מהעבודה גר בברלין"),
    ],
)
async def test_two_davids_are_two_people(pet: Companion, days: Days, brother: str, colleague: str) -> None:
    await pet.remember(brother, user="mickael", subjects=["david", "family"])
    days(1)
    await pet.remember(colleague, user="mickael", subjects=["david", "work"])
    assert set(await known(pet)) == {brother, colleague}


@pytest.mark.parametrize(
    ("ill", "question"),
    [
        ("Mickael is ill", "how is Mickael?"),
        ("Mickael est malade", "comment va Mickael ?"),
        ("מיכאל חולה", "מה שלום מיכאל?"),
    ],
)
async def test_ill_for_a_week_gone_after_it_before_and_after_the_purge(
    pet: Companion, days: Days, ill: str, question: str
) -> None:
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


@pytest.mark.parametrize(
    ("linked", "told", "question"),
    [
        ("dev is also called Mickael", "Mickael plays the cello", "what does dev play?"),
        ("dev is also called Mickael", "Mickael joue du violoncelle", "de quoi joue dev ?"),
        ("דב is also called מיכאל", "מיכאל מנגן בצ'לו", "במה דב מנגן?"),
    ],
)
async def test_two_names_one_person_until_the_link_is_taken_back(
    pet: Companion, days: Days, linked: str, told: str, question: str
) -> None:
    link = await pet.remember(linked, user="ana", subjects=[])
    days(1)
    await pet.remember(told, user="ana", subjects=[])
    assert told in await found(pet, question, user="ana")
    name = told.split()[0]
    other = "דב" if name == "מיכאל" else "Dev"
    repeated = await pet.remember(told.replace(name, other), user="ana", subjects=[])
    assert repeated.action in ("merge", "ignore"), "said of the other name, it is the same fact"
    await pet.memories.forget(link.id or "", user="ana")
    apart = await pet.remember(told.replace(name, other), user="ana", subjects=[])
    assert apart.action == "add", "with the link gone they are two people again"


async def test_what_was_put_away_by_mistake_can_be_brought_back(pet: Companion, days: Days) -> None:
    pet.components.similar.judge = Judge("Mickael lives in Paris", "Mickael moved to Lyon")
    await pet.remember("Mickael lives in Paris", user="mickael", subjects=["mickael"])
    days(1)
    moved = await pet.remember("Mickael moved to Lyon", user="mickael", subjects=["mickael"])
    undone = await pet.memories.undo(moved.id or "", user="mickael")
    assert undone.reason == "undone"
    assert await known(pet) == ["Mickael lives in Paris"]
    assert await found(pet, "where does Mickael live?") == ["Mickael lives in Paris"]


async def test_a_week_away_does_not_end_an_address(pet: Companion, days: Days) -> None:
    home, away = "Mickael lives in Paris", "Mickael lives in Rome"
    await pet.remember(home, user="mickael", subjects=["mickael"])
    await pet.remember(away, user="mickael", subjects=["mickael"], ttl="7d")
    assert set(await known(pet)) == {home, away}
    days(8)
    await pet.admin.purge()
    assert await known(pet) == [home]
    assert await found(pet, "where does Mickael live?") == [home]


async def test_what_is_said_in_private_stays_there_and_what_is_said_in_a_channel_stays_in_it(
    pet: Companion,
) -> None:
    await pet.remember("Mickael is looking for another job", user="mickael", subjects=["mickael"])
    await pet.remember("Mickael runs on Sundays", user="mickael", subjects=["mickael"], place="acme/general")
    assert await found(pet, "Mickael", place="acme/general") == ["Mickael runs on Sundays"]
    assert await found(pet, "Mickael", user="ana", place="acme/general") == ["Mickael runs on Sundays"]
    assert await found(pet, "Mickael", user="ana", place="acme/general/thread") == ["Mickael runs on Sundays"]
    assert await found(pet, "Mickael", user="ana", place="acme/random") == []
    assert await found(pet, "Mickael", user="ana", place="acme") == []
    assert await found(pet, "Mickael", user="ana") == []
    assert set(await found(pet, "Mickael")) == {
        "Mickael is looking for another job",
        "Mickael runs on Sundays",
    }


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
