"""Where a reminder is delivered, and what is said of the model."""

from typing import Any

import pytest

from agent.surfaces.bots.answers import Answer
from agent.surfaces.bots.running import CLOSED, reminder_sender, who_answers
from hachi import Companion, Settings
from memory.audience import PRIVATE, Place
from memory.people.due_tasks import Reminder

ANA = "chat:1"
GENERAL, LAST = Place(("chat", "acme", "general")), Place(("chat", "acme", "random"))


@pytest.mark.parametrize(
    ("place", "open_", "delivered"),
    [
        (GENERAL, {GENERAL, PRIVATE}, [(GENERAL, "call Lucie", "chat:9")]),
        (PRIVATE, {GENERAL, PRIVATE}, [(PRIVATE, "call Lucie", "chat:9")]),
        (GENERAL, {PRIVATE}, [(PRIVATE, "call Lucie")]),
        (GENERAL, {LAST}, [(LAST, CLOSED.text)]),
        (PRIVATE, {GENERAL}, []),
    ],
)
async def test_the_place_comes_first_then_direct_messages_then_a_hint_where_they_spoke_last(
    pet: Companion, place: Place, open_: set[Place], delivered: list[tuple[Any, ...]]
) -> None:
    message = {"author": "Ana", "text": "hello", "sent_at": pet.clock()}
    await pet.conversations.import_messages([message], user=ANA, place=LAST)
    sent: list[tuple[Any, ...]] = []

    async def post(user: str, where: Place, answer: Answer, *asked_in: str) -> bool:
        if where in open_:
            sent.append((where, answer.text, *asked_in))
        return where in open_

    task = (await pet.tasks.update("call Lucie", user=ANA, place=place)).task
    send = reminder_sender(pet.people.places, Place(("chat",)), post)
    assert await send(Reminder(task, place, "c", "chat:9"), "call Lucie") is bool(delivered)
    assert sent == delivered


def test_it_is_said_which_model_answers() -> None:
    assert "stand-in" in who_answers(Settings.load(openai_api_key=None))
    assert who_answers(Settings.load(openai_api_key="sk-test", model="tiny")) == "the model tiny answers"
