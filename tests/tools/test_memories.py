"""The tools that look into memory and add to it."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from memory.audience import Place

CHANNEL = Place(("acme", "general"))


async def test_what_is_remembered_is_found(turn: Any, clock: Any) -> None:
    kept = await turn.call(
        "remember",
        content="Ana is in Rome",
        subjects=["Ana", "rome"],
        ttl="7d",
        type="insight",
        importance=0.7,
    )

    assert kept == {
        "ok": True,
        "action": "add",
        "id": kept["id"],
        "content": "Ana is in Rome",
        "reason": "new",
        "expires_at": (clock() + timedelta(days=7)).isoformat(timespec="minutes"),
        "close": [],
    }
    assert [decision.id for decision in turn.context.decisions] == [kept["id"]]
    found = await turn.call("search_memories", query="where is Ana?")
    [memory] = found["memories"]
    assert (memory["id"], memory["kind"], memory["content"]) == (kept["id"], "memory", "Ana is in Rome")
    assert memory["expires_at"] == kept["expires_at"]
    assert 0 < memory["score"] <= 1
    assert [hit.id for hit in turn.context.recalled] == [kept["id"]]
    stored = await turn.pet.memory(kept["id"], user="ana")
    assert (stored.type, stored.importance, stored.source) == ("insight", 0.7, "conversation")


async def test_past_messages_are_found_with_their_author_unless_they_are_in_sight(
    turn: Any, turn_of: Callable[..., Any]
) -> None:
    said = {"author": "Bob", "text": "the boat is green", "sent_at": "2025-05-01T10:00:00+00:00"}
    await turn.pet.import_messages([said], user="ana")

    found = await turn.call("search_memories", query="boat")

    [message] = found["memories"]
    assert (message["kind"], message["content"], message["author"]) == ("message", "the boat is green", "Bob")
    assert message["created_at"] == "2025-05-01T10:00+00:00"
    in_sight = turn_of("ana", shown=frozenset({message["id"]}))
    assert await in_sight.call("search_memories", query="boat") == {
        "memories": [],
        "note": "nothing beyond what is before you already",
        "ok": True,
    }


async def test_recent_memories_come_newest_first(turn: Any, clock: Any) -> None:
    for city in ("Rome", "Oslo", "Lima"):
        await turn.call("remember", content=f"Ana saw {city}", subjects=[], ttl=None)
        clock.advance(minutes=1)

    recent = await turn.call("get_recent_memories", limit=2)

    assert [memory["content"] for memory in recent["memories"]] == ["Ana saw Lima", "Ana saw Oslo"]
    assert len((await turn.call("get_recent_memories"))["memories"]) == 3, "the limit may be left out"


@pytest.mark.parametrize(
    ("given", "tags"),
    [
        (["Ana", " Ski ", "ski", ""], ("ana", "ski")),
        ("Ana, ski,", ("ana", "ski")),
        ("ana", ("ana",)),
        (None, ()),
        ("", ()),
        ([], ()),
    ],
)
async def test_tags_are_read_however_they_are_given(turn: Any, given: Any, tags: tuple[str, ...]) -> None:
    kept = await turn.call("remember", content="Ana skis", subjects=given, ttl=None)

    stored = await turn.pet.memory(kept["id"], user="ana")
    assert stored.subjects == tags


async def test_a_search_may_keep_to_tags(turn: Any) -> None:
    await turn.call("remember", content="Ana skis in Verbier", subjects=["ski"], ttl=None)
    await turn.call("remember", content="Ana cooks in Verbier", subjects=["cooking"], ttl=None)

    found = await turn.call("search_memories", query="Verbier", subjects="Cooking")

    assert [memory["content"] for memory in found["memories"]] == ["Ana cooks in Verbier"]


async def test_a_ttl_that_cannot_be_read_loses_nothing_and_is_told(turn: Any) -> None:
    kept = await turn.call("remember", content="Ana skis", subjects=[], ttl="a good while")

    assert (kept["action"], kept["expires_at"]) == ("add", None)
    assert kept["note"] == "ttl 'a good while' cannot be read, so it is kept for good; use a form such as 7d"


@pytest.mark.parametrize("ttl", [None, "null", "permanent", "forever"])
async def test_what_holds_for_good_needs_no_note(turn: Any, ttl: str | None) -> None:
    kept = await turn.call("remember", content="Ana skis", subjects=[], ttl=ttl)

    assert kept["expires_at"] is None
    assert "note" not in kept


async def test_a_number_for_a_ttl_is_told_like_any_other_that_cannot_be_read(turn: Any) -> None:
    kept = await turn.call("remember", content="Ana skis", subjects=[], ttl=7)

    assert kept["action"] == "add"
    assert "'7' cannot be read" in kept["note"]


async def test_arguments_that_are_left_out_are_done_without(turn: Any) -> None:
    kept = await turn.call("remember", content="Ana skis")

    assert (kept["ok"], kept["action"], kept["expires_at"]) == (True, "add", None)


async def test_a_correction_names_what_it_replaces_by_the_beginning_of_its_id(turn: Any) -> None:
    old = await turn.call("remember", content="Ana's locker is 12", subjects=[], ttl=None)

    new = await turn.call(
        "remember", content="Ana's locker is 21", subjects=[], ttl=None, replaces=old["id"][:8]
    )

    assert new["action"] == "replace"
    assert turn.context.decisions[1].target_id == old["id"]
    assert [memory.content for memory in await turn.pet.memories(user="ana")] == ["Ana's locker is 21"]


@pytest.mark.parametrize("replaces", [None, "", "null", "None"])
async def test_replacing_nothing_may_be_said_in_several_ways(turn: Any, replaces: str | None) -> None:
    kept = await turn.call("remember", content="Ana skis", subjects=[], ttl=None, replaces=replaces)

    assert kept["action"] == "add"


async def test_what_is_close_is_shown_so_that_it_can_be_corrected(turn: Any) -> None:
    old = await turn.call("remember", content="Ana's sister lives in Rome", subjects=[], ttl=None)

    new = await turn.call("remember", content="Ana's brother lives in Rome", subjects=[], ttl=None)

    assert new["action"] == "add"
    assert new["close"] == [{"id": old["id"], "content": "Ana's sister lives in Rome"}]


async def test_what_a_search_has_just_brought_is_not_stored_as_new(turn: Any) -> None:
    said = {"author": "Ana", "text": "I saw a heron by the lake", "sent_at": "2025-05-01T10:00:00+00:00"}
    await turn.pet.import_messages([said], user="ana")
    await turn.call("search_memories", query="heron")

    echoed = await turn.call("remember", content="I saw a heron by the lake", subjects=[], ttl=None)

    assert (echoed["action"], echoed["id"]) == ("ignore", None)
    assert "only repeats what was recalled" in echoed["reason"]


async def test_the_message_of_the_turn_is_the_evidence(turn_of: Callable[..., Any]) -> None:
    turn = turn_of("ana", text="I ski", message_id="5c8a2f0e-0000-4000-8000-000000000000")
    said = {"id": turn.context.message_id, "author": "Ana", "text": "I ski", "sent_at": turn.pet.clock()}
    await turn.pet.import_messages([said], user="ana")

    kept = await turn.call("remember", content="Ana skis", subjects=[], ttl=None)

    stored = await turn.pet.memory(kept["id"], user="ana")
    assert stored.message_id == "5c8a2f0e-0000-4000-8000-000000000000"


async def test_each_turn_reads_and_writes_for_its_own_audience(turn_of: Callable[..., Any]) -> None:
    await turn_of("ana").call("remember", content="Ana's code is 4417", subjects=[], ttl=None)
    await turn_of("ana", place=CHANNEL).call("remember", content="Ana's boat is green", subjects=[], ttl=None)

    async def known(user: str, **where: Any) -> set[str]:
        found = await turn_of(user, **where).call("get_recent_memories", limit=9)
        return {memory["content"] for memory in found["memories"]}

    assert await known("ana") == {"Ana's code is 4417", "Ana's boat is green"}
    assert await known("bob", place=CHANNEL) == {"Ana's boat is green"}
    assert await known("bob") == set()


async def test_nothing_is_read_or_written_of_somebody_anonymous(
    turn: Any, turn_of: Callable[..., Any]
) -> None:
    kept = await turn.call("remember", content="Ana skis", subjects=[], ttl=None)
    nobody = turn_of(None)

    for looked in (
        await nobody.call("search_memories", query="Ana"),
        await nobody.call("get_recent_memories", limit=5),
    ):
        assert looked["memories"] == []
        assert "anonymous" in looked["note"]
    for replaces in (None, kept["id"]):
        told = await nobody.call("remember", content="x", subjects=[], ttl=None, replaces=replaces)
        assert (told["ok"], "anonymous" in told["error"]) == (False, True)
    with pytest.raises(AssertionError, match="anonymous"):
        nobody.context.origin()
    assert nobody.context.audience.keys == frozenset()


async def test_other_names_are_told(turn: Any) -> None:
    await turn.call("remember", content="Dev is really called Mickael", subjects=["dev", "mickael"], ttl=None)
    await turn.call("remember", content="Mickael plays the cello", subjects=["mickael"], ttl=None)

    found = await turn.call("search_memories", query="what does Dev play?")

    assert found.get("also_known_as")
    assert "Mickael plays the cello" in [memory["content"] for memory in found["memories"]]


async def test_a_refused_fact_says_why(turn: Any) -> None:
    trifling = await turn.call("remember", content="Ana said hm", subjects=[], ttl=None, importance=0.1)
    long = await turn.call("remember", content="x" * 2001, subjects=[], ttl=None)

    assert (trifling["action"], trifling["reason"]) == ("ignore", "importance 0.1 is under 0.3")
    assert "longer than 2000 characters" in long["reason"]


async def test_what_was_going_on_includes_every_open_task(turn: Any, clock: Any) -> None:
    for n in range(12):
        await turn.pet.services.tasks.update("ana", f"water plant {n}", "open", now=clock())
    await turn.pet.services.tasks.update("ana", "feed the cat", "open", now=clock())
    await turn.pet.services.tasks.update("ana", "feed the cat", "done", now=clock())

    found = await turn.call("get_recent_memories", limit=1)

    assert len(found["open_tasks"]) == 12
    assert {len(task["id"]) for task in found["open_tasks"]} == {8}


async def test_a_pasted_page_that_is_found_is_cut(turn: Any) -> None:
    page = {"author": "Bob", "text": "the boat is green " * 500, "sent_at": "2025-05-01T10:00:00+00:00"}
    await turn.pet.import_messages([page], user="ana")

    found = await turn.call("search_memories", query="boat")

    assert len(found["memories"][0]["content"]) < 1_600
    assert found["memories"][0]["content"].endswith("more characters)")
