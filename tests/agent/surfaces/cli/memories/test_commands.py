import asyncio
import json
from datetime import UTC, datetime, timedelta

import pytest

from agent.companion import Companion
from memory.index import fingerprint_of
from memory.index.embedded import EmbeddedIndex
from memory.index.embedders.bundled import BundledEmbedder

FIELDS = {
    "id",
    "content",
    "subjects",
    "created_at",
    "expires_at",
    "source",
    "type",
    "importance",
    "last_accessed_at",
    "owners",
    "place",
    "message_id",
}


@pytest.fixture
def index_in_use(home):
    """Another one that holds the embedded index."""
    (home / "index").mkdir(parents=True)
    opening = EmbeddedIndex.open(
        home / "index", BundledEmbedder.dimension, fingerprint_of("bundled", BundledEmbedder.dimension)
    )
    index = asyncio.run(opening)
    yield
    asyncio.run(index.close())


def test_a_fact_is_added_and_listed_with_all_its_fields(hachi):
    decision = hachi(
        *("memories", "add", "Mickael skis", "--subject", "Sport", "--subject", "mickael"),
        *("--ttl", "2w", "--type", "preference", "--importance", "0.8", "--at", "2026-11-20T10:00", "--json"),
    ).json
    [memory] = hachi("memories", "list", "--json").json
    assert decision["action"] == "add"
    assert decision["id"] == memory["id"]
    assert set(memory) == FIELDS
    assert memory["subjects"] == ["sport", "mickael"]
    assert memory["created_at"] == "2026-11-20T10:00:00+00:00"
    assert memory["expires_at"] == "2026-12-04T10:00:00+00:00"
    assert (memory["type"], memory["importance"], memory["source"]) == ("preference", 0.8, "note")
    assert memory["owners"] == ["user:mickael"]


def test_what_was_decided_is_said(hachi):
    assert hachi("memories", "add", "Mickael skis", "--ttl", "7d").out.startswith("added ")
    assert "known word for word" in hachi("memories", "add", "Mickael skis").out
    unimportant = hachi("memories", "add", "Mickael yawned", "--importance", "0.1")
    assert unimportant.out == "not stored: Mickael yawned (importance 0.1 is under 0.3)\n"


def test_a_time_that_cannot_be_read_is_said_and_the_fact_kept(hachi):
    ran = hachi("memories", "add", "Mickael skis", "--ttl", "soonish")
    assert "'soonish' is no length of time" in ran.complaint
    assert hachi("memories", "list", "--json").json[0]["expires_at"] is None


def test_the_table_shows_short_ids_and_one_person_only(hachi):
    hachi("memories", "add", "Mickael skis", "--subject", "sport", "--ttl", "30d")
    hachi("memories", "add", "Lea swims", "--user", "lea")
    [memory] = hachi("memories", "list", "--json").json
    shown = hachi("memories", "list").out
    assert memory["id"][:8] in shown
    assert memory["id"] not in shown
    assert "sport" in shown
    assert memory["expires_at"][:10] in shown
    assert "Lea" not in shown


def test_nothing_remembered_is_said_beside_the_output(hachi):
    ran = hachi("memories", "list")
    assert ran.out == ""
    assert "nothing is remembered for 'mickael'" in ran.complaint
    assert hachi("memories", "list", "--json").json == []


def test_what_is_remembered_cannot_drive_the_terminal(hachi):
    hachi("memories", "add", "Mickael \x1b[31mskis")
    assert "\x1b" not in hachi("memories", "list").out


def test_search_finds_facts_messages_and_summaries(hachi):
    hachi("chat", "-m", "I broke my shoulder")
    hits = hachi("memories", "search", "shoulder", "--json").json
    assert {hit["kind"] for hit in hits} == {"memory", "message", "summary"}
    for hit in hits:
        assert set(hit) == FIELDS | {"score", "kind", "author"}
        assert 0 <= hit["score"] <= 1
    shown = hachi("memories", "search", "shoulder", "--limit", "1").out
    assert len([line for line in shown.splitlines() if "shoulder" in line]) == 1
    table = hachi("memories", "search", "shoulder").out
    assert "mickael: I broke my shoulder" in table
    assert "never" in table


def test_search_keeps_to_a_subject(hachi):
    hachi("memories", "add", "Mickael skis", "--subject", "sport")
    hachi("memories", "add", "Mickael skis badly says Lea", "--subject", "gossip")
    hits = hachi("memories", "search", "skis", "--subject", "gossip", "--json").json
    assert [hit["subjects"] for hit in hits] == [["gossip"]]
    assert "nothing was found" in hachi("memories", "search", "skis", "-u", "lea").complaint


