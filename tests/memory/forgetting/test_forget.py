"""Forgetting a fact or a message: what is hidden, what stays, and that an undo gives back what was
readable."""

import pytest
from sqlalchemy import select

from memory.audience import Audience, Place
from memory.errors import NotFound
from memory.forgetting.hiding import replace_messages
from memory.people.profile_entries import Entry
from memory.people.profile_store import ProfileStore
from memory.records import ForgetCandidate, Forgotten, Memory
from memory.sql.hidden import hidden_among
from memory.sql.tables import metadata
from tests.memory.conftest import Stack, on_both

PIN, FACT = "my bank PIN is q4711", "Anna's bank PIN is q4711"


async def told(stack: Stack, text: str, *facts: str, user: str = "anna", place: str | None = None) -> str:
    """A message that states these facts; its id."""
    message = await stack.receive(text, user, place)
    for fact in facts:
        await stack.remember(fact, user, place, message_id=message, said=text, live=True)
    return message


async def answered(stack: Stack, text: str, user: str = "anna", place: str | None = None, *shown: str) -> str:
    return await stack.receive(text, user, place, role="assistant", author="hachi", shown=shown)


async def the_memory(stack: Stack, content: str, user: str = "anna", place: str | None = None) -> Memory:
    [memory] = [memory for memory in await stack.memories(user, place) if memory.content == content]
    return memory


async def forget(stack: Stack, content: str, user: str = "anna", place: str | None = None) -> Forgotten:
    memory = await the_memory(stack, content, user, place)
    receipt, _ = await stack.forgetting.forget("memory", memory.id, user, Place.parse(place))
    await stack.indexing.catch_up()
    return receipt


async def transcript(stack: Stack, user: str = "anna", place: str | None = None) -> list[str]:
    page = await stack.transcript.page(Audience.of(user, Place.parse(place)), 50)
    return [line.text for line in reversed(page)]


async def purge(stack: Stack) -> set[str]:
    stack.clock.advance(hours=1)
    return {id for forgetting in await stack.purge.due() for id in await stack.purge.delete(forgetting)}


async def everything(stack: Stack) -> str:
    """All rows but the log of changes."""
    tables = [table for table in metadata.sorted_tables if table.name != "changes"]
    return "\n".join([repr(row) for table in tables for row in await stack.database.rows(select(table))])


@on_both
async def test_a_fact_takes_the_messages_that_state_it_and_the_replies_to_them(stack: Stack) -> None:
    pin = await told(stack, PIN, FACT)
    await answered(stack, "Noted.")
    await told(stack, "I like tea", "Anna likes tea")
    await answered(stack, "Tea it is.")
    await told(stack, "again: it is q4711", FACT)
    memory = await the_memory(stack, FACT)
    previewed = await stack.forgetting.preview(
        ForgetCandidate(memory.id, "memory", FACT, memory.created_at, ""), "anna"
    )
    assert (previewed.messages, previewed.replies) == ((PIN, "again: it is q4711"), 1)

    receipt = await forget(stack, FACT)

    assert (receipt.content, receipt.messages, receipt.replies) == (FACT, 2, 1)
    assert await transcript(stack) == ["I like tea", "Tea it is."]
    assert await stack.known() == {"Anna likes tea"}
    assert await stack.found("bank PIN q4711") <= {"Anna likes tea", "I like tea", "Tea it is."}
    async with stack.database.read() as connection:
        assert await hidden_among(connection, [pin, memory.id, "other"]) == {pin, memory.id}
    assert {pin, memory.id} <= await purge(stack)
    assert "q4711" not in await everything(stack)


@on_both
async def test_what_else_its_message_told_stays_and_is_offered_if_no_other_told_it(stack: Stack) -> None:
    profiles, acme = ProfileStore(stack.database), Place.parse("acme")
    text = f"{PIN}, I live in Rome, and never use emojis"
    message = await told(stack, text, FACT, "Anna lives in Rome", place="acme")
    other = await told(stack, "Rome is warm", place="acme")
    for field, value, said in (("location", "Rome", {message}), ("name", "Anna", {message, other})):
        entry = Entry(f"profile.{field}", "", value, stack.clock.now, frozenset(said))
        await profiles.merge("anna", acme, [entry])
    await stack.tasks.update("anna", "call the bank", now=stack.clock.now, place=acme, message_id=message)

    receipt = await forget(stack, FACT, place="acme")
    await purge(stack)

    assert await stack.known() == {"Anna lives in Rome"}
    assert [task.description for task in await stack.tasks.list("anna", acme)] == ["call the bank"]
    assert (await profiles.view("anna", acme, stack.clock.now)).profile.location == "Rome"
    assert "q4711" not in await everything(stack)
    assert [(one.kind, one.content) for one in receipt.offered] == [
        ("entry", "location: Rome"),
        ("task", "call the bank"),
    ]
    for one in receipt.offered:
        for user, place in (("ben", acme), ("anna", Place.parse("other"))):
            with pytest.raises(NotFound):
                await stack.forgetting.forget(one.kind, one.id, user, place)
        gone, _ = await stack.forgetting.forget(one.kind, one.id, "anna", acme)
        assert (gone.content, gone.entries + gone.tasks, gone.offered) == (one.content, 1, ())
        back = await stack.forgetting.undo(str(gone.undo_id), "anna")
        assert (back.content, back.entries + back.tasks) == (one.content, 1)
        await stack.forgetting.forget(one.kind, one.id[:8], "anna", acme)
    await purge(stack)
    assert await stack.tasks.list("anna", Place()) == []
    assert "location" not in await everything(stack)
    assert (await profiles.view("anna", acme, stack.clock.now)).profile.name == "Anna"


