import re
import sqlite3
from contextlib import closing

FIELDS = {
    *("profile", "preferences", "long_term_facts", "open_tasks"),
    *("conversation_themes", "memory_summary", "last_updated"),
}


def test_what_is_set_is_shown_and_forgotten(hachi):
    assert "nothing is known of 'mickael' here" in hachi("context", "show").complaint
    assert hachi("context", "set", "name", "Mick\x1b[31mael").out == "name: Mick\\x1b[31mael\n"
    assert hachi("context", "set", "Prefers bullets", "no").out == "Prefers bullets: no\n"
    hachi("context", "set", "theme", "snow")
    hachi("context", "set", "memory_summary", "Loves the mountains.")
    hachi("tasks", "update", "new", "--description", "buy skis", "--due", "2026-12-01T09:00+00:00")
    hachi("memories", "add", "Mickael skis")
    shown = hachi("context", "show").out
    for text in ("mickael, 20", "profile", "name: Mick[31mael", "prefers bullets: no", "snow"):
        assert text in shown
    for text in ("Loves the mountains.", "buy skis (open, due 2026-12-01 0", "Mickael skis"):
        assert text in shown
    for text in ("None", "level", "\x1b"):
        assert text not in shown
    known = hachi("context", "set", "language", "עברית", "--json").json
    assert set(known) == FIELDS
    assert known == hachi("context", "show", "--json").json
    hachi("context", "set", "goal", "ski")
    assert hachi("context", "set", "goals", "swim").out == "goals: swim\n"
    assert hachi("context", "set", "goals", "").out == "goals is forgotten\n"
    assert hachi("context", "set", "mode", "study").out == "mode: study\n"
    assert hachi("context", "show", "--place", "acme", "--json").json["profile"]["name"] is None


def test_a_wrong_field_is_told_with_what_is_possible(shared):
    ran = shared("context", "set", "colour", "red")
    assert (ran.code, ran.out) == (1, "")
    assert "'colour' is no field" in ran.complaint


def test_a_task_is_made_changed_and_finished(hachi):
    assert hachi("tasks", "list").complaint == "hachi: no open tasks for 'mickael'"
    mum = hachi("tasks", "add", "call mum", "--due", "tomorrow 9am", "--json").json
    assert (mum["description"], mum["due"][11:16]) == ("call mum", "09:00")
    assert "same words" in hachi("tasks", "add", "Call mum").complaint
    assert "'soon' is not a time" in hachi("tasks", "add", "swim", "--due", "soon").complaint
    hachi("tasks", "update", mum["id"], "--status", "done")
    new = ("tasks", "update", "new", "--json", "--description")
    hachi("context", "set", "timezone", "Europe/Paris")  # by whose clock times are read and shown
    made = hachi(*new, "buy milk", "--due", "2026-12-01").json
    assert (made["description"], made["status"]) == ("buy milk", "open")
    assert made["due"] == "2026-12-01T08:00:00+00:00"
    assert "2026-12-01 09:00" in hachi("tasks", "list").out
    again = hachi(*new, "Buy milk!")
    assert again.json["id"] == made["id"]
    assert again.complaint.endswith(f"task {made['id'][:8]} has the same words, so there is no second one")
    changed = hachi("tasks", "update", made["id"][:8], "--status", "in_progress", "--json").json
    assert (changed["id"], changed["status"]) == (made["id"], "in_progress")
    assert hachi("tasks", "update", made["id"], "--due", "never", "--json").json["due"] is None
    hachi("tasks", "update", made["id"], "--status", "done")
    assert hachi("tasks", "list", "--json").json == []
    assert [task["status"] for task in hachi("tasks", "list", "--all", "--json").json] == ["done", "done"]


def test_messages_are_listed_and_forgotten_one_by_one(hachi):
    assert "no messages of 'mickael'" in hachi("messages", "list").complaint
    hachi("chat", "-m", "my bank PIN is 4711")
    reply, said = hachi("messages", "list", "--json").json
    assert (reply["role"], said["text"]) == ("assistant", "my bank PIN is 4711")
    assert [one["id"] for one in hachi("messages", "list", "--json", "--before", reply["id"]).json] == [
        said["id"]
    ]
    assert hachi("messages", "delete", said["id"], "--user", "lea").code == 1
    assert hachi("messages", "delete", said["id"], stdin=b"n\n", typed=True).code == 1
    unasked = hachi("messages", "delete", said["id"])
    assert (unasked.code, "needs --yes; nothing was forgotten" in unasked.complaint) == (2, True)
    told = hachi("messages", "delete", said["id"][:8], "--yes").out
    assert told.startswith(
        f"forgotten {said['id'][:8]}: my bank PIN is 4711\ntaken: 1 memory, 1 message, 1 reply"
    )
    assert "brings it back" in told
    assert hachi("messages", "list", "--json").json == []
    assert hachi("memories", "list", "--json").json == []


