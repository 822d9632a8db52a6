"""Making private what was said in a place: it is hidden there, and its author has it."""

from typing import Any

import pytest
from sqlalchemy import select

from memory.audience import Audience, Place
from memory.errors import NotFound
from memory.people.profile_entries import Entry
from memory.people.profile_store import ProfileStore
from memory.records import Decision
from memory.sql.tables import messages
from tests.memory.conftest import Stack, on_both

SHOULDER = "Mickael broke his shoulder"
SHOULDER_ON = "Mickael broke his shoulder on 10 January 2026"
PARIS, LYON = (f"Mickael lives in {city}" for city in ("Paris", "Lyon"))
MICKAEL = Audience.of("mickael")


def in_acme(user: str) -> Audience:
    return Audience.of(user, Place.parse("acme"))


async def make_private(stack: Stack, user: str = "mickael", place: str | None = "acme") -> None:
    stack.clock.advance(minutes=1)
    await stack.make_private(await stack.the_memory(user, place), user)
    stack.clock.advance(minutes=1)


async def test_what_is_made_private_is_the_tellers_alone(stack: Stack) -> None:
    decision = await stack.remember(SHOULDER, "mickael", "acme")
    await stack.indexing.catch_up()
    await make_private(stack)
    assert await stack.known("ben", "acme") == await stack.known("mickael", "acme") == set()
    for _ in range(2):  # before and after the index hears of it
        assert await stack.found("shoulder", "ben", "acme") == set()
        await stack.indexing.catch_up()
    memory = await stack.the_memory("mickael")
    assert (memory.id, memory.owners) == (decision.id, {"user:mickael"})
    assert await stack.found("shoulder", "mickael") == {SHOULDER}

    [step] = await stack.history.of(str(decision.id), MICKAEL)
    assert (step.reason, step.user_id) == ("made private", "mickael")
    assert step.old_id == step.new_id == decision.id
    for user in ("ben", "mickael"):
        assert await stack.history.of(str(decision.id), in_acme(user)) == []
    with pytest.raises(NotFound):  # saying it again makes it public, not undo
        await stack.history.undo(str(decision.id), MICKAEL, "mickael", stack.clock.now)
    with pytest.raises(NotFound):  # it is private already
        await make_private(stack, place=None)

    await stack.remember(SHOULDER, "mickael", "acme")
    assert await stack.known("ben", "acme") == {SHOULDER}


@on_both
async def test_the_places_history_loses_what_it_had_replaced_too(stack: Stack) -> None:
    first = await stack.remember(SHOULDER, "mickael", "acme")
    stack.clock.advance(days=1)
    second = await stack.remember(SHOULDER_ON, "mickael", "acme", replaces=first.id)
    await make_private(stack)
    assert await stack.known("ben", "acme") == set()
    for id in (first.id, second.id):
        assert await stack.history.of(str(id), in_acme("ben")) == []
    assert await stack.known("mickael") == {SHOULDER_ON}
    stack.clock.advance(days=1)
    await stack.history.undo(str(second.id), MICKAEL, "mickael", stack.clock.now)
    assert await stack.known("mickael") == {SHOULDER}
    assert await stack.known("ben", "acme") == set()


PARIS_TOO = "Mickael lives in Paris near the canal"


async def learn(stack: Stack, content: str, said: str, user: str = "mickael", **given: Any) -> Decision:
    """What the model finds in a message in acme."""
    message = given.pop("message_id", None) or await stack.receive(said, user, "acme")
    return await stack.remember(content, user, "acme", message_id=message, said=said, live=True, **given)


async def test_what_was_made_private_is_learned_again_only_from_a_later_message(stack: Stack) -> None:
    said = "I live in Paris, near the canal"
    message = {"message_id": await stack.receive(said, "mickael", "acme"), "said_at": stack.clock.now}
    await learn(stack, PARIS, said, **message)
    for _ in range(2):
        await make_private(stack)
        for found in (PARIS, PARIS_TOO):
            again = await learn(stack, found, said, **message)
            assert (again.action, again.id, again.target_id) == ("ignore", None, None)
            assert again.reason == "it was made private, and not said here since"
        assert (await learn(stack, PARIS, "thank you")).action == "ignore"
        assert (await stack.known("ben", "acme"), await stack.known("mickael")) == (set(), {PARIS})
        await learn(stack, PARIS, "yes: Mickael lives in Paris")
        assert await stack.known("ben", "acme") == {PARIS}
    assert (await learn(stack, "Mickael likes rowing", "I like rowing")).action == "add"


@on_both
async def test_the_place_loses_the_messages_that_told_it_and_their_author_keeps_them(stack: Stack) -> None:
    told = await stack.receive("I broke my shoulder. Never use emojis.", "mickael", "acme")
    answer = await stack.receive("Get well!", "mickael", "acme", role="assistant", shown=[told])
    other = await stack.receive("It is Tuesday.", "mickael", "acme")
    told_ben = "He broke his shoulder: Mickael."
    await stack.receive(told_ben, "ben", "acme", role="assistant", shown=[told])
    await stack.remember(SHOULDER, "mickael", "acme", message_id=told)
    await stack.remember("Mickael uses no emojis", "mickael", "acme", message_id=told)
    for value, message in (("broken shoulder", told), ("it is Tuesday", other)):
        entry = Entry("preferences.other_notes", value, value, stack.clock.now, frozenset({message}))
        await ProfileStore(stack.database).merge("mickael", Place.parse("acme"), [entry])
    await stack.indexing.catch_up()
    memory = next(m for m in await stack.memories("mickael") if m.content == SHOULDER)

    await stack.make_private(memory, "mickael")
    await stack.indexing.catch_up()

    for user in ("ben", "mickael"):
        page = await stack.transcript.page(in_acme(user), 10)
        assert [line.text for line in page] == ["It is Tuesday."]
        assert await stack.known(user, "acme") == {"Mickael uses no emojis"}
    own = await stack.transcript.page(MICKAEL, 10)
    assert [line.text for line in own] == ["It is Tuesday.", "I broke my shoulder. Never use emojis."]
    assert told in {hit.id for hit in await stack.search("shoulder", "mickael")}
    assert told not in {hit.id for hit in await stack.search("shoulder", "ben", "acme")}
    profiles = ProfileStore(stack.database)
    for place, notes in (("acme", {"it is Tuesday"}), (None, {"it is Tuesday", "broken shoulder"})):
        view = await profiles.view("mickael", Place.parse(place), stack.clock.now)
        assert set(view.preferences.other_notes) == notes
    async with stack.database.read() as connection:
        kept = set(await connection.scalars(select(messages.c.id)))
    assert {told, answer} <= kept, "nothing of it is ever purged"
    stack.clock.advance(days=400)
    assert await stack.purge.due() == []
    receipt, _ = await stack.forgetting.forget("memory", memory.id, "mickael")
    assert (receipt.messages, receipt.replies) == (1, 2)
