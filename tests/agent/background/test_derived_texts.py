"""At no time do summaries and profiles hold what was corrected, has expired or was forgotten. The model that
consolidates is scripted to repeat everything that it is given, but for what it is told no longer holds."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from hachi import Companion
from hachi.testing import AnsweringModel

OpenPet = Callable[..., Awaitable[Companion]]

WORDS = ("Lisbon", "Porto", "Berlin", "flu", "peanuts", "resign", "cello")


def quoted_words(asked: str) -> list[str]:
    """What a prompt of the consolidation quotes."""
    quoted = " ".join(line for line in asked.splitlines() if line.startswith(">"))
    return [word for word in WORDS if word in quoted and word not in over(asked)]


def over(asked: str) -> str:
    """What a prompt of the consolidation says no longer holds."""
    lines = asked.partition("no longer holds.")[2].partition("\n- `")[0].splitlines()[1:]
    return " ".join(line.partition(" (since then")[0] for line in lines if line.startswith(">"))


def echo(asked: str) -> dict[str, Any]:
    words = ", ".join(quoted_words(asked))
    talk = asked.partition("## What was said")[2].partition("## What to look for")[0]
    places = [place for place in re.findall("|".join(WORDS[:3]), talk) if place not in over(asked)]
    answer: dict[str, Any] = {"summary": f"They spoke of {words}."}
    if "memory_summary" in asked:
        answer["memory_summary"] = f"All in all: {words}."
    if places:
        answer["new_preferences"] = [{"key": "location", "value": places[-1]}]
    return answer


def learning(content: str, reply: str = "I see.", **draft: Any) -> dict[str, Any]:
    return {"message": reply, "memories": [{"content": content, "importance": 0.9, **draft}]}


class Story:
    def __init__(self, pet: Companion, model: AnsweringModel, consolidating: AnsweringModel) -> None:
        self.pet, self.model, self.consolidating = pet, model, consolidating

    async def say(self, text: str, content: str = "", place: str | None = None, **draft: Any) -> None:
        self.model.answers = [learning(content, **draft)] if content else []
        await self.pet.respond(text, user="ana", place=place)
        await self.pet.settle()

    async def answer(self, text: str, reply: str) -> None:
        self.model.answers = [{"message": reply}]
        await self.pet.respond(text, user="ana")

    async def derived(self, place: str | None = None) -> str:
        """All derived texts that a prompt, a search, a profile or an export shows."""
        self.model.answers = []
        await self.pet.respond("And now?", user="ana", place=place)
        prompt = self.model.inputs[-1][-1]["content"]
        hits = await self.pet.search_memories("what about Lisbon Porto flu resign", user="ana", place=place)
        context = await self.pet.people.context(user="ana", place=place)
        texts: list[Any] = [hit.content for hit in hits if hit.kind == "summary"]
        texts += [prompt, {**context.to_json(), "long_term_facts": []}]
        if place is None:
            export = await self.pet.conversations.export(user="ana")
            texts += [export["summaries"], export["context"]]
        return " ".join(map(str, texts))

    async def summaries(self) -> str:
        return str((await self.pet.conversations.export(user="ana"))["summaries"])

    async def id_of(self, word: str, place: str | None = None) -> str:
        return next(m.id for m in await self.pet.memories.list(user="ana", place=place) if word in m.content)


@pytest.fixture
async def story(open_pet: OpenPet) -> Story:
    model, consolidating = AnsweringModel(), AnsweringModel(then=echo)
    pet = await open_pet(given=model, consolidating=consolidating, context_budget="200")
    return Story(pet, model, consolidating)


async def test_a_correction_in_the_conversation_ends_every_text_that_rests_on_what_it_corrects(story):
    await story.say("I play the cello.", "Ana plays the cello")
    await story.say("I live in Lisbon now.", "Ana lives in Lisbon")
    assert "Lisbon" in await story.derived()

    old = await story.id_of("Lisbon")
    await story.say("No, it is Porto.", "Ana lives in Porto", replaces=old)

    after = await story.derived()
    assert "Lisbon" not in after
    assert "Porto" in after
    assert "cello" in after, "the rest is rebuilt"


async def test_replies_are_summarised_as_they_were_given_but_for_what_no_longer_holds(story, clock):
    await story.say("I live in Lisbon now.", "Ana lives in Lisbon")
    await story.answer("Where do I live?", "In Lisbon, with your cello.")
    clock.advance(minutes=1)
    old = await story.id_of("Lisbon")
    await story.say("No, in Porto.", "Ana lives in Porto", reply="Berlin is far from there.", replaces=old)

    after = await story.derived()
    assert {word for word in WORDS if word in after} == {"Porto", "Berlin", "cello"}


async def test_a_correction_by_hand_ends_them_too_and_an_undo_turns_them_round(story):
    await story.say("I live in Lisbon now.", "Ana lives in Lisbon")
    changed = await story.pet.memories.update(await story.id_of("Lisbon"), "Ana lives in Porto", user="ana")

    assert "Lisbon" not in await story.summaries()
    await story.pet.settle()
    assert "Lisbon" not in await story.summaries()

    await story.pet.memories.undo(changed.id or "", user="ana")
    assert "Porto" not in await story.summaries()
    await story.pet.settle()
    assert "Lisbon" in await story.summaries()


async def test_what_rests_on_an_illness_ends_with_it_before_any_purge(story, clock):
    await story.say("I play the cello.", "Ana plays the cello")
    await story.say("I have the flu this week.", "Ana has the flu", ttl="7d")
    assert "flu" in await story.derived()

    clock.advance(days=8)
    assert "flu" not in await story.derived()
    await story.pet.settle()
    await story.pet.admin.purge()
    assert "flu" not in await story.derived()
    await story.pet.settle()
    after = await story.derived()
    assert "flu" not in after
    assert "cello" in after


@pytest.mark.parametrize("ends", ["in the conversation", "by hand", "by hand, later", "expires"])
async def test_what_rests_on_what_has_ended_is_written_again_though_the_talk_goes_on(story, clock, ends):
    pet, ttl = story.pet, "7d" if ends == "expires" else None
    await story.say("I play the cello.", "Ana plays the cello")
    await story.say("I live in Lisbon now.", "Ana lives in Lisbon", ttl=ttl)
    assert "Lisbon" in await story.summaries()
    old = await story.id_of("Lisbon")
    if ends == "by hand, later":
        await pet.respond("Hm.", user="ana")  # its consolidation waits for quiet

    if ends == "in the conversation":
        story.model.answers = [learning("Ana lives in Porto", replaces=old)]
        await pet.respond("No, it is Porto.", user="ana")
    elif ends == "expires":
        clock.advance(days=8)
        await pet.respond("Hello!", user="ana")
    else:
        await pet.memories.update(old, "Ana lives in Porto", user="ana")
    story.model.answers = []
    if ends == "by hand":
        await pet.respond("And the weather?", user="ana")
    await pet.settle(hurry=False)

    summary = await story.summaries()
    assert "cello" in summary
    assert "Lisbon" not in summary


async def test_a_summary_is_not_written_again_for_a_fact_that_it_does_not_tell(story):
    await story.say("I play the cello.", "Ana plays the cello")
    first = await story.summaries()
    await story.pet.remember("Ana's violin teacher is called Yo-Yo", user="ana", importance=0.9)
    await story.say("And Berlin?")
    asked = len(story.consolidating.asked)

    await story.pet.memories.update(await story.id_of("violin"), "Ana has no teacher", user="ana")
    await story.pet.memories.forget(await story.id_of("teacher"), user="ana")
    await story.pet.settle()

    assert len(story.consolidating.asked) == asked
    assert "cello" in first
    assert "cello" in await story.summaries()


async def test_a_summary_is_told_what_has_expired_though_the_purge_comes_first(story, clock):
    await story.say("I have the flu this week.", "Ana has the flu", ttl="7d")
    clock.advance(days=8)
    await story.pet.admin.purge()
    await story.pet.settle()

    assert "Ana has the flu" in over(story.consolidating.asked[-1])
    assert "flu" not in await story.summaries()
    assert [fact.content for fact in await story.pet.admin.purge()] == ["Ana has the flu"]


async def test_a_fact_that_is_forgotten_takes_the_texts_about_it(story):
    await story.say("I play the cello.", "Ana plays the cello")
    await story.say("I plan to resign.", "Ana plans to resign")
    assert "resign" in await story.derived()

    await story.pet.memories.forget(await story.id_of("resign"), user="ana")

    assert "resign" not in await story.derived()
    await story.pet.settle()
    assert "resign" not in await story.derived()


@pytest.mark.parametrize("written_meanwhile", [False, True])
async def test_after_an_undone_forgetting_nothing_is_left_out(story, written_meanwhile):
    await story.say("I play the cello.", "Ana plays the cello")
    await story.say("I plan to resign.", "Ana plans to resign")
    taken = await story.pet.memories.forget(await story.id_of("resign"), user="ana")
    if written_meanwhile:
        await story.pet.settle()
        assert "cello" in await story.summaries()
        assert "resign" not in await story.summaries()

    await story.pet.memories.undo_forget(str(taken.undo_id), user="ana")
    await story.pet.settle()

    summary = await story.summaries()
    assert [word in summary for word in ("cello", "resign")] == [True, True]


async def test_a_summary_is_never_replaced_by_nothing(story):
    await story.say("I play the cello.", "Ana plays the cello")
    story.consolidating.answers = [{"summary": ""}]
    await story.say("Hm.")

    assert len(story.consolidating.asked) == 2
    assert "cello" in await story.summaries()


async def test_a_withheld_summary_that_an_answer_leaves_empty_is_asked_for_again(story):
    await story.say("I play the cello.")
    await story.say("I plan to resign.", "Ana plans to resign")
    await story.pet.memories.forget(await story.id_of("resign"), user="ana")
    story.consolidating.answers = [{"summary": ""}]
    await story.pet.settle()
    assert "cello" not in await story.summaries()

    await story.say("Berlin is nice.")

    assert [word in await story.summaries() for word in ("cello", "Berlin", "resign")] == [True, True, False]


async def test_a_correction_in_private_leaves_the_texts_of_a_channel_as_they_are(story, clock):
    await story.say("I live in Lisbon now.", "Ana lives in Lisbon", place="acme/general")
    old = await story.id_of("Lisbon", "acme/general")
    clock.advance(minutes=1)
    await story.say("In truth it is Porto.", "Ana lives in Porto", replaces=old)

    assert "Lisbon" in await story.derived("acme/general")
    assert "Porto" not in await story.derived("acme/general")
    known = await story.pet.people.context(user="ana")
    assert known.profile.location == "Porto"


async def test_a_summary_under_way_when_its_source_ends_is_not_stored(open_pet):
    model, consolidating = AnsweringModel(), AnsweringModel(then=echo, hold="Lisbon")
    story = Story(await open_pet(given=model, consolidating=consolidating), model, consolidating)
    model.answers = [learning("Ana lives in Lisbon")]
    await story.pet.respond("I live in Lisbon now.", user="ana")
    settling = asyncio.create_task(story.pet.settle())
    await consolidating.held.wait()

    await story.pet.memories.update(await story.id_of("Lisbon"), "Ana lives in Porto", user="ana")
    consolidating.release.set()
    await settling
    await story.pet.settle()

    assert "Lisbon" not in await story.derived()


async def test_what_was_said_beside_what_has_ended_before_the_consolidation_is_noted(open_pet, clock):
    def extract(asked: str) -> dict[str, Any]:
        talk = asked.partition("## What was said")[2].partition("## What to look for")[0]
        facts = [f"Ana has {what}" for what in ("the flu", "a cello", "a sister") if what in talk]
        facts = [fact for fact in facts if fact not in over(asked)]
        new = [{"text": text, "importance": "high", "tags": ["ana"]} for text in facts]
        return {"summary": f"They spoke: {' '.join(facts)}.", "new_facts": new}

    model = AnsweringModel({"message": "I see."}, learning("Ana has the flu", ttl="1h"))
    pet = await open_pet(given=model, consolidating=AnsweringModel(then=extract))
    await pet.respond("I like tea.", user="ana")
    await pet.settle()
    await pet.respond("I have the flu and I have a cello. I have a sister, too.", user="ana")
    await (await pet.runtime()).worker.settle(hurry=False)
    clock.advance(hours=13)
    await pet.settle()

    contents = {memory.content for memory in await pet.memories.list(user="ana")}
    assert contents == {"Ana has a cello", "Ana has a sister"}
    summaries = str((await pet.conversations.export(user="ana"))["summaries"])
    assert "flu" not in summaries
    assert "cello" in summaries


async def test_a_value_in_words_of_its_own_ends_with_the_message_that_it_comes_from(open_pet):
    def name_themes(asked: str) -> dict[str, Any]:
        said = asked.partition("## What was said")[2].partition("## What to look for")[0]
        themes = [{"key": "conversation_themes", "value": "grief"}] if "funeral" in said else []
        return {"summary": "They spoke.", "new_preferences": themes}

    model = AnsweringModel(learning("Ana's aunt had a funeral"), learning("Ana knits socks"))
    pet = await open_pet(given=model, consolidating=AnsweringModel(then=name_themes))
    await pet.respond("My aunt's funeral was on Monday.", user="ana")
    await pet.respond("I knit socks.", user="ana")
    await pet.settle()
    assert (await pet.people.context(user="ana")).conversation_themes == ("grief",)

    [funeral] = [one for one in await pet.memories.list(user="ana") if "funeral" in one.content]
    await pet.memories.forget(funeral.id, user="ana")
    assert (await pet.people.context(user="ana")).conversation_themes == ("grief",), "an item of its own"
    for message in await pet.conversations.messages(user="ana"):
        if message.role == "user":
            await pet.conversations.forget(message.id, user="ana")
    await pet.settle()

    assert (await pet.people.context(user="ana")).conversation_themes == ()
    assert "grief" not in str(await pet.conversations.export(user="ana"))