@on_both
async def test_a_message_takes_what_no_other_one_states(stack: Stack) -> None:
    profiles, where = ProfileStore(stack.database), Place()
    first = await told(stack, "I live in Rome and row", "Anna lives in Rome", "Anna rows")
    await told(stack, "I row", "Anna rows")
    entry = Entry("profile.location", "", "Rome", stack.clock.now, frozenset({first}))
    await profiles.merge("anna", where, [entry])
    await stack.tasks.update("anna", "pack", now=stack.clock.now, place=where, message_id=first)
    stack.clock.advance(days=1)
    paris, rome = await stack.receive("no, in Paris"), await the_memory(stack, "Anna lives in Rome")
    await stack.remember("Anna lives in Paris", replaces=rome.id, message_id=paris)

    receipt, _ = await stack.forgetting.forget("message", paris, "anna")
    assert await stack.known() == {"Anna lives in Rome", "Anna rows"}
    await stack.forgetting.undo(str(receipt.undo_id), "anna")
    assert await stack.known() == {"Anna lives in Paris", "Anna rows"}

    receipt, _ = await stack.forgetting.forget("message", first, "anna")
    assert (receipt.messages, receipt.tasks) == (1, 1)
    assert await stack.known() == {"Anna lives in Paris", "Anna rows"}
    assert await stack.tasks.list("anna", where) == []
    assert (await profiles.view("anna", where, stack.clock.now)).profile.location is None
    back = await stack.forgetting.undo(str(receipt.undo_id), "anna")
    assert (back.messages, back.tasks) == (1, 1)
    assert (await profiles.view("anna", where, stack.clock.now)).profile.location == "Rome"
    with pytest.raises(NotFound):
        await stack.forgetting.forget("message", first, "ben")


@on_both
async def test_a_conversation_takes_what_its_messages_alone_state_and_nobody_elses(stack: Stack) -> None:
    def at(user: str) -> dict[str, str]:
        return {"user": user, "conversation": "chat:one"}

    pin = await stack.receive(PIN, **at("anna"))
    await stack.remember(FACT, message_id=pin, said=PIN, live=True)
    for text, role in (
        ("Noted.", "assistant"),
        ("I live in Rome", "user"),
        ("Time to call mum.", "assistant"),
    ):
        await stack.receive(text, **at("anna"), role=role, author=role)  # type: ignore[arg-type]
    await told(stack, "so I live in Rome", "Anna lives in Rome")
    await stack.receive("ben's", **at("ben"))
    await answered(stack, "Your bank PIN is q4711.")
    for user, id in (("ben", "dm:anna"), ("cleo", "chat:one"), ("anna", "chat:on"), ("anna", "")):
        with pytest.raises(NotFound):
            await stack.forgetting.forget("conversation", id, user)

    receipt, _ = await stack.forgetting.forget("conversation", "chat:one", "anna")

    assert (receipt.content, receipt.messages, receipt.replies) == (PIN, 2, 3)
    assert await transcript(stack) == ["so I live in Rome"]
    assert await stack.known() == {"Anna lives in Rome"}
    assert await transcript(stack, "ben") == ["ben's"]
    await stack.forgetting.undo(str(receipt.undo_id), "anna")
    assert len(await transcript(stack)) == 6
    assert await stack.known() == {FACT, "Anna lives in Rome"}
    await stack.forgetting.forget("conversation", "chat:one", "anna")
    await purge(stack)
    assert "q4711" not in await everything(stack)
    with pytest.raises(NotFound):
        await stack.forgetting.forget("conversation", "chat:one", "anna")


async def test_in_a_place_a_conversation_takes_what_the_person_said_and_was_answered(stack: Stack) -> None:
    for user in ("anna", "ben"):
        await stack.receive(f"{user} is here", user, "acme")
        await answered(stack, f"Hello, friend of mine {user}", user, "acme")
    await stack.forgetting.forget("conversation", "place:acme", "anna")
    assert await transcript(stack, "cleo", "acme") == ["ben is here", "Hello, friend of mine ben"]


async def test_a_conversation_takes_what_a_client_has_replaced_in_it(stack: Stack) -> None:
    first = await stack.receive("my PIN is q4711")
    async with stack.database.write() as connection:
        await replace_messages(connection, [first], "anna", stack.clock.now)
    await stack.receive("hello")
    await stack.forgetting.forget("conversation", "dm:anna", "anna")
    await purge(stack)
    assert "q4711" not in await everything(stack)


