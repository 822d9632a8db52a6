"""The commands of a bot, asked of a real companion."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from agent import Companion
from agent.surfaces.bots.answers import Answer, Asker, Button, ReceiptUpdate
from agent.surfaces.bots.commands import PAGE, Commands
from agent.surfaces.bots.items import Receipt, receipts_of
from memory.audience import Place

ANA, BEN = "chat:1", "chat:2"
GENERAL = Place(("chat", "acme", "general"))
IN_PRIVATE = Asker(ANA)
IN_GENERAL = Asker(ANA, GENERAL)


@pytest.fixture
async def pet(open_pet: Callable[..., Awaitable[Companion]]) -> Companion:
    return await open_pet()


@pytest.fixture
def commands(pet: Companion) -> Commands:
    return Commands(pet)


def texts(answer: Answer) -> list[str]:
    return [item.text for item in answer.items]


def button(answer: Answer, label: str, at: int = 0) -> Button:
    buttons = [*answer.items[at].buttons, *answer.buttons] if answer.items else answer.buttons
    return next(button for button in buttons if button.label == label)


async def press(commands: Commands, asker: Asker, answer: Answer, label: str, at: int = 0) -> Answer:
    pressed = button(answer, label, at)
    assert len(pressed.value) <= 60
    return await commands.press(asker, pressed.action, pressed.value)


async def test_what_is_remembered_is_listed_newest_first(
    pet: Companion, commands: Commands, clock: Any
) -> None:
    assert "nothing" in (await commands.run("memories", IN_PRIVATE)).text
    await pet.remember("Ana lives in Lyon", user=ANA)
    clock.advance(minutes=1)
    await pet.remember("Ana has the flu", user=ANA, ttl="2d")
    answer = await commands.run("memories", IN_PRIVATE)
    assert texts(answer) == ["Ana has the flu", "Ana lives in Lyon"]
    assert [item.note for item in answer.items] == ["2026-11-21 until Monday", "2026-11-21"]


async def test_a_query_finds_what_bears_on_it(pet: Companion, commands: Commands) -> None:
    await pet.remember("Ana's sister Lucie is allergic to nuts", user=ANA)
    await pet.remember("Ana plays the cello", user=ANA)
    assert "Lucie" in texts(await commands.run("memories", IN_PRIVATE, "who is allergic to nuts?"))[0]
    assert "nothing of that" in (await commands.run("memories", Asker(BEN), "nuts")).text


async def test_a_memory_is_taken_away_with_its_button(pet: Companion, commands: Commands) -> None:
    await pet.remember("Ana lives in Lyon", user=ANA)
    answer = await commands.run("memories", IN_PRIVATE)
    assert (await press(commands, IN_PRIVATE, answer, "Forget")).text == "Forgotten: Ana lives in Lyon"
    assert await pet.memories(user=ANA) == []
    assert "not there any more" in (await press(commands, IN_PRIVATE, answer, "Forget")).text


async def test_long_lists_come_in_pages(pet: Companion, commands: Commands) -> None:
    for number in range(PAGE + 2):
        await pet.remember(f"Ana's locker {number} has the code {number * 1111}", user=ANA)
    answer = await commands.run("memories", IN_PRIVATE)
    assert len(answer.items) == PAGE
    more = await press(commands, IN_PRIVATE, answer, "More")
    assert len(more.items) == 2
    assert set(texts(answer)).isdisjoint(texts(more))
    assert more.buttons == ()
    assert texts(await commands.press(IN_PRIVATE, "more", "nonsense")) == texts(answer)


async def test_in_a_channel_nothing_is_shown_that_was_said_in_private(
    pet: Companion, commands: Commands
) -> None:
    await pet.remember("Ana looks for another job", user=ANA)
    await pet.remember("Ana likes tea", user=ANA, place=GENERAL)
    await pet.services.tasks.put(ANA, "write the application", now=pet.clock())
    await pet.set_context("role", "nurse", user=ANA)
    assert texts(await commands.run("memories", IN_GENERAL)) == ["Ana likes tea"]
    assert "nothing of that" in (await commands.run("memories", IN_GENERAL, "job")).text or texts(
        await commands.run("memories", IN_GENERAL, "job")
    ) == ["Ana likes tea"]
    assert "No task" in (await commands.run("tasks", IN_GENERAL)).text
    assert "nurse" not in str(await commands.run("context", IN_GENERAL))
    assert "application" not in str(await commands.run("context", IN_GENERAL))


async def test_others_see_what_was_said_in_the_channel_and_cannot_take_it_away(
    pet: Companion, commands: Commands
) -> None:
    decision = await pet.remember("Ana likes tea", user=ANA, place=GENERAL)
    [item] = (await commands.run("memories", Asker(BEN, GENERAL))).items
    assert (item.text, item.buttons) == ("Ana likes tea", ())
    forged = await commands.press(Asker(BEN, GENERAL), "delete", str(decision.id))
    assert "not there any more" in forged.text
    assert len(await pet.memories(user=ANA)) == 1


async def test_remember_keeps_a_fact_and_can_be_taken_back(pet: Companion, commands: Commands) -> None:
    answer = await commands.run("remember", IN_PRIVATE, "Ana lives in Lyon")
    assert texts(answer) == ["Ana lives in Lyon"]
    assert "between us" in answer.text
    again = await commands.run("remember", IN_PRIVATE, "ana lives in LYON!")
    assert "known word for word" in again.text
    assert "Forgotten" in (await press(commands, IN_PRIVATE, answer, "Undo")).text
    assert await pet.memories(user=ANA) == []


async def test_taking_back_what_replaced_something_brings_that_back_here_and_in_private(
    pet: Companion, commands: Commands
) -> None:
    await pet.remember("Ana lives in Paris", user=ANA, place=GENERAL)
    answer = await commands.run("remember", IN_GENERAL, "Ana lives in Paris with Bo")
    assert "channel" in answer.text
    undone = await press(commands, IN_GENERAL, answer, "Undo")
    assert undone.text == "Taken back. I hold on to: Ana lives in Paris"
    assert texts(await commands.run("memories", IN_GENERAL)) == ["Ana lives in Paris"]
    assert texts(await commands.run("memories", IN_PRIVATE)) == ["Ana lives in Paris"]
    assert "not there any more" in (await press(commands, IN_GENERAL, answer, "Undo")).text


async def test_taking_back_in_private(pet: Companion, commands: Commands) -> None:
    await pet.remember("Ana lives in Paris", user=ANA)
    answer = await commands.run("remember", IN_PRIVATE, "Ana lives in Paris with Bo")
    await press(commands, IN_PRIVATE, answer, "Undo")
    assert texts(await commands.run("memories", IN_PRIVATE)) == ["Ana lives in Paris"]


async def test_a_fact_told_in_a_channel_is_made_private(pet: Companion, commands: Commands) -> None:
    answer = await commands.run("remember", IN_GENERAL, "Ana lives in Lyon")
    done = await press(commands, IN_GENERAL, answer, "Make private")
    assert done.text == "Between us now: Ana lives in Lyon"
    assert "stands there" in done.note
    assert done.update == ReceiptUpdate("Ana lives in Lyon", "made private")
    assert texts(await commands.run("memories", IN_PRIVATE)) == ["Ana lives in Lyon"]
    assert texts(await commands.run("memories", Asker(BEN, GENERAL))) == []
    again = await press(commands, IN_GENERAL, answer, "Make private")
    assert ("not there any more" in again.text, again.update) == (True, None)


async def test_a_fact_is_said_differently_and_that_is_taken_back(pet: Companion, commands: Commands) -> None:
    answer = await commands.run("remember", IN_GENERAL, "Ana lives in Lyon")
    id = button(answer, "Edit").value
    assert await commands.text_to_edit(IN_GENERAL, id) == "Ana lives in Lyon"
    changed = await commands.edit(IN_GENERAL, id, "Ana lives in Lille")
    assert (changed.text, texts(changed)) == ("Changed to:", ["Ana lives in Lille"])
    assert changed.update == ReceiptUpdate("Ana lives in Lyon", "changed")
    assert texts(await commands.run("memories", Asker(BEN, GENERAL))) == ["Ana lives in Lille"]
    await press(commands, IN_GENERAL, changed, "Undo")
    assert texts(await commands.run("memories", Asker(BEN, GENERAL))) == ["Ana lives in Lyon"]


@pytest.mark.parametrize("content", ["", " ", "Ana lives in Lyon", "x" * 2_001])
async def test_words_that_say_nothing_new_change_nothing(
    pet: Companion, commands: Commands, content: str
) -> None:
    answer = await commands.run("remember", IN_GENERAL, "Ana lives in Lyon")
    told = await commands.edit(IN_GENERAL, button(answer, "Edit").value, content)
    assert (told.text.startswith("Nothing was changed: "), told.update) == (True, None)
    assert texts(await commands.run("memories", IN_GENERAL)) == ["Ana lives in Lyon"]


async def test_nobody_else_is_shown_the_words_or_changes_them(pet: Companion, commands: Commands) -> None:
    public = button(await commands.run("remember", IN_GENERAL, "Ana lives in Lyon"), "Edit").value
    private = button(await commands.run("remember", IN_PRIVATE, "Ana looks for another job"), "Edit").value
    for asker in (Asker(BEN), Asker(BEN, GENERAL)):
        for id in (public, private):
            words = await commands.text_to_edit(asker, id)
            assert isinstance(words, Answer)
            assert "job" not in words.text
            told = await commands.edit(asker, id, "Ana is a spy")
            assert "not there any more" in told.text
    assert isinstance(await commands.text_to_edit(IN_GENERAL, private), Answer)
    assert texts(await commands.run("memories", IN_GENERAL)) == ["Ana lives in Lyon"]


async def test_what_somebody_else_said_too_is_forgotten_as_theirs_alone(
    pet: Companion, commands: Commands
) -> None:
    for user in (BEN, ANA):
        told = await pet.remember("The office is in Lyon", user=user, place=GENERAL)
    answer = await commands.press(IN_GENERAL, "delete", str(told.id))
    assert answer.text == "Forgotten as yours; somebody else said it here too: The office is in Lyon"
    assert texts(await commands.run("memories", IN_GENERAL)) == ["The office is in Lyon"]
    assert texts(await commands.run("memories", IN_PRIVATE)) == []


async def test_what_was_replaced_since_is_not_taken_back_by_an_old_button(
    pet: Companion, commands: Commands, clock: Any
) -> None:
    await pet.remember("Ana lives in Paris", user=ANA, place=GENERAL)
    answer = await commands.run("remember", IN_GENERAL, "Ana lives in Paris with Bo")
    clock.advance(minutes=1)
    await commands.run("remember", IN_GENERAL, "Ana lives in Paris with Bo since 2020")
    assert "not there any more" in (await press(commands, IN_GENERAL, answer, "Undo")).text
    assert texts(await commands.run("memories", IN_GENERAL)) == ["Ana lives in Paris with Bo since 2020"]


async def test_forget_takes_an_id_or_lets_one_choose(pet: Companion, commands: Commands) -> None:
    kept = await pet.remember("Ana lives in Lyon", user=ANA)
    await pet.remember("Ana plays the cello", user=ANA)
    assert (await commands.run("forget", IN_PRIVATE, str(kept.id)[:8])).text == "Forgotten: Ana lives in Lyon"
    choice = await commands.run("forget", IN_PRIVATE, "the cello")
    assert choice.text == "Which one shall I forget?"
    assert "Forgotten" in (await press(commands, IN_PRIVATE, choice, "Forget")).text
    assert "nothing" in (await commands.run("forget", IN_PRIVATE, "something-else")).text


async def test_forget_me_asks_first(pet: Companion, commands: Commands) -> None:
    await pet.remember("Ana lives in Lyon", user=ANA)
    asked = await commands.run("forget-me", IN_PRIVATE)
    assert "cannot be undone" in asked.text
    assert "nothing was changed" in (await press(commands, IN_PRIVATE, asked, "Keep it")).text
    assert len(await pet.memories(user=ANA)) == 1


async def test_forget_me_takes_everything_away(pet: Companion, commands: Commands) -> None:
    await pet.remember("Ana lives in Lyon", user=ANA)
    await pet.services.tasks.put(ANA, "call Lucie", now=pet.clock())
    await pet.remember("Ben lives in Nice", user=BEN)
    asked = await commands.run("forget-me", IN_PRIVATE)
    assert "is gone" in (await press(commands, IN_PRIVATE, asked, "Forget me")).text
    assert await pet.memories(user=ANA) == []
    assert await pet.services.tasks.list(ANA) == []
    assert len(await pet.memories(user=BEN)) == 1


async def test_tasks_are_finished_with_their_button(pet: Companion, commands: Commands) -> None:
    due = datetime(2026, 11, 23, 8, tzinfo=UTC)
    await pet.set_context("timezone", "Europe/Paris", user=ANA)
    await pet.services.tasks.put(ANA, "call the dentist", "in_progress", now=pet.clock(), due=due)
    answer = await commands.run("tasks", IN_PRIVATE)
    assert texts(answer) == ["call the dentist"]
    assert answer.items[0].note == "in progress, due 2026-11-23 09:00"
    assert (await press(commands, IN_PRIVATE, answer, "Done")).text == "Done: call the dentist"
    assert "No task" in (await commands.run("tasks", IN_PRIVATE)).text


async def test_a_task_of_somebody_else_is_not_finished(pet: Companion, commands: Commands) -> None:
    task = await pet.services.tasks.put(ANA, "call the dentist", now=pet.clock())
    assert "not open any more" in (await commands.press(Asker(BEN), "done", task.id)).text
    assert len(await pet.services.tasks.list(ANA)) == 1


async def test_the_trace_is_of_ones_own_last_message_in_this_place(
    pet: Companion, commands: Commands
) -> None:
    assert "recorded nothing" in (await commands.run("trace", IN_PRIVATE)).text
    await pet.respond("I broke my shoulder", user=ANA)
    await pet.respond("I love jasmine tea", user=BEN, place=GENERAL)
    await pet.settle()

    answer = await commands.run("trace", IN_PRIVATE)

    assert "I broke my shoulder" in texts(answer)[0]
    assert any("remember(" in line for line in texts(answer))
    assert answer.note.startswith("trace ")
    assert "recorded nothing" in (await commands.run("trace", Asker(ANA, GENERAL))).text, (
        "what is private stays there"
    )
    assert "jasmine tea" in texts(await commands.run("trace", Asker(BEN, GENERAL)))[0]


async def test_context_shows_what_is_known(pet: Companion, commands: Commands) -> None:
    assert "nothing" in (await commands.run("context", IN_PRIVATE)).text
    await pet.set_context("role", "nurse", user=ANA)
    await pet.set_context("goals", "learn the cello", user=ANA)
    await pet.set_context("prefers_bullets", "yes", user=ANA)
    await pet.services.tasks.put(ANA, "call Lucie", now=pet.clock())
    await pet.remember("Ana lives in Lyon", user=ANA, importance=0.9)
    shown = {(item.label, item.text) for item in (await commands.run("context", IN_PRIVATE)).items}
    assert {("role", "nurse"), ("goals", "learn the cello"), ("open tasks", "call Lucie")} <= shown
    assert {("prefers bullets", "yes"), ("fact", "Ana lives in Lyon")} <= shown


@pytest.mark.parametrize("allowed", [True, False])
async def test_who_manages_a_channel_sets_what_is_listened_to(commands: Commands, allowed: bool) -> None:
    async def may_set() -> bool:
        return allowed

    assert "who mentions me" in (await commands.listen(IN_GENERAL, "", may_set)).text
    changed = await commands.listen(IN_GENERAL, " Everything", may_set)
    assert ("everything that is written" if allowed else "you may not") in changed.text
    shown = await commands.listen(IN_GENERAL, "", may_set)
    assert ("everything that is written" if allowed else "who mentions me") in shown.text
    assert "one of: mentions, everything" in (await commands.listen(IN_GENERAL, "loudly", may_set)).text
    assert "direct messages" in (await commands.listen(IN_PRIVATE, "nothing", may_set)).text


async def test_privacy_says_where_it_goes(
    commands: Commands, open_pet: Callable[..., Awaitable[Companion]], tmp_path: Any
) -> None:
    assert "Nothing of it leaves" in str(await commands.run("privacy", IN_PRIVATE))
    at_openai = await open_pet(home=tmp_path / "two", openai_api_key="sk-test", embedder="bundled")
    assert "gpt-5-mini at OpenAI" in str(await Commands(at_openai).run("privacy", IN_PRIVATE))
    elsewhere = await open_pet(
        home=tmp_path / "three", openai_base_url="http://127.0.0.1:9/v1", model="small"
    )
    assert "the model small." in str(await Commands(elsewhere).run("privacy", IN_PRIVATE))


async def test_a_fault_is_told_and_not_raised(pet: Companion, commands: Commands) -> None:
    await pet.components.database.close()
    (pet.settings.home / "hachi.db").write_bytes(b"this is no database, and never was one")
    answer = await commands.run("memories", IN_PRIVATE)
    assert "reach my memory" in answer.text
    assert "trace_" in answer.text
    assert "hachi.db" not in answer.text
    assert "reach my memory" in str(await commands.text_to_edit(IN_PRIVATE, "0" * 36))
    receipt = Receipt("Ana lives in Lyon", "0" * 36, None, "delete")
    [item] = await commands.receipt_items((receipt,), IN_PRIVATE)
    assert (item.text, item.note) == ("Ana lives in Lyon", "")


async def test_a_button_that_nobody_knows_changes_nothing(commands: Commands) -> None:
    assert "nothing was changed" in (await commands.press(IN_PRIVATE, "explode")).text


async def test_receipts_say_until_when(pet: Companion, commands: Commands) -> None:
    decision = await pet.remember("Ana has the flu", user=ANA, ttl="2d")
    [item] = await commands.receipt_items(receipts_of([decision]), IN_PRIVATE)
    assert (item.text, item.note) == ("Ana has the flu", "until Monday")
    assert [(button.label, button.value) for button in item.buttons] == [
        ("Undo", decision.id),
        ("Edit", decision.id),
    ]
