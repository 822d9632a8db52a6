"""Every message said, in order, for those it was said to."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import uuid4

import pytest

from memory.audience import PRIVATE, Audience, Place
from memory.records import Message
from memory.sql import hidden as entries
from memory.sql.messages.lines import anchors_of, lines_around
from tests.memory.conftest import Stack

ANNA, BEN, NOBODY = Audience.of("anna"), Audience.of("ben"), Audience.of(None)


def there(place: str, user: str = "anna") -> Audience:
    return Audience.of(user, Place.parse(place))


async def texts(stack: Stack, conversation: str, audience: Audience, limit: int = 100) -> list[str]:
    return [message.text for message in await stack.transcript.last(conversation, audience, limit)]


async def test_a_message_comes_back_as_it_was_said_and_stays_as_it_is(stack: Stack) -> None:
    paris, said = timezone(timedelta(hours=1)), "Ça va ? 🙂\n  — oui"
    id = await stack.receive(said, author="Anna B.", sent_at=datetime(2026, 1, 10, tzinfo=paris))
    await stack.receive("something else", id=id)
    await stack.receive("something of somebody else's", user="ben", id=id)
    [message] = await stack.transcript.last("dm:anna", ANNA, 10)
    when = datetime(2026, 1, 9, 23, tzinfo=UTC)
    assert message == Message(id, "dm:anna", "user", "Anna B.", said, when)
    assert await texts(stack, "dm:ben", BEN) == []


async def test_the_last_and_the_following_messages_are_in_the_order_they_came(stack: Stack) -> None:
    for number in range(6):
        # The clock of whoever sent them does not matter, the order in which they came does.
        sent = stack.clock.now - timedelta(hours=number)
        await stack.receive(str(number), conversation="talk", sent_at=sent)
    assert await texts(stack, "talk", ANNA, 3) == ["3", "4", "5"]
    told, seqs = await following(stack, "user:anna", 0, 100, 100)
    assert told == list("012345")
    assert seqs == sorted(seqs)
    assert (await following(stack, "user:anna", seqs[1], 3, 4))[0] == ["2", "3", "4"]
    assert (await following(stack, "user:anna", seqs[5], 3, 4))[0] == []


async def test_a_reply_in_a_place_is_the_places_since_it_may_repeat_what_others_said(stack: Stack) -> None:
    await stack.receive("what did Ben say?", place="acme/general")
    reply = await stack.receive("He is allergic to kiwifruit", place="acme/general", role="assistant")
    private = await stack.receive("Good morning, Anna", role="assistant")
    assert set(await stack.transcript.by_ids([reply, private], ANNA)) == {private}
    assert await texts(stack, "dm:anna", ANNA) == ["Good morning, Anna"]
    assert set(await stack.transcript.by_ids([reply], there("acme/general"))) == {reply}


async def test_what_is_said_is_read_where_it_was_said_and_further_in_and_by_its_speaker(stack: Stack) -> None:
    private = await stack.receive("a secret")
    hello = await stack.receive("hello all", place="acme/general")
    here = (there("acme/general", "ben"), there("acme/general/thread"))
    elsewhere = (BEN, NOBODY, there("acme"), there("acme/random"), there("general"))
    readers = [(ANNA, {private, hello}), *((one, {hello}) for one in here)]
    for audience, ids in [*readers, *((one, set[str]()) for one in elsewhere)]:
        assert set(await stack.transcript.by_ids([private, hello], audience)) == ids
        assert len(await stack.transcript.page(audience, 9)) == len(ids)
        assert await texts(stack, "dm:anna", audience) == ["a secret"] * (private in ids)
    assert await stack.transcript.by_ids([], ANNA) == {}


async def test_the_names_of_authors_are_known_where_their_messages_are_read(stack: Stack) -> None:
    assert await stack.transcript.speakers.authors(ANNA) == frozenset()
    await stack.receive("hello", author="Anna B.")
    await stack.receive("hello all", place="acme", author="Annie")
    await stack.receive("hi", user="ben", author="Ben", place="acme")
    assert await stack.transcript.speakers.authors(ANNA) == {"Anna B.", "Annie"}
    assert await stack.transcript.speakers.authors(there("acme")) == {"Annie", "Ben"}
    assert await stack.transcript.speakers.authors(there("acme/general")) == {"Annie", "Ben"}
    assert await stack.transcript.speakers.authors(NOBODY) == frozenset()
    await stack.transcript.note_name("anna", "Kit", PRIVATE)
    assert await stack.transcript.speakers.authors(ANNA) == {"Anna B.", "Annie", "Kit"}


async def test_names_read_during_a_write_are_not_cached(stack: Stack, monkeypatch: Any) -> None:
    rows = stack.database.rows

    async def and_then_anna_writes(statement: Any) -> Any:
        found = await rows(statement)
        await stack.receive("hello", author="Annie")
        return found

    monkeypatch.setattr(stack.database, "rows", and_then_anna_writes)
    assert await stack.transcript.speakers.authors(ANNA) == frozenset()
    monkeypatch.undo()
    assert await stack.transcript.speakers.authors(ANNA) == {"Annie"}


PEOPLE = {"ada": "Ada", "cyn": "Cyn", "eve": "ADA!", "bob": "Ada", "t:1": "🐙", "t:2": "🐙", "dan": "🦑"}
CALLED = PEOPLE | {"eve": "ADA! (eve)", "bob": "Ada (bob)", "t:2": "🐙 (t 2)"}


@pytest.mark.parametrize("audience", [there("acme"), None], ids=["there", "anywhere"])
async def test_who_first_bore_a_name_keeps_it_alone(stack: Stack, audience: Audience | None) -> None:
    for user, name in PEOPLE.items():
        await stack.receive("hello", user=user, author=name, place="acme")
        stack.clock.now += timedelta(seconds=1)
    assert await stack.transcript.speakers.names(PEOPLE, audience) == CALLED
    for user in PEOPLE:
        assert await stack.transcript.speakers.names([user], audience) == {user: CALLED[user]}
    await stack.receive("me again", user="ada", author="Zoe", place="acme")
    assert await stack.transcript.speakers.names(PEOPLE, audience) == CALLED | {"ada": "Zoe"}
    page = await stack.transcript.page(there("acme"), 50)
    assert [one.author for one in page if one.author == "Zoe"] == ["Zoe", "Zoe"], "what was said before too"
    assert await stack.transcript.speakers.names(["nobody"], None) == {}


async def test_only_so_many_names_and_keys_are_kept_in_memory(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.sql.messages.speakers.MOST_CACHED", 2)
    monkeypatch.setattr("memory.sql.messages.transcript.MOST_KNOWN", 4)
    speakers = stack.transcript.speakers
    for n in range(6):
        await stack.receive("hello", f"user {n}", "acme")
        assert f"user {n}" in await speakers.authors(there("acme", f"user {n}"))
        assert await speakers.label(f"user {n}", f"user {n}", Place.parse("acme")) == f"user {n}"
        assert max(len(speakers._authors), len(speakers._bearers)) <= 2
        assert len(stack.transcript._stored_keys) <= 8


async def following(stack: Stack, owner: str, seq: int, limit: int, most: int) -> tuple[list[str], list[int]]:
    lines = await stack.transcript.following("talk", owner, seq, limit, most=most)
    return [line.message.text for line in lines], [line.seq for line in lines]


async def test_only_what_its_owner_heard_follows_a_line(stack: Stack) -> None:
    await stack.receive("anna in private", conversation="talk")
    await stack.receive("ben in private", user="ben", conversation="talk")
    await stack.receive("all in acme", user="ben", place="acme", conversation="talk")
    await stack.receive("elsewhere")
    assert (await following(stack, "user:anna", 0, 9, 9))[0] == ["anna in private"]
    assert (await following(stack, "user:ben", 0, 9, 9))[0] == ["ben in private"]
    assert (await following(stack, "place:acme", 0, 9, 9))[0] == ["all in acme"]


async def around(stack: Stack, ids: list[str]) -> list[list[str]]:
    found = await lines_around(stack.database, await anchors_of(stack.database, ids))
    return sorted([line.text for line in lines] for _, lines in found)


async def test_around_messages_are_their_neighbours_neighbours_of_the_same_conversation(stack: Stack) -> None:
    told = {}
    for number in range(20):
        told[number] = await stack.receive(str(number))
        await stack.receive(f"other {number}", place="acme")
    assert await around(stack, [told[8], told[10]]) == [[str(number) for number in range(4, 15)]]


async def test_around_a_message_nobody_elses_private_messages_are_found(stack: Stack) -> None:
    everything = [await stack.receive("hello all", place="acme", conversation="session-1")]
    for user in ("anna", "ben"):
        everything.append(await stack.receive(f"a secret of {user}'s", user=user, conversation="session-1"))
    found = await around(stack, everything)
    assert [texts for texts in found if len(texts) > 1] == []
    assert {text for texts in found for text in texts} == {
        "a secret of anna's",
        "a secret of ben's",
        "hello all",
    }


async def test_an_answer_to_a_message_that_is_gone_is_not_stored(stack):
    asked = await stack.receive("my PIN is 4711")
    reply = Message(str(uuid4()), "dm:anna", "assistant", "hachi", "Noted.", stack.clock.now)
    told = {"user": "anna", "place": Place(), "now": stack.clock.now}
    async with stack.database.write() as connection:
        assert not await stack.transcript.append(connection, reply, answering=str(uuid4()), **told)
        forgetting = await entries.begin(connection, "anna", "forgotten", stack.clock.now, None)
        await entries.hide(connection, forgetting, {"message": [asked]})
        assert not await stack.transcript.append(connection, reply, answering=asked, **told)
        await entries.show(connection, "message", [asked])
        assert await stack.transcript.append(connection, reply, answering=asked, **told)
    assert await texts(stack, "dm:anna", ANNA) == ["my PIN is 4711", "Noted."]


async def test_no_link_to_a_persons_pages_is_stored(stack: Stack) -> None:
    for role in ("user", "assistant"):
        text = "[All](http://a/enter?link=hachi-link-.eJw-_x.sig), within"
        await stack.receive(text, role=role)
    assert await texts(stack, "dm:anna", ANNA) == ["[All](http://a/enter), within"] * 2
