"""Commands and buttons, as Slack sends them."""

import re
from typing import Any

import pytest
from slack_server import SlackServer, buttons_of

from agent.surfaces.bots.commands import COMMANDS, LISTEN
from hachi import Companion
from memory.audience import Place

CODE = r"[2-9A-Z]{5}-[2-9A-Z]{5}"
NAMES = "|".join(command.name for command in (*COMMANDS, LISTEN))
DM, GENERAL = "D1", "C1"
ANA = "slack:T1:UANA"
HERE = Place(("slack", "T1", GENERAL))


@pytest.fixture
async def ask(bot: Any, slack: SlackServer) -> Any:
    """`await ask(payload)`: the answer that only the person sees."""

    async def asked(payload: dict[str, Any]) -> dict[str, Any]:
        before = len(slack.responses)
        await slack.deliver(payload)
        await slack.until(lambda: len(slack.responses) > before)
        assert slack.responses[-1]["response_type"] == "ephemeral"
        container = payload.get("container") or payload.get("message") or {}
        assert slack.responses[-1].get("thread_ts") == container.get("thread_ts")
        return slack.responses[-1]

    return asked


def button(answer: dict[str, Any], label: str) -> dict[str, Any]:
    return next(one for one in buttons_of(answer["blocks"]) if one["text"]["text"] == label)


async def test_every_command_is_answered(ask: Any, slack: SlackServer) -> None:
    for command in (*COMMANDS, LISTEN):
        plain = await ask(slack.command(f"/{command.name}", user="UANA"))
        prefixed = await ask(slack.command(f"/hachi-{command.name}", user="UANA"))
        texts = [re.sub(CODE, "CODE", answer["text"]) for answer in (plain, prefixed)]
        assert re.sub(rf"/(?={NAMES})(?!link CODE on Discord)", "/hachi-", texts[0]) == texts[1]


async def test_memories_are_listed_with_buttons_to_forget_them(ask, slack, pet) -> None:
    for fact in ("Ana likes <!channel> & tea", "Ana lives in Lyon"):
        await pet.remember(fact, user=ANA)
    answer = await ask(slack.command("/memories", user="UANA"))
    assert "Ana likes &lt;!channel&gt; &amp; tea" in answer["text"]
    assert "Ana likes <!channel> & tea" in str(answer["blocks"]), "as it is, in a rich_text block"
    [at] = [at for at, block in enumerate(answer["blocks"]) if "Lyon" in str(block)]
    [forget] = answer["blocks"][at + 1]["elements"]
    shown = await ask(slack.pressed(forget, user="UANA"))
    assert shown["text"].startswith("Shall I forget this?\nAna lives in Lyon")
    assert shown["replace_original"] is False
    gone = await ask(slack.pressed(button(shown, "Forget"), user="UANA"))
    assert "Forgotten: Ana lives in Lyon" in gone["text"]
    assert gone["replace_original"] is True
    in_channel = await ask(slack.command("/memories", user="UANA", channel=GENERAL))
    assert "tea" not in str(in_channel)


async def test_further_pages_and_confirmed_buttons_replace_their_message(ask, slack, pet, clock) -> None:
    for number, word in enumerate("tea rain bread chess Lyon rowing cats Bach snow mint".split()):
        clock.advance(minutes=1)
        await pet.remember(f"Fact {number}: Ana wrote about {word} in letter {number}", user=ANA)
    first = await ask(slack.command("/memories", user="UANA"))
    second = await ask(slack.pressed(button(first, "More"), user="UANA"))
    assert ("tea" in second["text"], "mint" in second["text"]) == (True, False)
    assert second["replace_original"] is True
    back = await ask(slack.pressed(button(second, "Back"), user="UANA"))
    assert back["text"] == first["text"]
    asked = await ask(slack.command("/forget-me", user="UANA"))
    kept = await ask(slack.pressed(button(asked, "Keep it"), user="UANA"))
    assert kept["replace_original"] is True
    assert "deleted" in (await ask(slack.pressed(button(asked, "Forget me"), user="UANA")))["text"]
    assert await pet.memories.list(user=ANA) == []


async def test_remember_reads_slacks_markup(ask: Any, slack: SlackServer, pet: Companion) -> None:
    answer = await ask(slack.command("/remember", "<@UANA|ana> likes 1 &lt; 2", user="UANA"))
    assert "@ana likes 1 &lt; 2" in answer["text"]
    assert [memory.content for memory in await pet.memories.list(user=ANA)] == ["@ana likes 1 < 2"]
    shown = await ask(slack.pressed(button(answer, "Forget"), user="UANA"))
    assert (await ask(slack.pressed(button(shown, "Keep it"), user="UANA")))["replace_original"] is True
    assert len(await pet.memories.list(user=ANA)) == 1
    await ask(slack.pressed(button(shown, "Forget"), user="UANA"))
    assert await pet.memories.list(user=ANA) == []
    again = await ask(slack.command("/remember", "Ana likes 1 and 2", user="UANA"))
    known = await ask(slack.command("/remember", "ana likes 1 and 2!", user="UANA"))
    assert ("Remembered" in again["text"], "known word for word" in known["text"]) == (True, True)
    asked = await ask(slack.command("/pet-remember", user="UANA"))
    assert "/pet-remember Ana prefers tea" in asked["text"]


async def test_a_slack_that_takes_no_answer_breaks_nothing(ask, slack, caplog) -> None:
    command = slack.command("/privacy", user="UANA")
    for nowhere in (f"{slack.url}/nowhere", "http://127.0.0.1:1/nowhere"):
        await slack.deliver(command | {"response_url": nowhere})
    await slack.until(lambda: caplog.text.count("cannot show an answer") == 2)
    assert (await ask(command))["text"]


@pytest.mark.parametrize(
    ("who", "refused", "allowed"),
    [("admin", "", True), ("creator", "", True), ("admin", "users.info", False)],
)
async def test_admins_and_the_creator_of_a_channel_set_what_is_listened_to(
    ask: Any, slack: SlackServer, bot: Any, who: str, refused: str, allowed: bool
) -> None:
    slack.admins |= {"UANA"} if who == "admin" else set()
    slack.creators |= {GENERAL: "UANA"} if who == "creator" else {}
    slack.refused |= {refused: "fatal_error"} if refused else {}
    await slack.deliver(slack.command("/listen", "Everything", user="UANA", channel=GENERAL))
    await slack.until(lambda: slack.responses)
    [answer] = slack.responses
    assert ("Only people who manage" in answer["text"]) is not allowed
    assert answer["response_type"] == ("in_channel" if allowed else "ephemeral")
    assert answer["text"].startswith("Ana has set: Here I answer every message") is (allowed and not refused)
    assert await bot.hachi.pet.people.places.listening(HERE) == ("everything" if allowed else "mentions")


async def test_a_message_is_remembered_from_its_menu(ask, slack, pet) -> None:
    said = {"type": "message", "user": "UBEN", "ts": "1.7", "text": "I live in Lyon", "thread_ts": "1.1"}
    told = await ask(slack.menu("remember", said, user="UANA", channel=GENERAL))
    assert told["text"].startswith("Remembered, for everybody in this channel")
    assert [memory.content for memory in await pet.memories.list(user=ANA, place=HERE)] == [
        "Ben said: “I live in Lyon”"
    ]
    empty = await ask(slack.menu("remember", said | {"text": ""}, user="UANA", channel=GENERAL))
    assert "no text" in empty["text"]
