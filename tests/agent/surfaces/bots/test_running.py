"""Where a reminder is delivered, and what is said of the model."""

import pytest

from agent.surfaces.bots.running import CLOSED, reminder_sender, who_answers
from hachi import Companion, Settings
from memory.audience import Place

ANA = "chat:1"
GENERAL, LAST = Place(("chat", "acme", "general")), Place(("chat", "acme", "random"))


@pytest.mark.parametrize(
    ("place", "open_", "delivered"),
    [
        (GENERAL, {GENERAL, None}, [(GENERAL, "call Lucie")]),
        (None, {GENERAL, None}, [(None, "call Lucie")]),
        (GENERAL, {None}, [(None, "call Lucie")]),
        (GENERAL, {LAST}, [(LAST, CLOSED)]),
        (None, {GENERAL}, []),
    ],
)
async def test_the_place_comes_first_then_direct_messages_then_a_hint_where_they_spoke_last(
    pet: Companion, place: Place | None, open_: set[Place | None], delivered: list[tuple[Place | None, str]]
) -> None:
    message = {"author": "Ana", "text": "hello", "sent_at": pet.clock()}
    await pet.conversations.import_messages([message], user=ANA, place=LAST)
    sent: list[tuple[Place | None, str]] = []

    async def post(user: str, where: Place | None, text: str) -> bool:
        if where in open_:
            sent.append((where, text))
        return where in open_

    send = reminder_sender(pet.people.places, Place(("chat",)), post)
    assert await send(ANA, place, "call Lucie") is bool(delivered)
    assert sent == delivered


def test_it_is_said_which_model_answers() -> None:
    assert "stand-in" in who_answers(Settings.load(openai_api_key=None))
    assert who_answers(Settings.load(openai_api_key="sk-test", model="tiny")) == "the model tiny answers"
