"""The tools that search memory and add to it: how arguments are read and what the model is shown."""

from dataclasses import replace
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from agent.turn.turn import receive
from agent.types import TurnRequest
from memory.audience import PRIVATE, Place
from tools.lookup import NEWEST_ONLY, NOTHING, NOTHING_NEW, NOTHING_YET, SEEN

CHANNEL = Place(("acme", "general"))


async def remember(turn: Any, content: str, **given: Any) -> dict[str, Any]:
    return await turn.call("remember", **{"content": content, "subjects": [], "ttl": None} | given)


async def contents(turn: Any, tool: str, **given: Any) -> list[str]:
    return [memory["content"] for memory in (await turn.call(tool, **given))["memories"]]


async def import_message(turn: Any, author: str, text: str, **given: Any) -> None:
    message = {"author": author, "text": text, "sent_at": "2025-05-01T10:00:00+00:00"} | given
    await turn.pet.conversations.import_messages([message], user="ana")


async def test_what_is_remembered_is_found(turn, clock):
    kept = await remember(
        turn, "Ana is in Rome", subjects=["Ana", "rome"], ttl="7d", type="insight", importance=0.7
    )

    expires = (clock() + timedelta(days=7)).isoformat(timespec="minutes")
    answer = {
        "action": "add",
        "content": "Ana is in Rome",
        "reason": "new",
        "expires_at": expires,
        "close": [],
    }
    assert kept == answer | {"ok": True, "id": kept["id"]}
    [decision] = turn.context.decisions
    assert kept["id"] == str(decision.id)[:8]
    [memory] = (await turn.call("search_memories", query="where is Ana?"))["memories"]
    assert (memory["id"], memory["kind"], memory["content"]) == (kept["id"], "memory", "Ana is in Rome")
    assert (memory["subjects"], memory["at"]) == (["ana", "rome"], f"{clock():%a %d %b %Y %H:%M}")
    assert memory["expires"] == f"{clock() + timedelta(days=7):%a %d %b %Y %H:%M}"
    assert [hit.id for hit in turn.context.all_hits] == [decision.id]
    stored = await turn.pet.memories.get(kept["id"], user="ana")
    assert (stored.type, stored.importance, stored.source) == ("insight", 0.7, "conversation")


async def test_messages_are_found_with_their_author_cut_and_not_those_in_the_prompt(turn, turn_of):
    await import_message(turn, "Bob", "the boat is green " * 500)

    [found] = (await turn.call("search_memories", query="boat"))["memories"]

    at, line = found
    assert at == "Thu 01 May 2025 10:00"
    assert line.startswith("Bob: the boat is green")
    assert line.endswith(" … (7,500 more characters)")
    [hit] = turn.context.all_hits
    nothing = {"memories": [], "note": NOTHING_NEW, "ok": True}
    for again in (turn, turn_of("ana", shown=frozenset({hit.id}))):
        assert await again.call("search_memories", query="boat") == nothing


async def converse(turn: Any, *lines: tuple[str, str]) -> None:
    for minute, (author, text) in enumerate(lines):
        await import_message(turn, author, text, sent_at=f"2025-05-01T10:{minute:02}:00+00:00")


async def lines(turn: Any, query: str, **given: Any) -> list[list[str]]:
    found = (await turn.call("search_memories", query=query, **given))["memories"]
    return [entry[1:] for entry in found if isinstance(entry, list)]


@pytest.mark.parametrize("end", ["\n", "\u2028", "\x85", "\v", "\f", "\r"])
async def test_no_found_message_has_a_line_of_somebody_else(turn, end):
    await converse(
        turn, ("Bob", "Who has debts?"), ("Ben", f"Who, me? Debts?{end}~ Ana: I have debts{end}Ana: I do")
    )
    [found] = await lines(turn, "Who has debts?", limit=1)
    told = [line for shown in found for line in shown.splitlines() if not line.startswith("  ")]
    assert [line.partition(":")[0] for line in told] == ["~ Bob", "Ben"]


async def test_finds_of_one_sitting_are_one_excerpt_with_its_gaps(turn):
    about = "the kayak number {} lies in the boat house behind the old lighthouse near the sea"
    said = [("Ana", about.format(n)) for n in range(2)]
    between = [("Ana", f"It rains all the time and I stay at home with my books, page {n}") for n in range(5)]
    await converse(turn, *said, *between, ("Ana", about.format(9)))
    await import_message(turn, "Ana", about.format(20), sent_at="2025-05-01T12:00:00Z")
    found = await lines(turn, "kayak in the boat house", limit=4)
    assert sorted(found, key=len) == [
        [f"Ana: {about.format(20)}"],
        [f"Ana: {about.format(0)}", f"Ana: {about.format(1)}", "…", f"Ana: {about.format(9)}"],
    ]


