"""What was imported is learned from: the oldest conversation first, within a limit, and the cost is told."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hachi import BadInput
from hachi.testing import AnsweringModel

FIRST = datetime(2024, 3, 1, 12, tzinfo=UTC)


def talk(name: str, began: datetime, count: int) -> list[dict[str, Any]]:
    return [
        {
            "chat": name,
            "id": f"{name} {n}",
            "author": "Ana",
            "text": f"In {name} I saw bird number {n}.",
            "sent_at": (began + timedelta(minutes=n)).isoformat(),
        }
        for n in range(count)
    ]


def finds(asked: str) -> dict[str, Any]:
    name = next(name for name in ("Lyon", "Rome") if f"In {name}" in asked)
    fact = {"text": f"Ana watches birds in {name}", "importance": "high", "tags": ["ana"], "messages": [1]}
    return {"summary": f"Birds in {name}.", "new_facts": [fact], "new_preferences": [], "task_updates": []}


async def test_imported_conversations_are_learned_from_oldest_first(open_pet):
    model = AnsweringModel(then=finds)
    pet = await open_pet(given=AnsweringModel(), consolidating=model, consolidate_per_day=1)
    # The file has the younger conversation first; one is longer than what is usually read behind.
    messages = talk("Rome", FIRST + timedelta(days=300), 4) + talk("Lyon", FIRST, 130)
    await pet.conversations.import_messages(messages, user="ana")

    cost = await pet.preview_learn(user="ana")
    assert (cost.conversations, cost.messages, cost.calls) == (2, 134, 7)
    assert cost.model == "AnsweringModel"
    read: list[int] = []
    part = await pet.learn(user="ana", calls=2, progress=read.append)
    assert (part.conversations, part.calls, sum(read), part.remaining.messages) == (0, 2, 48, 86)
    whole = await pet.learn(user="ana", calls=50, progress=read.append)
    assert (whole.conversations, whole.calls, sum(read), whole.remaining.messages) == (2, 5, 134, 0)

    places = ["Lyon" if "In Lyon" in asked else "Rome" for asked in model.asked]
    assert places == ["Lyon"] * 6 + ["Rome"]
    assert "bird number 0." in model.asked[0]
    facts = {fact.content: f"{fact.created_at:%Y-%m-%d}" for fact in await pet.memories.list(user="ana")}
    assert facts == {"Ana watches birds in Lyon": "2024-03-01", "Ana watches birds in Rome": "2024-12-26"}
    assert (part.facts, whole.facts) == (1, 1)
    await pet.settle()
    assert len(model.asked) == 7, "nothing was left for the person's own budget"
    assert (await pet.learn(user="ana", calls=5)).calls == 0


async def test_a_conversation_about_which_no_answer_can_be_read_is_left_and_the_next_is_learned_from(
    open_pet,
):
    model = AnsweringModel("null", "{}", then=finds)
    pet = await open_pet(given=AnsweringModel(), consolidating=model)
    messages = talk("Lyon", FIRST, 4) + talk("Rome", FIRST + timedelta(days=300), 4)
    await pet.conversations.import_messages(messages, user="ana")

    learned = await pet.learn(user="ana", calls=3)

    assert (learned.conversations, learned.calls, learned.remaining.messages) == (1, 3, 4)
    assert [fact.content for fact in await pet.memories.list(user="ana")] == ["Ana watches birds in Rome"]


async def test_without_a_model_there_is_nothing_that_learns(open_pet):
    pet = await open_pet()
    with pytest.raises(BadInput, match="no model consolidates here"):
        await pet.learn(user="ana", calls=5)
    with pytest.raises(BadInput, match="calls: 0 is not a whole number"):
        await pet.learn(user="ana", calls=0)
