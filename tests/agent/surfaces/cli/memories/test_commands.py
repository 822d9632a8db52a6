import asyncio
import json
from datetime import UTC, datetime, timedelta

import pytest

from agent.companion import Companion
from memory.index.embedded import EmbeddedIndex
from memory.index.embedders.bundled import BundledEmbedder

FIELDS = {
    *("id", "content", "subjects", "created_at", "expires_at", "source", "type", "importance"),
    *("last_accessed_at", "owners", "place", "message_id"),
}


def test_a_fact_is_added_listed_and_found(hachi):
    decision = hachi(
        *("memories", "add", "Mickael skis", "--subject", "Sport", "--subject", "mickael"),
        *("--ttl", "2w", "--type", "preference", "--importance", "0.8", "--at", "2026-11-20T10:00", "--json"),
    ).json
    hachi("memories", "add", "Lea swims", "--user", "lea")
    [memory] = hachi("memories", "list", "--json").json
    assert (decision["action"], decision["id"]) == ("add", memory["id"])
    assert set(memory) == FIELDS
    assert memory["subjects"] == ["sport", "mickael"]
    assert memory["created_at"] == "2026-11-20T10:00:00+00:00"
    assert memory["expires_at"] == "2026-12-04T10:00:00+00:00"
    assert (memory["type"], memory["importance"], memory["source"]) == ("preference", 0.8, "note")
    assert memory["owners"] == ["user:mickael"]
    table = hachi("memories", "list").out
    assert memory["id"][:8] in table
    assert memory["id"] not in table
    assert "2026-12-04" in table
    assert "Lea" not in table
    [hit] = hachi("memories", "search", "skiing", "--subject", "sport", "--json").json
    assert set(hit) == FIELDS | {"score", "kind", "author"}
    assert hit["id"] == memory["id"]
    assert hachi("memories", "search", "skiing", "--subject", "tea").complaint == "hachi: nothing was found"
    assert f"{hit['score']:.2f}" in hachi("memories", "search", "skiing").out


def test_decisions_and_what_could_not_be_read_are_told(hachi):
    assert hachi("memories", "add", "Mickael skis", "--ttl", "7d").out.startswith("added ")
    assert "known word for word" in hachi("memories", "add", "Mickael skis").out
    unimportant = hachi("memories", "add", "Mickael yawned", "--importance", "0.1")
    assert unimportant.out == "not stored: Mickael yawned (importance 0.1 is under 0.3)\n"
    ran = hachi("memories", "add", "Mickael \x1b[31mswims", "--ttl", "soonish", "--everybody")
    assert "'soonish' is no length of time" in ran.complaint
    assert "\x1b" not in hachi("memories", "list").out
    [swims] = [one for one in hachi("memories", "list", "--json").json if "swims" in one["content"]]
    assert swims["expires_at"] is None
    assert "global" in swims["owners"]


def test_nothing_remembered_is_said_on_stderr(shared):
    ran = shared("memories", "list")
    assert ran.out == ""
    assert "nothing is remembered for 'mickael'" in ran.complaint
    assert shared("memories", "list", "--json").json == []


def test_messages_are_found_with_their_author(hachi):
    hachi("chat", "-m", "I broke my shoulder")
    hits = hachi("memories", "search", "shoulder", "--json").json
    assert ("message", "mickael") in [(hit["kind"], hit["author"]) for hit in hits]
    assert "mickael: I broke my shoulder" in hachi("memories", "search", "shoulder").out


def test_an_update_replaces_is_told_by_the_history_and_can_be_undone(hachi):
    first = hachi("memories", "add", "Mickael lives in Paris", "--ttl", "7d", "--json").json
    second = hachi("memories", "update", first["id"][:8], "Mickael lives in Lyon", "--json").json
    assert (second["action"], second["target_id"]) == ("replace", first["id"])
    before, after = (datetime.fromisoformat(made["expires_at"]) for made in (first, second))
    assert abs(after - before) < timedelta(seconds=2), "it holds as long as what it corrects"
    [step] = hachi("memories", "history", second["id"][:8], "--json").json
    assert (step["old_content"], step["new_content"]) == ("Mickael lives in Paris", "Mickael lives in Lyon")
    assert "corrected on purpose" in hachi("memories", "history", first["id"]).out, "by the replaced id"
    assert hachi("memories", "undo", second["id"][:8]).out.endswith(": Mickael lives in Paris\n")
    assert [memory["id"] for memory in hachi("memories", "list", "--json").json] == [first["id"]]
    again = hachi("memories", "undo", second["id"])
    assert (again.code, "nothing that could be brought back" in again.complaint) == (1, True)
    hachi("memories", "update", first["id"], "Mickael lives in Rome", "--ttl", "1d")
    [memory] = hachi("memories", "list", "--json").json
    lasts = datetime.fromisoformat(memory["expires_at"]) - datetime.now(UTC)
    assert timedelta(hours=23) < lasts <= timedelta(days=1)


def test_a_memory_that_never_changed_has_no_history(hachi):
    id = hachi("memories", "add", "Mickael skis", "--json").json["id"]
    assert "never changed" in hachi("memories", "history", id).out
    assert hachi("memories", "history", id, "--json").json == []
    for command in ("delete", "history"):
        ran = hachi("memories", command, id, "--user", "lea")
        assert (ran.code, "no memory" in ran.complaint) == (1, True)


def test_deleting_asks_at_a_terminal(hachi):
    id = hachi("memories", "add", "Mickael skis", "--json").json["id"]
    refused = hachi("memories", "delete", id, stdin=b"n\n", typed=True)
    assert (refused.code, "nothing was deleted" in refused.err) == (1, True)
    assert hachi("memories", "delete", id, "--yes", "--json", typed=True).json["id"] == id
    again = hachi("memories", "add", "Mickael skis", "--json").json["id"]
    assert (
        f"deleted {again[:8]}: Mickael skis\n"
        in hachi("memories", "delete", again[:8], stdin=b"y\n", typed=True).out
    )
    assert hachi("memories", "list", "--json").json == []
    assert hachi("memories", "search", "skis", "--json").json == []


@pytest.fixture
def index_in_use(home):
    """Another process holds the embedded index."""
    (home / "index").mkdir(parents=True, exist_ok=True)
    index = EmbeddedIndex(home / "index", BundledEmbedder())
    asyncio.run(index.refresh())
    yield
    asyncio.run(index.close())


def test_everything_but_search_works_while_another_process_holds_the_index(hachi, index_in_use):
    id = hachi("memories", "add", "Mickael skis", "--json").json["id"]
    assert hachi("memories", "history", id).code == 0
    assert json.loads(hachi("memories", "export").out)["memories"]
    search = hachi("memories", "search", "skis")
    assert (search.code, "in use by another hachi process" in search.complaint) == (1, True)
    assert hachi("memories", "delete", id).code == 0
    assert hachi("memories", "list", "--json").json == []


def test_a_program_sees_the_same(hachi):
    hachi("memories", "add", "Mickael skis")

    async def contents():
        async with Companion.open(upkeep=False) as pet:
            return [memory.content for memory in await pet.memories(user="mickael")]

    assert asyncio.run(contents()) == ["Mickael skis"]