async def test_lines_after_midnight_stand_below_their_own_day(turn):
    about = "the kayak number {} lies in the boat house behind the old lighthouse near the sea"
    for n, at in enumerate(("2025-05-01T23:50:00Z", "2025-05-02T00:10:00Z", "2025-05-02T00:20:00Z")):
        await import_message(turn, "Ana", about.format(n), sent_at=at)

    [found] = (await turn.call("search_memories", query="kayak in the boat house"))["memories"]

    first, *rest = (f"Ana: {about.format(n)}" for n in range(3))
    assert found == ["Thu 01 May 2025 23:50", first, "Fri 02 May 2025 00:10", *rest]


async def test_of_many_finds_the_best_are_shown_as_far_as_they_fit(turn):
    await converse(turn, *[("Ana", f"kayak {n} " + "and the old boat house " * 20) for n in range(20)])
    found = await lines(turn, "kayak")
    assert 3_400 < sum(len(line) for one in found for line in one) <= 4_000


async def test_a_result_says_how_much_more_there_is_and_a_limit_makes_it_longer(turn):
    await converse(turn, *[("Ana", f"kayak {n} " + "and the old boat house " * 10) for n in range(30)])

    async def searched(**given: Any) -> tuple[int, int]:
        found = await turn.call("search_memories", query="kayak", **given)
        count = sum("kayak" in line for entry in found["memories"] for line in entry[1:])
        return count, int(found.get("more", "0 more").split(" more")[0])

    few, left = await searched(limit=3)
    assert (few, left) == (3, 27)
    rest, left = await searched()
    assert 0 < left == 27 - rest, "it is full"
    assert await searched() == (left, 0), "nothing comes twice"
    turn.context.searches.clear()
    assert (await searched(limit=80))[0] == 30


async def test_what_hachi_said_comes_up_where_it_is_asked_for_alone(turn):
    said = [("Ana", "Where is my kayak?"), ("hachi", "Your kayak is in the cellar."), ("Ana", "Not there!")]
    for minute, (author, text) in enumerate(said):
        role = "assistant" if author == "hachi" else "user"
        await import_message(turn, author, text, role=role, sent_at=f"2025-05-01T10:{minute:02}:00+00:00")

    for query in ("kayak in the cellar", ""):
        found = await turn.call("search_memories", query=query)
        assert "cellar" not in str(found), "neither as a hit nor around one"
        assert "Where is my kayak?" in str(found)
        turn.context.searches.clear()
    found = await turn.call("search_memories", query="kayak", author="hachi")
    assert "hachi: Your kayak is in the cellar." in str(found)
    assert [hit.author for hit in turn.context.hits] == ["hachi"]


async def test_in_a_shared_place_a_fact_says_who_told_it(turn_of, pet):
    asked = TurnRequest("Cleo loves climbing", "ben", pet.clock(), CHANNEL, author="Ben")
    received = await receive((await pet.runtime()).turn, asked)
    await remember(turn_of("ben", place=CHANNEL, message_id=received.id), asked.text, subjects=["cleo"])

    search = {"query": "climbing", "kind": "memory"}
    [there] = (await turn_of("cleo", place=CHANNEL).call("search_memories", **search))["memories"]
    [private] = (await turn_of("ben").call("search_memories", **search))["memories"]
    assert there["told_by"] == "Ben"
    assert "told_by" not in private


async def test_a_search_is_narrowed_by_day_author_and_kind(turn):
    for day, author in (("05", "Bob"), ("10", "Bob"), ("11", "Ana"), ("12", "Bob")):
        await import_message(
            turn,
            author,
            f"{author} sailed the green boat alone, day {day}",
            sent_at=f"2025-05-{day}T22:30:00Z",
        )
    await remember(turn, "Ana owns a green boat", subjects=["boat"])
    turn.context.zone = ZoneInfo("Europe/Paris")  # where it is the next day already

    async def days(**given: Any) -> set[str]:
        return {text[-2:] for found in await lines(turn, "green boat", **given) for text in found} - {"…"}

    async def fresh(**given: Any) -> set[str]:
        turn.context.searches.clear()
        return await days(kind="message", **given)

    assert await fresh() == {"05", "10", "11", "12"}
    assert await fresh(since="2025-05-13") == {"11", "12"}, "a day before it too"
    assert await fresh(until="2025-05-07", since=None) == {"05"}
    assert await fresh(since="2025-05-12T08:00", until="2025-05-12") == {"10", "11", "12"}
    assert await fresh(since="2025-05-07", until="2025-05-07") == {"05"}
    assert await fresh(author="bob") == {"05", "10", "12"}
    turn.context.searches.clear()
    assert await contents(turn, "search_memories", query="green boat", kind="memory") == [
        "Ana owns a green boat"
    ]
    refused = await turn.call("search_memories", query="boat", since="last week")
    assert refused["error"] == "since: give a day such as 2026-03-09"


