"""A message that its author has edited."""

from memory.audience import Audience, Place
from memory.forgetting.hiding import reword
from memory.records import Message
from tests.memory.conftest import Stack, on_both

ACME = Place(("acme",))


async def talk(stack: Stack) -> list[Message]:
    """The messages of the conversation, as they are read there."""
    return [*await stack.transcript.last("acme", Audience.of("anna", ACME), 9)]


@on_both
async def test_a_message_stands_where_it_was_when_it_is_edited(stack: Stack) -> None:
    for n, text in enumerate(("I row", "I sing", "I swim")):
        await stack.receive(text, place="acme", id=f"m{n}", conversation="acme")
    first = (await talk(stack))[0]

    async with stack.database.write() as connection:
        new = await reword(
            connection, stack.transcript, first, "I ski", "anna", ACME, stack.clock.now, answers=()
        )
    await stack.receive("I climb", place="acme", id="m3", conversation="acme")

    assert [message.text for message in await talk(stack)] == ["I ski", "I sing", "I swim", "I climb"]
    around = await stack.transcript.neighbours([new.id], Audience.of("anna", ACME))
    assert [line.message.text for line in around[new.id]] == ["I ski", "I sing", "I swim"]
