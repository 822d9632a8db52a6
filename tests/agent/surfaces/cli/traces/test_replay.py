"""`hachi traces replay` and `to-test`."""

import json
import re

import pytest

from tools import registry


@pytest.fixture(scope="module")
def talked(shared):
    """Two turns with the offline stand-in."""
    shared("chat", "-m", "I broke my shoulder on January 10")
    shared("chat", "-m", "what happened to me?")
    return shared


def test_unchanged_turns_are_the_same(talked):
    ran = talked("traces", "replay", "last")
    assert ran.code == 0
    assert ran.out.startswith("same ")
    assert talked("traces", "replay", "--newest", "5").out.splitlines()[-1] == "2 replayed: 2 same, 0 changed"
    [same] = talked("traces", "replay", "last", "--json").json
    assert (same["same"], same["differences"], same["memory"]) == (True, [], "recorded")
    [today] = talked("traces", "replay", "last", "--memory", "today", "--json").json
    assert today["memory"] == "today"


def test_a_set_is_replayed_from_its_files(talked, tmp_path):
    ids = [one["id"] for one in talked("traces", "ls", "--json").json]
    for id in ids:
        talked("traces", "export", id, "-o", str(tmp_path / f"{id}.json"))
    files = [str(path) for path in sorted(tmp_path.glob("*.json"))]
    assert talked("traces", "replay", *files).out.splitlines()[-1] == "2 replayed: 2 same, 0 changed"
    (tmp_path / "no.json").write_text("{}")
    complaint = talked("traces", "replay", str(tmp_path / "no.json")).complaint
    assert "no.json cannot be replayed: no trace is in it" in complaint


def test_a_live_model_stands_beside_what_was_recorded(talked):
    ran = talked("traces", "replay", "last", "--from", "2", "--model", "live")
    recorded, _, live = ran.out.partition("from call 2 on with the model of today:")
    assert ran.code == 0
    for shown in (recorded, live):
        assert "search_memories(" in shown
        assert 'reply "' in shown
    [found] = talked("traces", "replay", "last", "--model", "live", "--json").json
    assert (found["same"], found["forked_at"]) == (True, 1), "the stand-in says the same again"


def test_what_cannot_be_replayed_is_counted_apart(talked, monkeypatch):
    talked("chat", "-m", "what is kept?", HACHI_TRACE_CONTENT="none")
    ran = talked("traces", "replay", "--newest", "3")
    assert ran.out.splitlines()[-1] == "2 replayed: 2 same, 0 changed, 1 not replayed"
    data = talked("traces", "replay", "--newest", "3", "--json").json
    assert [one.keys() for one in data if "not_replayed" in one] == [{"id", "not_replayed"}]
    last = talked("traces", "replay", "last")
    assert (last.code, "HACHI_TRACE_CONTENT was none" in last.complaint) == (1, True)
    talked("traces", "prune", "--older", "0s", "--yes")
    talked("chat", "-m", "what happened to me?")


def test_a_test_goes_where_it_is_told_and_overwrites_nothing(talked, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = talked("traces", "to-test", "last", "--into", "checks")
    names = sorted(path.name for path in (tmp_path / "checks").iterdir())
    assert [name.rpartition(".")[2] for name in names] == ["py", "json"]
    assert [line.rpartition("/")[2] for line in ran.out.splitlines()] == names
    assert ran.err.endswith("run it with pytest, which does not come with Hachi: pip install pytest\n")
    [file] = json.loads((tmp_path / "checks" / names[1]).read_text())
    assert (file["said"], file["process"]) == ("what happened to me?", "")
    again = talked("traces", "to-test", "last", "--into", "checks")
    assert (again.code, "--force writes over it" in again.complaint) == (1, True)
    assert talked("traces", "to-test", "last", "--into", "checks", "--force").code == 0
    assert "it fails until" not in ran.err
    with monkeypatch.context() as patch:
        patch.setattr(registry, "as_text", lambda _: "{}")
        ran = talked("traces", "to-test", "last", "--into", "now")
    assert "it fails until the turn goes as recorded: search_memories, result differs" in ran.err
    (tmp_path / "tests").mkdir()
    talked("traces", "to-test")
    assert len(list((tmp_path / "tests").glob("test_trace_*.py"))) == 1


def test_what_changed_is_named(talked, monkeypatch):
    """Runs last: it changes the memory."""
    monkeypatch.setenv("HACHI_MAX_TURNS", "3")
    ran = talked("traces", "replay", "last")
    assert (ran.code, ran.out.splitlines()[1]) == (3, "first difference: max_turns 5 → 3")
    assert "@@" in talked("traces", "replay", "last", "--full").out
    monkeypatch.undo()
    [memory] = talked("memories", "list", "--json").json
    talked("memories", "update", memory["id"], "I broke my wrist on January 10")
    assert talked("traces", "replay", "last").code == 0
    ran = talked("traces", "replay", "last", "--memory", "today")
    assert (ran.code, "CHANGED" in ran.out) == (3, True)
    assert re.search(
        "^first difference: no longer given “I broke my shoulder on January 10” replaced: on ",
        ran.out,
        re.M,
    )
    whole = talked("traces", "replay", "last", "--memory", "today", "--full").out
    assert re.search('^- +"content": "I broke my shoulder on January 10"', whole, re.MULTILINE)
    assert re.search('^[+] +"content": "I broke my wrist on January 10"', whole, re.MULTILINE)
