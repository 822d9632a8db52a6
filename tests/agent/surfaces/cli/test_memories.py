import re
from datetime import UTC, datetime, timedelta

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
    assert set(memory) == FIELDS | {"user"}
    assert memory["subjects"] == ["sport", "mickael"]
    assert memory["created_at"] == "2026-11-20T10:00:00+00:00"
    assert memory["expires_at"] == "2026-12-04T10:00:00+00:00"
    assert (memory["type"], memory["importance"], memory["source"]) == ("preference", 0.8, "note")
    assert memory["owners"] == ["user:mickael"]
    table = hachi("memories", "list").out
    assert memory["id"][:8] in table
    assert memory["id"] not in table
    assert "2026-12-04" in table
    assert re.search(r"0\.8 +dm +mickael", table), "where and by whom it was said"
    assert "Lea" not in table
    [hit] = hachi("memories", "search", "skiing", "--subject", "sport", "--json").json
    assert set(hit) == FIELDS | {"score", "kind", "author"}
    assert hit["id"] == memory["id"]
    assert hachi("memories", "search", "skiing", "--subject", "tea").complaint == "hachi: nothing was found"
    assert f"{hit['score']:.2f}" in hachi("memories", "search", "skiing").out
    [newest] = hachi("memories", "search", "", "--json").json
    assert newest["id"] == memory["id"]


def test_decisions_are_told(hachi):
    assert "nothing is remembered for 'mickael'" in hachi("memories", "list").complaint
    assert hachi("memories", "add", "Mickael skis", "--ttl", "7d").out.startswith("added ")
    assert "known word for word" in hachi("memories", "add", "Mickael skis").out
    unimportant = hachi("memories", "add", "Mickael yawned", "--importance", "0.1")
    assert unimportant.out == "not stored: Mickael yawned (importance 0.1 is under 0.3)\n"
    ran = hachi("memories", "add", "Mickael \x1b[31mswims", "--ttl", "never", "--everybody")
    assert ran.code == 0
    assert "\x1b" not in hachi("memories", "list").out
    [swims] = [one for one in hachi("memories", "list", "--json").json if "swims" in one["content"]]
    assert (swims["expires_at"], "global" in swims["owners"]) == (None, True)


def test_an_update_replaces_is_told_by_the_history_and_can_be_undone(hachi):
    first = hachi("memories", "add", "Mickael lives in Paris", "--json").json
    assert "never changed" in hachi("memories", "history", first["id"]).out
    assert hachi("memories", "history", first["id"], "--json").json == []
    second = hachi("memories", "update", first["id"][:8], "Mickael lives in Lyon", "--json").json
    assert (second["action"], second["target_id"]) == ("replace", first["id"])
    [step] = hachi("memories", "history", second["id"][:8], "--json").json
    assert (step["old_content"], step["new_content"]) == ("Mickael lives in Paris", "Mickael lives in Lyon")
    assert "corrected on purpose" in hachi("memories", "history", first["id"]).out, "by the replaced id"
    assert hachi("memories", "undo", second["id"][:8]).out.endswith(": Mickael lives in Paris\n")
    assert [memory["id"] for memory in hachi("memories", "list", "--json").json] == [first["id"]]
    again = hachi("memories", "undo", second["id"])
    assert (again.code, "nothing that could be restored" in again.complaint) == (1, True)
    hachi("memories", "update", first["id"], "Mickael lives in Rome", "--ttl", "1d")
    [memory] = hachi("memories", "list", "--json").json
    lasts = datetime.fromisoformat(memory["expires_at"]) - datetime.now(UTC)
    assert timedelta(hours=23) < lasts <= timedelta(days=1)
    for command in ("delete", "history"):
        ran = hachi("memories", command, memory["id"], "--user", "lea")
        assert (ran.code, "no memory" in ran.complaint) == (1, True)


def test_forgetting_asks_at_a_terminal_and_tells_what_was_taken(hachi):
    id = hachi("memories", "add", "Mickael skis", "--json").json["id"]
    unasked = hachi("memories", "delete", id)
    assert (unasked.code, "needs --yes; nothing was forgotten" in unasked.complaint) == (2, True)
    refused = hachi("memories", "delete", id, stdin=b"n\n", typed=True)
    assert (refused.code, "nothing was forgotten" in refused.err) == (1, True)
    told = hachi("memories", "delete", id, "--yes", "--json", typed=True).json
    assert (told["id"], told["forgotten"]["memories"]) == (id, [id])
    again = hachi("memories", "add", "Mickael skis", "--json").json["id"]
    red = hachi("memories", "add", "Mickael skis at night", "--json").json["id"]
    told = hachi("memories", "delete", again[:8], stdin=b"y\n", typed=True).out
    assert f"forgotten {again[:8]}: Mickael skis\ntaken: 1 memory\n" in told
    assert f"forgotten too by:\n  hachi memories delete {red[:8]}  # Mickael skis at night\n" in told
    near = hachi("memories", "delete", red, "--yes", "--json").json["forgotten"]["near"]
    assert (near, hachi("memories", "list", "--json").json) == ([], [])


def test_what_was_forgotten_is_brought_back_while_there_is_time(hachi):
    id = hachi("memories", "add", "Mickael skis", "--json").json["id"]
    told = hachi("memories", "delete", id, "--yes", "--json").json["forgotten"]
    assert hachi("memories", "list", "--json").json == []
    assert hachi("memories", "restore", told["undo_id"][:8]).out == "brought back: 1 memory\n"
    assert [memory["id"] for memory in hachi("memories", "list", "--json").json] == [id]
    assert hachi("memories", "restore", told["undo_id"]).code == 1


def test_what_goes_with_a_fact_or_a_message_is_shown_before_it_is_confirmed(hachi):
    hachi("chat", "-m", "I broke my shoulder")
    [memory] = hachi("memories", "list", "--json").json
    asked = hachi("memories", "delete", memory["id"], stdin=b"n\n", typed=True)
    assert f"{memory['content']}\n1 message and 1 reply go with it\n" in asked.out
    said = next(one for one in hachi("messages", "list", "--json").json if one["role"] == "user")
    asked = hachi("messages", "delete", said["id"], stdin=b"n\n", typed=True)
    assert "I broke my shoulder\n1 message and 1 reply go with it\n" in asked.out