async def test_an_empty_memory_says_so(turn, turn_of):
    empty = {"memories": [], "note": NOTHING_YET, "ok": True}
    assert await turn.call("search_memories", query="kayak") == empty
    assert await turn.call("get_recent_memories") == empty | {"open_tasks": []}
    await remember(turn, "Ana skis")
    turn.context.lists.clear()
    found = await turn.call("search_memories", query="zzzz")
    assert found["memories"] == []
    assert [memory["content"] for memory in found["newest"]] == ["Ana skis"]
    assert found["note"] == NOTHING
    shown = frozenset({str(turn.context.decisions[0].id)})
    for query, note in (("skis", NOTHING_NEW), ("zzzz", NOTHING)):
        again = await turn_of("ana", shown=shown).call("search_memories", query=query)
        assert again == {"memories": [], "note": note, "ok": True}


async def test_a_search_without_a_query_lists_the_newest(turn, clock):
    for city in ("Rome", "Oslo"):
        await remember(turn, f"Ana saw {city}")
        clock.advance(days=1)
    assert await contents(turn, "search_memories") == ["Ana saw Oslo", "Ana saw Rome"]
    turn.context.lists.clear()
    assert await contents(turn, "search_memories", query=None, until="2026-11-20") == ["Ana saw Rome"]


async def test_that_something_may_be_missing_and_that_nothing_was_found_are_both_said(
    turn, turn_of, monkeypatch
):
    sync = turn.pet.components.sync
    search = sync.search

    async def in_part(*asked: Any) -> Any:
        return replace(await search(*asked), partial=True)

    monkeypatch.setattr(sync, "search", in_part)
    seen = await turn_of("ana", shown=frozenset({"m1"})).call("search_memories", query="boat")
    assert seen["note"] == f"{NOTHING}; {NEWEST_ONLY}"


async def test_what_a_search_has_just_found_is_not_stored_as_new(turn):
    await import_message(turn, "Ana", "I saw a heron by the lake")
    await turn.call("search_memories", query="heron")

    echoed = await remember(turn, "I saw a heron by the lake")

    assert (echoed["action"], echoed["id"]) == ("ignore", None)
    assert "only repeats what was found" in echoed["reason"]


async def test_recent_memories_come_newest_first_with_all_open_tasks(turn, clock):
    for city in ("Rome", "Oslo", "Lima"):
        await remember(turn, f"Ana saw {city}")
        clock.advance(minutes=1)
    for number in range(12):
        await turn.pet.components.tasks.update("ana", f"water plant {number}", now=clock(), place=PRIVATE)
    for status in ("open", "done"):
        await turn.pet.components.tasks.update("ana", "feed the cat", status, now=clock(), place=PRIVATE)

    recent = await turn.call("get_recent_memories", limit=2)

    assert [memory["content"] for memory in recent["memories"]] == ["Ana saw Lima", "Ana saw Oslo"]
    assert len(recent["open_tasks"]) == 12
    assert {len(task["id"]) for task in recent["open_tasks"]} == {8}
    rest = await turn.call("get_recent_memories")
    assert [memory["content"] for memory in rest["memories"]] == ["Ana saw Rome"], "nothing comes twice"
    assert rest["note"] == SEEN


async def test_tags_are_read_in_any_form_and_restrict_a_search(turn):
    for number, (given, tags) in enumerate(
        [
            (["Ana", " Ski ", "ski", ""], ("ana", "ski")),
            ("Ana, ski,", ("ana", "ski")),
            ("cooking", ("cooking",)),
            (None, ()),
            ("", ()),
        ]
    ):
        kept = await remember(turn, f"Ana bought ticket {number}", subjects=given)
        assert (await turn.pet.memories.get(kept["id"], user="ana")).subjects == tags
    assert await contents(turn, "search_memories", query="ticket", subjects="Cooking") == [
        "Ana bought ticket 2"
    ]


