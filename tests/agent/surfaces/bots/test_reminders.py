"""Where a reminder is delivered."""

import pytest

from agent import Companion
from agent.surfaces.bots.reminders import CLOSED, ReminderSender
from memory.audience import Place

ANA = "chat:1"
GENERAL = Place(("chat", "acme", "general"))
LAST = Place(("chat", "acme", "random"))


@pytest.mark.parametrize(
    ("place", "open_", "delivered"),
    [
        (GENERAL, {"general", "direct"}, [("general", "call Lucie")]),
        (None, {"general", "direct"}, [("direct", "call Lucie")]),
        (GENERAL, {"direct"}, [("direct", "call Lucie")]),
        (GENERAL, {"random"}, [("random", CLOSED)]),
        (None, {"general"}, []),
    ],
)
async def test_the_place_comes_first_then_direct_messages_then_a_hint_where_they_spoke_last(
    pet: Companion, place: Place | None, open_: set[str], delivered: list[tuple[str, str]]
) -> None:
    message = {"author": "Ana", "text": "hello", "sent_at": pet.clock()}
    await pet.import_messages([message], user=ANA, place=LAST)
    sent: list[tuple[str, str]] = []

    async def post(user: str, where: Place, text: str) -> bool:
        return await post_to(where.path[-1], text)

    async def post_privately(user: str, text: str) -> bool:
        return await post_to("direct", text)

    async def post_to(channel: str, text: str) -> bool:
        if channel in open_:
            sent.append((channel, text))
        return channel in open_

    sender = ReminderSender(pet.services.places, Place(("chat",)), post, post_privately)
    assert await sender.send(ANA, place, "call Lucie") is bool(delivered)
    assert sent == delivered
