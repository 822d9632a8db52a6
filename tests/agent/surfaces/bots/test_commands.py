"""The commands and buttons of a bot, on a real companion."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from agent.surfaces.bots.answers import Answer, Asker, Button, forget_question
from agent.surfaces.bots.commands import NOT_YOURS_TO_FORGET, UNDO_OVER, Commands
from agent.surfaces.bots.platform import Content
from hachi import Companion, Settings
from memory.audience import Place

ANA, BEN = "chat:1", "chat:2"
GENERAL = Place(("chat", "acme", "general"))
PRIVATELY, IN_GENERAL = Asker(ANA), Asker(ANA, GENERAL)
BEN_IN_GENERAL = Asker(BEN, GENERAL)
AWAY = "no longer exists"
PIN = "my bank PIN is 4711, do not tell"


@pytest.fixture
async def pet(open_pet: Callable[..., Awaitable[Companion]]) -> Companion:
    return await open_pet()


@pytest.fixture
def commands(pet: Companion) -> Commands:
    return Commands(pet)


def texts(answer: Answer) -> list[str]:
    return [item.text for item in answer.items]


def button(answer: Answer, label: str) -> Button:
    buttons = [*(answer.items[0].buttons if answer.items else ()), *answer.buttons]
    return next(button for button in buttons if button.label == label)


async def press(commands: Commands, asker: Asker, answer: Answer, label: str) -> Answer:
    pressed = button(answer, label)
    assert len(pressed.value) <= 60
    return await commands.press(asker, pressed.action, pressed.value)


async def forget(commands: Commands, asker: Asker, answer: Answer) -> Answer:
    """Press *Forget* below an answer, and once more below what it shows."""
    return await press(commands, asker, await press(commands, asker, answer, "Forget"), "Forget")


async def test_memories_lists_the_newest_first_with_a_button_to_forget(pet, commands, clock) -> None:
    assert "nothing" in (await commands.run("memories", PRIVATELY)).text
    await pet.remember("Ana lives in Lyon", user=ANA)
    clock.advance(minutes=1)
    await pet.remember("Ana has the flu", user=ANA, ttl="2d")
    answer = await commands.run("memories", PRIVATELY)
    assert texts(answer) == ["Ana has the flu", "Ana lives in Lyon"]
    now = clock()
    assert [item.note for item in answer.items] == [
        (now, ", until ", now + timedelta(days=2)),
        (now - timedelta(minutes=1),),
    ]
    assert "Lyon" in texts(await commands.run("memories", PRIVATELY, "where does she live? Lyon"))[0]
    assert "nothing of that" in (await commands.run("memories", Asker(BEN), "flu")).text
    gone = await forget(commands, PRIVATELY, answer)
    assert gone.text.splitlines()[0] == "Forgotten: Ana has the flu"
    assert gone.note[0] == "Deleted: 1 memory. "
    assert texts(await commands.run("memories", PRIVATELY)) == ["Ana lives in Lyon"]
    back = await press(commands, PRIVATELY, gone, "Undo")
    assert back.text == "I remember it again: Ana has the flu"
    over = await press(commands, PRIVATELY, gone, "Undo")
    assert (over.text, over.replaces) == (UNDO_OVER, True)
    await forget(commands, PRIVATELY, answer)
    assert AWAY in (await press(commands, PRIVATELY, answer, "Forget")).text


async def test_in_a_channel_nothing_private_is_shown(pet: Companion, commands: Commands) -> None:
    await pet.remember("Ana looks for another job", user=ANA)
    await pet.remember("Ana likes tea", user=ANA, place=GENERAL)
    await pet.tasks.update("write the application", user=ANA)
    await pet.people.set_context("role", "nurse", user=ANA)
    assert texts(await commands.run("memories", IN_GENERAL)) == ["Ana likes tea"]
    assert "job" not in str(await commands.run("memories", IN_GENERAL, "another job"))
    assert "No task" in (await commands.run("tasks", IN_GENERAL)).text
    context = str(await commands.run("context", IN_GENERAL))
    assert ("nurse" in context, "application" in context) == (False, False)


async def test_other_people_see_a_memory_of_the_channel_but_cannot_change_it(pet, commands) -> None:
    named = Asker(ANA, GENERAL, name="Ana")
    public = button(await commands.run("remember", named, "Ana lives in Lyon"), "Forget").value
    private = button(await commands.run("remember", PRIVATELY, "Ana looks for another job"), "Forget").value
    [item] = (await commands.run("memories", BEN_IN_GENERAL)).items
    assert (item.text, item.note[0], item.buttons) == ("Ana lives in Lyon", "Ana, ", ())
    for asker in (Asker(BEN), BEN_IN_GENERAL):
        for id in (public, private):
            refused = [await commands.press(asker, action, id) for action in ("delete", "undo", "private")]
            assert all(AWAY in answer.text for answer in refused)
    assert len(await pet.memories.list(user=ANA)) == 2


async def test_what_two_people_said_is_forgotten_for_one_only(pet: Companion, commands: Commands) -> None:
    for user in (BEN, ANA):
        told = await pet.remember("The office is in Lyon", user=user, place=GENERAL)
    shown = await commands.press(IN_GENERAL, "delete", str(told.id))
    answer = await press(commands, IN_GENERAL, shown, "Forget")
    assert answer.text == "Forgotten for you; somebody else told me the same here: The office is in Lyon"
    assert texts(await commands.run("memories", IN_GENERAL)) == ["The office is in Lyon"]
    assert texts(await commands.run("memories", PRIVATELY)) == []


async def test_forget_takes_an_id_or_offers_a_choice(pet: Companion, commands: Commands) -> None:
    kept = await pet.remember("Ana lives in Lyon", user=ANA)
    await pet.remember("Ana plays the cello", user=ANA)
    by_id = await commands.run("forget", PRIVATELY, str(kept.id)[:8])
    assert texts(by_id) == ["Ana lives in Lyon"]
    choice = await commands.run("forget", PRIVATELY, "the cello")
    assert choice.text == "Which one shall I forget?"
    assert "Forgotten" in (await forget(commands, PRIVATELY, choice)).text
    assert (await press(commands, PRIVATELY, by_id, "Forget")).text == "Forgotten: Ana lives in Lyon"
    assert "nothing" in (await commands.run("forget", PRIVATELY, "something-else")).text


async def test_a_first_press_on_forget_shows_what_goes_and_forgets_nothing(pet, commands) -> None:
    await pet.respond("I have a yak", user=ANA, settle=True)
    await pet.respond("what do I have?", user=ANA, settle=True)
    answer = await commands.run("memories", PRIVATELY)
    shown = await press(commands, PRIVATELY, answer, "Forget")
    assert (shown.text, texts(shown), shown.outcome) == ("Shall I forget this?", texts(answer), "")
    assert "1 message and 2 replies go with it" in str(shown.items[0].note)
    assert len(await pet.memories.list(user=ANA)) == 1
    kept = await press(commands, PRIVATELY, shown, "Keep it")
    assert kept.replaces
    assert len(await pet.memories.list(user=ANA)) == 1
    assert "Forgotten" in (await press(commands, PRIVATELY, shown, "Forget")).text
    assert await pet.memories.list(user=ANA) == []


async def test_trace_shows_the_askers_own_last_turn_in_this_place(pet: Companion, commands: Commands) -> None:
    assert "no trace" in (await commands.run("trace", PRIVATELY)).text
    await pet.respond("I broke my shoulder", user=ANA)
    await pet.respond("I love jasmine tea", user=BEN, place=GENERAL)
    await pet.settle()
    answer = await commands.run("trace", PRIVATELY)
    assert texts(answer)[0] == "You: I broke my shoulder"
    assert any("remember(" in line for line in texts(answer))
    assert ANA not in str(answer)
    assert answer.note[0].startswith("trace ")
    assert "no trace" in (await commands.run("trace", IN_GENERAL)).text
    assert "jasmine tea" in texts(await commands.run("trace", BEN_IN_GENERAL))[0]


async def test_what_is_listened_to_is_shown_and_a_wrong_word_is_told(commands: Commands) -> None:
    async def may_set() -> bool:
        return True

    assert "messages that mention me" in (await commands.listen(IN_GENERAL, "", may_set)).text
    assert "one of: mentions, everything" in (await commands.listen(IN_GENERAL, "loudly", may_set)).text
    assert "direct messages" in (await commands.listen(PRIVATELY, "nothing", may_set)).text


async def test_privacy_says_where_messages_are_sent(pet, commands, monkeypatch) -> None:
    assert "Nothing leaves" in str(await commands.run("privacy", PRIVATELY))
    own = {"openai_base_url": "http://127.0.0.1:9/v1", "model": "small"}
    two = own | {"fallback_model": "gpt-5@openai"}
    told_of_two = "the model small or, while it does not answer, gpt-5 at OpenAI."
    for settings, told in (({}, "gpt-5-mini at OpenAI"), (own, "the model small."), (two, told_of_two)):
        monkeypatch.setattr(type(pet), "settings", Settings.load(openai_api_key="sk-test", **settings))
        assert told in str(await commands.run("privacy", PRIVATELY))


async def test_a_person_has_nothing_of_theirs_kept_here_or_anywhere_and_takes_it_back(
    pet: Companion, commands: Commands, rows: Callable[..., Any]
) -> None:
    async def kept() -> tuple[int, int]:
        for place, text in ((GENERAL, "my bike is red"), (None, "my cat is grey")):
            for user in (ANA, BEN):
                await pet.respond(text, user=user, place=place, author="Ana", settle=True)
        await pet.settle()
        mine = rows("SELECT place FROM messages WHERE user_id = ?", ANA)
        return sum(row["place"] != "" for row in mine), sum(row["place"] == "" for row in mine)

    before = await commands.run("privacy", IN_GENERAL)
    here = await press(commands, IN_GENERAL, before, "Store nothing of mine here")
    assert texts(here)[0].startswith("Nothing about you here")
    assert await kept() == (0, 2)
    assert rows("SELECT * FROM traces WHERE user_id IS NULL") == [], "of that no trace is kept either"
    elsewhere = await commands.run("privacy", PRIVATELY)
    assert "Channels where I store nothing of yours, as you asked: 1." in str(elsewhere)
    anywhere = await press(commands, PRIVATELY, elsewhere, "Store nothing of mine")
    assert texts(anywhere)[0].startswith("Nothing about you, anywhere")
    assert await kept() == (0, 2)
    assert "wants nothing kept" in (await commands.run("remember", PRIVATELY, "I am tall")).text
    back = await press(commands, IN_GENERAL, anywhere, "Store my messages again")
    assert texts(back)[0].startswith("Your messages to me")
    assert await kept() == (2, 4)


async def test_errors_are_answered_and_not_raised(pet: Companion, commands: Commands) -> None:
    await pet.components.database.close()
    (pet.settings.home / "hachi.db").write_bytes(b"this is no database, and never was one")
    answer = await commands.run("memories", PRIVATELY)
    assert "reach my memory" in answer.text
    assert "trace_" in answer.text
    assert "hachi.db" not in answer.text


# What a person asks in words to forget, and what they delete.


async def known(pet: Companion) -> str:
    facts = [memory.content for memory in await pet.memories.list(user=ANA)]
    return str([*facts, *(message.text for message in await pet.conversations.messages(user=ANA))])


async def test_what_stays_near_it_can_be_forgotten_too(pet: Companion, commands: Commands) -> None:
    for fact in ("Ana takes citalopram at night", "Ana takes citalopram for her depression"):
        told = await pet.remember(fact, user=ANA)
    shown = await commands.press(PRIVATELY, "delete", str(told.id))
    gone = await press(commands, PRIVATELY, shown, "Forget")
    assert texts(gone) == ["Ana takes citalopram at night"]
    again = await forget(commands, PRIVATELY, gone)
    assert again.text == "Forgotten: Ana takes citalopram at night"
    assert await pet.memories.list(user=ANA) == []


async def test_nobody_else_can_confirm(pet: Companion, commands: Commands) -> None:
    await pet.respond(PIN, user=ANA, place=GENERAL)
    reply = await pet.respond("please forget my bank PIN", user=ANA, place=GENERAL)
    assert reply.forget is not None
    question = forget_question(reply.forget)
    assert (await press(commands, BEN_IN_GENERAL, question, "Forget")).text == NOT_YOURS_TO_FORGET
    assert "4711" in await known(pet)
    gone = await press(commands, IN_GENERAL, question, "Forget")
    assert (await press(commands, BEN_IN_GENERAL, gone, "Undo")).text == UNDO_OVER
    assert "4711" not in await known(pet)


async def test_of_whoever_wants_nothing_kept_no_message_is_remembered(commands: Commands, pet) -> None:
    said = Content("Ben", "I live in Lyon")
    assert "Remembered" in (await commands.remember_message(IN_GENERAL, said, BEN)).text
    await pet.people.keep(False, user=BEN, place=GENERAL)
    assert (
        "store nothing of theirs"
        in (await commands.remember_message(IN_GENERAL, Content("Ben", "I row"), BEN)).text
    )
    assert len(await pet.memories.list(user=ANA, place=GENERAL)) == 1


async def test_a_person_lets_it_ask_how_things_went_sees_what_is_planned_and_why(pet, commands, plan) -> None:
    for asker, text, told in (
        (PRIVATELY, "", "Check-ins are off"),
        (PRIVATELY, "perhaps", "Use /checkins on or off"),
        (IN_GENERAL, "on", "in our direct messages"),
        (PRIVATELY, " ON ", "between 9 and 20 o'clock in UTC, until you tell me your time zone"),
        (PRIVATELY, "off", "Check-ins are off"),
    ):
        assert told in (await commands.run("checkins", asker, text)).text
    await pet.respond("My exam is today", user=ANA)
    await plan(ANA, "her exam")
    shown = await commands.run("checkins", PRIVATELY)
    assert texts(shown) == ["her exam"]
    assert "“My exam is today”" in str(shown.items[0].note)


async def test_a_code_links_two_accounts_once_its_account_was_confirmed(
    pet: Companion, commands: Commands
) -> None:
    await pet.respond("Hello", user=ANA, author="Ana")
    await pet.remember("Ana's boat is called Gull", user=ANA)
    phone = Asker("other:7", prefix="/hachi-")
    given = await commands.run("link", PRIVATELY)
    code = given.text.split()[0]
    assert f"/link {code} on Discord, /hachi-link {code} on Slack" in given.text
    asked = await commands.run("link", phone, code.lower())
    assert "the code of Ana on Chat. " in asked.text
    assert "do not" in asked.text
    assert await pet.people.accounts(user=ANA) == [], "nothing is linked before it is confirmed"
    linked = await press(commands, phone, asked, "It is mine: link them")
    assert linked.text == "Linked: Ana on Chat. /hachi-unlink separates them."
    listed = await commands.run("memories", phone)
    assert texts(listed) == ["Ana's boat is called Gull"]
    assert listed.items[0].note[0] == "Ana on Chat, ", "whose it is"
    private = {item.label: item.text for item in (await commands.run("privacy", phone)).items}
    assert private["Linked accounts"] == "Ana on Chat; /hachi-unlink separates them."
    gone = await forget(commands, phone, listed)
    assert gone.text.startswith("Forgotten: Ana's boat")
    assert await pet.memories.list(user=ANA) == []
    assert (await commands.run("unlink", PRIVATELY)).text == "No longer linked with an account on Other."
    assert (await commands.run("unlink", PRIVATELY)).text == "This account is not linked."
    assert "wrong, used or older" in (await commands.run("link", phone, code)).text


async def test_codes_are_neither_given_nor_taken_in_a_channel(pet: Companion, commands: Commands) -> None:
    code = await pet.people.link_code(user=BEN)
    for answer in (
        await commands.run("link", IN_GENERAL),
        await commands.run("link", IN_GENERAL, code),
        await commands.press(IN_GENERAL, "link", code),
        await commands.run("unlink", IN_GENERAL),
    ):
        assert answer.text.startswith("Use this command in our direct messages")
    await commands.press(PRIVATELY, "link", code)
    assert BEN not in str(await commands.run("privacy", IN_GENERAL))
    assert await pet.people.accounts(user=ANA) == [BEN]


async def test_forget_me_asks_for_one_account_or_all(pet: Companion, commands: Commands) -> None:
    for user in (ANA, BEN):
        await pet.remember(f"{user} likes tea", user=user)
    await commands.press(PRIVATELY, "link", await pet.people.link_code(user=BEN))
    asked = await commands.run("forget-me", PRIVATELY)
    assert (asked.items[0].text, [button.label for button in asked.buttons]) == (
        "an account on Chat",
        ["Forget me", "Forget all my accounts", "Keep it"],
    )
    assert "is deleted" in (await press(commands, PRIVATELY, asked, "Forget all my accounts")).text
    assert await pet.memories.list(user=BEN) == []