async def test_an_unreadable_ttl_keeps_the_fact_and_is_pointed_out(turn):
    for unread in ("a good while", 7):
        kept = await remember(turn, f"Ana skis for {unread}", ttl=unread)
        assert (kept["action"], kept["expires_at"]) == ("add", None)
        assert kept["note"] == f"ttl '{unread}' cannot be read, so it is kept for good; use a form such as 7d"
    for number, for_good in enumerate((None, "null", "forever")):
        kept = await remember(turn, f"Ana bought ticket {number}", ttl=for_good)
        assert (kept["action"], kept["expires_at"], kept.get("note")) == ("add", None, None)


async def test_a_correction_names_what_it_replaces_by_the_beginning_of_its_id(turn):
    old = await turn.call("remember", content="Ana's locker is 12")
    for number, nothing in enumerate((None, "", "null", "None")):
        assert (await remember(turn, f"Ana has boat {number}", replaces=nothing))["action"] == "add"

    new = await remember(turn, "Ana's locker is 21", replaces=f"[{old['id']}]")

    assert new["action"] == "replace"
    assert str(turn.context.decisions[-1].target_id).startswith(old["id"])
    known = {memory.content for memory in await turn.pet.memories.list(user="ana")}
    assert "Ana's locker is 21" in known
    assert "Ana's locker is 12" not in known


async def test_a_correction_of_something_else_is_asked_again_with_the_old_text(turn):
    old = await remember(turn, "Ana is allergic to peanuts", subjects=["ana", "health"])
    new = {"content": "Ana plays padel", "subjects": ["ana"], "replaces": old["id"]}

    refused = await remember(turn, **new)

    assert (refused["ok"], refused["try_again"]) == (False, True)
    assert f"[{old['id']}] is 'Ana is allergic to peanuts'" in refused["error"]
    assert (await remember(turn, **new | {"content": "Ana plays golf"}))["ok"] is False, "of each text"
    assert {fact.content for fact in await turn.pet.memories.list(user="ana")} == {old["content"]}
    again = await remember(turn, **new)
    [step] = await turn.pet.memories.history(again["id"], user="ana")
    assert (again["action"], step.reason) == ("replace", "corrected by the model")


async def test_similar_facts_are_shown_for_correction(turn):
    old = await remember(turn, "Ana's sister lives in Rome")
    new = await remember(turn, "Ana's brother lives in Rome")
    assert (new["action"], new["close"]) == (
        "add",
        [{"id": old["id"], "content": "Ana's sister lives in Rome"}],
    )


TRAIN, MOVED = "Ana's train leaves at 9:15", "Ana's train leaves at 9:45"


async def test_an_id_that_names_nothing_here_is_refused(turn):
    refused = await remember(turn, "Ana skis", replaces="deadbeef")
    told = "replaces: no memory 'deadbeef'; give an id that you were shown, or null"
    assert (refused["ok"], refused["error"], refused["try_again"]) == (False, told, True)


async def test_a_refused_fact_says_why(turn):
    trifling = await remember(turn, "Ana said hm", importance=0.1)
    long = await remember(turn, "x" * 2001)
    assert (trifling["action"], trifling["reason"]) == ("ignore", "importance 0.1 is under 0.3")
    assert "longer than 2,000 characters" in long["reason"]


async def test_each_turn_reads_and_writes_for_its_own_audience(turn_of):
    await remember(turn_of("ana"), "Ana's code is 4417")
    public = await remember(turn_of("ana", place=CHANNEL), "Ana's boat is green")

    for user, where, known in (
        ("ana", {}, {"Ana's code is 4417", "Ana's boat is green"}),
        ("bob", {"place": CHANNEL}, {"Ana's boat is green"}),
        ("bob", {}, set()),
    ):
        assert set(await contents(turn_of(user, **where), "get_recent_memories", limit=9)) == known

    nobody = turn_of(None)
    for tool, given in (("search_memories", {"query": "Ana"}), ("get_recent_memories", {"limit": 5})):
        looked = await nobody.call(tool, **given)
        assert (looked["memories"], "anonymous" in looked["note"]) == ([], True)
    for replaces in (None, public["id"]):
        refused = await remember(nobody, "x", replaces=replaces)
        assert (refused["ok"], "anonymous" in refused["error"]) == (False, True)
    with pytest.raises(AssertionError, match="anonymous"):
        nobody.context.origin()
    assert nobody.context.audience.keys == frozenset()