def test_conversations_are_listed_read_and_forgotten_whole(hachi):
    assert hachi("conversations", "list").complaint == "hachi: no conversations of 'mickael' here"
    hachi("chat", "-m", "my bank PIN is 4711")
    [one] = hachi("conversations", "list", "--json").json
    assert (one["id"], one["place"], one["title"], one["messages"], one["summary"]) == (
        *("dm:mickael", "dm", "my bank PIN is 4711", 2, ""),
    )
    assert "dm:mickael" in hachi("conversations", "list").out
    shown = hachi("conversations", "show", "dm:mickael", "--json").json
    assert [line["role"] for line in shown["transcript"]] == ["user", "assistant"]
    assert "(no summary yet)" in hachi("conversations", "show", "dm:mickael").out
    for verb, user in (("show", "lea"), ("delete", "lea")):
        other = hachi("conversations", verb, "dm:mickael", "--user", user)
        assert (other.code, "no conversation 'dm:mickael'" in other.complaint) == (1, True)
    assert hachi("conversations", "delete", "dm:mickael", stdin=b"n\n", typed=True).code == 1
    assert "needs --yes" in hachi("conversations", "delete", "dm:mickael").complaint
    told = hachi("conversations", "delete", "dm:mickael", "--yes").out
    assert "taken: 1 memory, 1 message, 1 reply" in told
    assert hachi("conversations", "list", "--json").json == hachi("memories", "list", "--json").json == []
    undo = re.search("restore ([0-9a-f]{8})", told)[1]
    hachi("memories", "restore", undo)
    assert hachi("conversations", "list", "--json").json == [one]


def test_everybody_of_whom_something_is_kept_is_listed(hachi):
    assert hachi("people", "list").complaint == "hachi: nobody is known yet"
    hachi("memories", "add", "Lea swims", "--user", "lea", "--place", "acme")
    hachi("memories", "add", "The sky is blue", "--user", "zoe", "--everybody")
    hachi("tasks", "update", "new", "--description", "buy milk", "--user", "ben")
    hachi("chat", "-m", "my sister Lucie is allergic to nuts", "--json")
    known = {one.pop("user"): one for one in hachi("people", "list", "--json").json}
    assert known["mickael"].pop("last_message")
    nothing = {"name": "", "messages": 0, "memories": 0, "tasks": 0, "documents": 0, "last_message": None}
    assert known == {
        "ben": nothing | {"tasks": 1},
        "lea": nothing | {"memories": 1},
        "mickael": {"name": "mickael", "messages": 1, "memories": 1, "tasks": 0, "documents": 0},
        "zoe": nothing,
    }
    assert "lea" in hachi("people", "list").out


def test_people_are_shown_by_the_name_that_a_server_forwards(hachi, home):
    hachi("chat", "-m", "my sister Lucie is allergic to nuts", "--user", "1a012901-5c97")
    with closing(sqlite3.connect(home / "hachi.db")) as database, database:
        database.execute("UPDATE messages SET author = 'Zoë Martin' WHERE role = 'user'")
    assert "Zoë Martin" in hachi("people", "list").out
    assert (
        hachi("memories", "list", "--user", "1a012901-5c97").complaint == "hachi: Zoë Martin (1a012901-5c97)"
    )
    assert "Zoë Martin" in hachi("traces", "ls").out
    assert [one["name"] for one in hachi("traces", "ls", "--json").json] == ["Zoë Martin"]


def test_a_person_has_several_names_until_one_is_forgotten(hachi):
    hachi("memories", "add", "Lucie plays the cello")
    assert hachi("people", "alias", "Lucie", "Lulu").out == "Lucie is also called Lulu (new)\n"
    found = hachi("memories", "search", "what does Lulu play?", "--json").json
    assert "Lucie plays the cello" in [hit["content"] for hit in found]
    [known] = hachi("people", "aliases", "--json").json
    assert known["content"] == "Lucie is also called Lulu"
    assert "Lulu" in hachi("people", "aliases").out
    assert hachi("people", "unalias", "lulu", "Lucie").code == 0
    assert hachi("people", "aliases").complaint == "hachi: nobody is known by another name here"
    gone = hachi("people", "unalias", "Lucie", "Lulu")
    assert "'Lucie' is not known as 'Lulu' here" in gone.complaint
    assert "two names that differ" in hachi("people", "alias", "Lucie", "lucie").complaint
