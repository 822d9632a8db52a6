"""`hachi traces replay` and `to-test`."""

import json
import re
from xml.etree.ElementTree import fromstring, parse

import pytest

from agent.replay.replay import NotReplayed
from agent.surfaces.cli.traces.replayed import Replays


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
    fork = talked("traces", "replay", "last", "--from", "2", "--model", "live")
    assert (fork.code, fork.out[:5]) == (0, "same "), "the stand-in says the same again"


def test_a_set_is_replayed_as_one(talked, tmp_path):
    assert talked("traces", "set", "list").complaint == "hachi: there is no set yet"
    assert talked("traces", "set", "add", "smoke", "--text", "shoulder", "-n", "9").out == "smoke: 2 turns\n"
    added = talked("traces", "set", "add", "smoke", "last", "--holds", "January", "--json").json
    assert (added["turns"], len(added["added"])) == (2, 1)
    assert talked("traces", "set", "list", "--json").json == [{"name": "smoke", "turns": 2}]
    assert talked("traces", "set", "run", "smoke").out.splitlines()[-1] == "2 replayed: 2 same, 0 changed"
    report = tmp_path / "report.xml"
    live = talked("traces", "set", "run", "smoke", "--model", "live", "--junit", str(report))
    assert (live.code, "2 replayed: 2 same" in live.out, "behaviour" in live.out) == (0, True, True)
    assert parse(report).getroot().attrib == {"name": "smoke", "tests": "2", "failures": "0", "skipped": "0"}
    talked("traces", "set", "add", "smoke", "last", "--holds", "Lyon")
    live = talked("traces", "set", "run", "smoke", "--model", "live", "--junit", str(report))
    assert (live.code, live.out.splitlines()[-1]) == (
        3,
        "1 turn: the reply does not hold “Lyon”; 1 went otherwise",
    )
    [failure] = parse(report).getroot().iter("failure")
    assert failure.get("message") == "the reply does not hold “Lyon”"
    assert fromstring(talked("traces", "set", "run", "smoke", "--junit", "-").out).get("tests") == "2"
    assert "no set 'x'; there are: smoke" in talked("traces", "set", "run", "x").complaint
    assert talked("traces", "set", "delete", "smoke").out.startswith("deleted the set smoke")
    assert talked("traces", "set", "list", "--json").json == []


def test_what_cannot_be_replayed_is_counted_apart(tmp_path, capsys):
    report = tmp_path / "report.xml"
    gone = [NotReplayed(f"trace_{n}", "its content is forgotten") for n in (1, 2)]
    output = Replays(gone).output(junit=report)
    assert output.code == 0
    assert output.data[0] == {"id": "trace_1", "not_replayed": "its content is forgotten"}
    output.print(json=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "not replayed: its content is forgotten"
    assert lines[-1] == "0 replayed: 0 same, 0 changed, 2 not replayed"
    assert [one.get("name") for one in parse(report).getroot()] == ["trace_1", "trace_2"]
    assert parse(report).getroot().get("skipped") == "2"


def test_a_test_goes_where_it_is_told_and_overwrites_nothing(talked, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = talked("traces", "to-test", "last", "--into", "checks")
    names = sorted(path.name for path in (tmp_path / "checks").iterdir())
    assert [name.rpartition(".")[2] for name in names] == ["py", "json"]
    assert [line.rpartition("/")[2] for line in ran.out.splitlines()] == names
    assert ran.err.endswith("run it with pytest, which does not come with Hachi: pip install pytest\n")
    assert json.loads((tmp_path / "checks" / names[1]).read_text())["version"] == 2
    again = talked("traces", "to-test", "last", "--into", "checks")
    assert (again.code, "--force writes over it" in again.complaint) == (1, True)
    assert talked("traces", "to-test", "last", "--into", "checks", "--force").code == 0
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
        "^first difference: no longer given “I broke my shoulder on January 10” not replaced: on ",
        ran.out,
        re.M,
    )
    whole = talked("traces", "replay", "last", "--memory", "today", "--full").out
    assert re.search('^- +"content": "I broke my shoulder on January 10"', whole, re.MULTILINE)
    assert re.search('^[+] +"content": "I broke my wrist on January 10"', whole, re.MULTILINE)