async def test_replies_that_contain_it_go_wherever_it_was_read_and_others_are_named(stack: Stack) -> None:
    await told(stack, "I live in Paris", "Anna lives in Paris", place="acme")
    memory = await the_memory(stack, "Anna lives in Paris", place="acme")
    await stack.receive("where does Anna live?", "ben", "acme")
    await answered(stack, "Anna lives in Paris.", "ben", "acme", memory.id)
    await stack.receive("is she far?", "ben", "acme")
    alone = await answered(stack, "Not at all.", "ben", "acme", memory.id)
    other = await stack.receive("and tea?", "ben", "acme")
    both = await answered(stack, "In France they drink coffee.", "ben", "acme", memory.id, other)
    await stack.receive("the fair?", "cleo", "other")
    await answered(stack, "It is in Paris, where Anna lives.", "cleo", "other")

    receipt = await forget(stack, "Anna lives in Paris", place="acme")

    assert (receipt.messages, receipt.replies, receipt.kept) == (1, 2, (both,))
    left = await transcript(stack, "ben", "acme")
    assert left == ["where does Anna live?", "is she far?", "and tea?", "In France they drink coffee."]
    assert len(await transcript(stack, "cleo", "other")) == 2
    assert alone not in {line.id for line in await stack.transcript.page(Audience.of("ben", Place()), 9)}


@on_both
async def test_by_words_goes_no_reply_to_another_that_was_not_shown_it_and_none_that_is_older(
    stack: Stack,
) -> None:
    await stack.receive("when do we meet?", "anna", "acme")
    older = "Meeting friday ten, welcome!"
    for user in ("anna", "ben"):
        await answered(stack, older, user, "acme")
    stack.clock.advance(hours=1)
    said = await told(stack, "note it please", "meeting friday ten welcome", user="ben", place="acme")
    by_chance, to_ben, shown, of_shown = (f"Noted: meeting friday ten, welcome {n}" for n in range(4))
    await answered(stack, by_chance, "anna", "acme")
    await answered(stack, to_ben, "ben", "acme")
    first = await answered(stack, shown, "anna", "acme", said)
    await answered(stack, of_shown, "cleo", "acme", first)

    receipt = await forget(stack, "meeting friday ten welcome", "ben", "acme")

    assert await transcript(stack, "anna", "acme") == ["when do we meet?", older, older, by_chance]
    assert (receipt.messages, receipt.replies, receipt.kept) == (1, 3, ())


@on_both
async def test_a_reply_that_contains_it_is_found_among_many_whatever_its_letters(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.forgetting.replies.AT_ONCE", 2)  # some of the same moment, some later
    await told(stack, "note it", "Anna keeps a Citroen in Orleans")
    for n, text in enumerate(
        ("IN ORLEANS YOU KEEP A CITROEN", "a Citroën… in Orléans you keep", "Orleans: Citroen keeping")
    ):
        await answered(stack, text)
        await answered(stack, f"In Orléans, no. {n}")
        stack.clock.advance(minutes=n)

    await forget(stack, "Anna keeps a Citroen in Orleans")

    assert await transcript(stack) == [f"In Orléans, no. {n}" for n in range(3)]


async def test_a_reply_goes_that_was_shown_it_in_a_summary(stack: Stack) -> None:
    await told(stack, "I live in Paris", "Anna lives in Paris", place="acme")
    summary = await stack.summarise("They spoke of Paris.", "anna", "acme")
    await answered(stack, "Anna lives in Paris.", "ben", "acme", summary)
    await answered(stack, "Anna may live in Paris.", "ben", "acme")

    await forget(stack, "Anna lives in Paris", place="acme")

    assert await transcript(stack, "ben", "acme") == ["Anna may live in Paris."]


async def test_a_reply_stays_that_repeats_what_somebody_else_told_where_it_stands(stack: Stack) -> None:
    paris = "Mickael lives in Paris"
    bens = await stack.remember(paris, "ben", "acme/general")
    fact = await stack.remember(paris, "anna", "acme")
    for place in ("acme", "acme/general"):
        await answered(stack, "Mickael lives in Paris.", "cleo", place, str(fact.id), str(bens.id))

    receipt = await forget(stack, paris, place="acme")

    assert receipt.replies == 1
    assert await transcript(stack, "cleo", "acme") == []
    assert await transcript(stack, "cleo", "acme/general") == ["Mickael lives in Paris."]


@on_both
async def test_what_others_said_stays_theirs(stack: Stack) -> None:
    office = "The office moves to Lyon"
    await told(stack, "the office moves to Lyon", office, place="acme")
    bens = await told(stack, "yes, it moves to Lyon", office, user="ben", place="acme")
    with pytest.raises(NotFound, match="by cleo: it was stated by somebody else"):
        await forget(stack, office, "cleo", "acme")
    await forget(stack, office, place="acme")
    for step in (lambda: purge(stack), None):
        assert await stack.known("anna") == set()
        assert await stack.known("ben") == await stack.known("cleo", "acme") == {office}
        assert await transcript(stack, "ben", "acme") == ["yes, it moves to Lyon"]
        if step:
            await step()
    memory = await the_memory(stack, office, "ben")
    assert (memory.user_id, memory.message_id) == ("ben", bens)