def test_an_update_replaces_and_the_history_tells(hachi):
    first = hachi("memories", "add", "Mickael lives in Paris", "--subject", "home", "--json").json
    second = hachi("memories", "update", first["id"][:8], "Mickael lives in Lyon", "--json").json
    assert (second["action"], second["target_id"]) == ("replace", first["id"])
    [step] = hachi("memories", "history", second["id"][:8], "--json").json
    assert (step["old_content"], step["new_content"]) == ("Mickael lives in Paris", "Mickael lives in Lyon")
    assert step["reason"] == "corrected on purpose"
    by_the_old_id = hachi("memories", "history", first["id"]).out
    assert "Mickael lives in Paris" in by_the_old_id
    assert "corrected on purpose" in by_the_old_id
    assert hachi("memories", "list", "--json").json[0]["subjects"] == ["home"]


def test_an_update_can_be_undone(hachi):
    first = hachi("memories", "add", "Mickael lives in Paris", "--json").json
    second = hachi("memories", "update", first["id"], "Mickael lives in Lyon", "--json").json
    assert hachi("memories", "undo", second["id"][:8]).out.endswith(": Mickael lives in Paris\n")
    [memory] = hachi("memories", "list", "--json").json
    assert memory["id"] == first["id"]
    again = hachi("memories", "undo", second["id"])
    assert again.code == 1
    assert "nothing that could be brought back" in again.complaint


def test_an_update_may_change_how_long_it_holds(hachi):
    first = hachi("memories", "add", "Mickael is in Paris", "--json").json
    hachi("memories", "update", first["id"], "Mickael is in Lyon", "--ttl", "1d")
    [memory] = hachi("memories", "list", "--json").json
    lasts = datetime.fromisoformat(memory["expires_at"]) - datetime.now(UTC)
    assert timedelta(hours=23) < lasts <= timedelta(days=1)


def test_an_update_holds_as_long_as_what_it_corrects(hachi):
    first = hachi("memories", "add", "Mickael is in Paris", "--ttl", "7d", "--json").json
    second = hachi("memories", "update", first["id"], "Mickael is in Lyon", "--json").json
    before, after = (datetime.fromisoformat(made["expires_at"]) for made in (first, second))
    assert abs(after - before) < timedelta(seconds=2)


def test_what_never_changed_has_no_history(hachi):
    id = hachi("memories", "add", "Mickael skis", "--json").json["id"]
    assert "never changed" in hachi("memories", "history", id).out
    assert hachi("memories", "history", id, "--json").json == []


def test_deleted_is_gone(hachi):
    id = hachi("memories", "add", "Mickael skis", "--json").json["id"]
    assert hachi("memories", "delete", id[:8]).out == f"deleted {id[:8]}: Mickael skis\n"
    assert hachi("memories", "list", "--json").json == []
    assert hachi("memories", "search", "skis", "--json").json == []


def test_at_a_terminal_deleting_is_asked_first(hachi):
    id = hachi("memories", "add", "Mickael skis", "--json").json["id"]
    refused = hachi("memories", "delete", id, stdin=b"n\n", typed=True)
    assert refused.code == 1
    assert "nothing was deleted" in refused.err
    assert hachi("memories", "delete", id, "--yes", "--json", typed=True).json["id"] == id
    again = hachi("memories", "add", "Mickael skis", "--json").json["id"]
    assert "deleted" in hachi("memories", "delete", again, stdin=b"y\n", typed=True).out


@pytest.mark.parametrize("command", ["delete", "history"])
def test_what_is_somebody_elses_is_not_there(hachi, command):
    id = hachi("memories", "add", "Lea swims", "--user", "lea", "--json").json["id"]
    ran = hachi("memories", command, id)
    assert ran.code == 1
    assert "no memory" in ran.complaint
    assert len(hachi("memories", "list", "--user", "lea", "--json").json) == 1


def test_all_but_search_works_while_another_process_holds_the_index(hachi, index_in_use):
    added = hachi("memories", "add", "Mickael skis", "--json")
    id = added.json["id"]
    assert added.code == 0
    assert len(hachi("memories", "list", "--json").json) == 1
    assert hachi("memories", "history", id).code == 0
    assert json.loads(hachi("memories", "export").out)["memories"]
    assert hachi("tasks", "list", "--json").json == []
    search = hachi("memories", "search", "skis")
    assert search.code == 1
    assert "in use by another hachi process" in search.complaint
    assert hachi("memories", "delete", id).code == 0
    assert hachi("memories", "list", "--json").json == []


def test_the_surface_and_the_companion_see_the_same(hachi):
    hachi("memories", "add", "Mickael skis")

    async def seen():
        async with Companion.open(upkeep=False) as pet:
            return [memory.content for memory in await pet.memories(user="mickael")]

    assert asyncio.run(seen()) == ["Mickael skis"]
