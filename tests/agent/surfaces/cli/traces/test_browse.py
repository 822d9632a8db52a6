"""`hachi traces`: what happened in turns, from the command line."""

import asyncio
import json
import re

import pytest
from command import stopping, until
from scripted_server import Call, Hang

from agent.companion import Companion
from agent.settings import Settings


@pytest.fixture(scope="module")
def told(shared):
    """Two people, one of them in a place; memories are stored and looked up."""
    at_once = {"HACHI_CONSOLIDATE_MINUTES": "0"}
    shared("chat", "-m", "my sister Lucie is allergic to nuts", "--user", "ana", **at_once)
    shared("chat", "-m", "what is Lucie allergic to?", "--user", "ana", **at_once)
    shared("chat", "-m", "I broke my shoulder", "--user", "ben", "--place", "acme/general", **at_once)
    return shared


def table(ran):
    """The head and the rows of a table."""
    _, head, _, *rows = (line.rstrip() for line in ran.out.splitlines())
    return head, [row for row in rows if row]


def said(found):
    return [one["said"] for one in found.json]


def test_turns_are_listed_newest_first(told):
    head, lines = table(told("traces", "ls"))
    assert head.split() == "id when where user said calls tools tokens cost took status".split()
    assert ["shoulder" in line for line in lines] == [True, False, False]
    assert "acme/general" in lines[0]
    assert all(line.endswith("  ok") for line in lines)
    narrow = told("traces", "ls", COLUMNS="60").out.splitlines()
    assert [line.split()[1] for line in narrow] == ["ok"] * 3
    assert narrow[0].endswith('  ben: "I broke my shoulder"')


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--place dm --tool search_memories", ["what is Lucie"]),
        ("--text LUCIE --slower 1ms --since 1d", ["what is Lucie", "my sister"]),
        ("--user ben -n 1", ["I broke"]),
        ("--error", []),
    ],
)
def test_options_choose_what_is_listed(told, options, words):
    found = said(told("traces", "ls", "--json", *options.split()))
    assert [any(word in text for word in words) for text in found] == [True] * len(words)


def test_background_jobs_are_listed_with_all(told):
    found = told("traces", "ls", "--all", "--json").json
    kinds = [one["kind"] for one in found]
    assert kinds.count("turn") == 3
    assert "consolidate" in kinds
    turns = {one["id"] for one in found if one["kind"] == "turn"}
    assert {one["turn_id"] for one in found if one["kind"] != "turn"} <= turns
    assert "consolidate of " in told("traces", "ls", "--all").out
    second = told("traces", "ls", "--json").json[1]["id"]
    assert "afterwards" in told("traces", "show", second).out
    whole = told("traces", "show", second, "--json").json
    assert [one["kind"] for one in whole["afterwards"]] == ["consolidate"]


def test_a_turn_is_shown_by_the_beginning_of_its_id_and_as_the_last(told):
    last, first = told("traces", "show"), told("traces", "ls", "--json").json[-1]
    assert 'ben: "I broke my shoulder"' in last.out
    assert last.out == told("traces", "show", "last").out
    shown = told("traces", "show", first["id"][:14]).out
    assert 'ana: "my sister Lucie is allergic to nuts"' in shown
    assert "remember(" in shown
    assert len(shown.splitlines()) < 40
    assert "system message, rules" in told("traces", "show", "--full").out
    whole = told("traces", "show", first["id"], "--json").json
    assert whole["root"]["spans"][1]["data"]["request"]["system"].startswith("You are Hachi")


def test_two_turns_are_compared(told):
    one, other = [summary["id"] for summary in told("traces", "ls", "--json").json[:2]]
    differing = told("traces", "diff", one, other)
    assert differing.code == 1
    assert "@@ what was said: differs\n-I broke my shoulder\n+what is Lucie allergic to?\n" in differing.out
    same = told("traces", "diff", one, one)
    assert (same.code, same.out) == (0, "")
    assert "are the same" in same.complaint
    found = told("traces", "diff", one, other, "--json").json
    assert found[0] == {
        "where": "what was said",
        "what": "differs",
        "before": "I broke my shoulder",
        "after": "what is Lucie allergic to?",
        "cause": False,
    }


def test_on_a_narrow_terminal_an_overview_is_cut_and_everything_is_whole(told):
    def shown(*args, **screen):
        out = re.sub(r"\x1b\[[0-9;]*m", "", told("traces", "show", "last", *args, **screen).out)
        return [line.rstrip() for line in out.splitlines()]

    narrow = {"screen": True, "COLUMNS": "40"}
    assert max(map(len, shown(**narrow))) <= 40 < max(map(len, shown()))
    assert shown("--full", **narrow) == shown("--full")


def test_traces_are_exported_to_a_private_file(told, tmp_path):
    one, other = [summary["id"] for summary in told("traces", "ls", "--json").json[:2]]
    file = tmp_path / "traces.json"
    ran = told("traces", "export", one, other, "--output", str(file))
    assert (ran.out, ran.complaint) == ("", f"hachi: 2 traces are in {file}")
    assert file.stat().st_mode & 0o077 == 0
    assert file.read_text() == told("traces", "export", one, other, "-o", "-").out
    assert [one["id"] for one in json.loads(file.read_text())] == [one, other]
    missing = told("traces", "export", "last", "--output", str(tmp_path / "no" / "file.json"))
    assert (missing.code, "file.json" in missing.complaint) == (1, True)


def test_tools_and_models_are_counted_with_their_cost(told):
    table = told("traces", "stats").out
    named = [line.split()[:2] for line in table.splitlines() if line.strip()]
    for row in (["all", "turns"], ["people:", "ben"], ["models:", "offline"], ["surfaces:", "cli"]):
        assert row in named
    assert "tool remember: 2 calls, 0 errors" in table
    counts = told("traces", "stats", "--json").json
    assert (counts["total"]["turns"], counts["models"]["offline"]["turns"]) == (3, 3)
    assert counts["upkeep_waiting"] == {"jobs": 0, "until": None}
    assert told("traces", "stats", "--user", "ben", "--json").json["total"]["turns"] == 1
    assert told("traces", "stats", "--since", "2999-01-01", "--json").json["total"]["turns"] == 0


@pytest.mark.parametrize(
    ("args", "message", "code"),
    [
        ("show xyz", "'xyz' is no id of a trace", 1),
        ("export deadbeef", "there is no trace 'deadbeef'", 1),
        ("diff last deadbeef", "there is no trace", 2),
    ],
)
def test_a_wrong_id_is_one_line(told, args, message, code):
    ran = told("traces", *args.split())
    assert (ran.code, ran.out) == (code, "")
    assert message in ran.complaint


def test_a_tool_that_failed_is_marked(hachi, model):
    model.script(Call("search_memories", {"query": "Lucie", "since": "once"}))
    hachi("chat", "-m", "what is Lucie allergic to?", "--user", "ana")
    _, [line] = table(hachi("traces", "ls", "--error"))
    assert line.endswith("  tool_error: search_memories")
    shown = hachi("traces", "show").out
    assert "✗ search_memories(" in shown
    assert "since: give a day such as 2026-03-09" in shown


def test_a_model_that_does_not_answer_or_not_as_asked_is_marked(hachi, model):
    hachi("chat", "-m", "hello?")
    assert table(hachi("traces", "ls"))[1][0].endswith("  malformed")
    assert "read leniently" in hachi("traces", "show").out
    model.then = Hang()
    failed = hachi("chat", "-m", "hello?", HACHI_MODEL_TIMEOUT="0.2")
    [line] = [line for line in hachi("traces", "ls", "--error").out.splitlines() if "ModelUnav" in line]
    assert "  error: ModelUnavailable: the model at http://127.0.0.1" in line
    shown = hachi("traces", "show", failed.err.partition("(trace_")[2][:8]).out
    assert "✗ call 1  tiny" in shown
    assert "did not answer within 0.2 s" in shown


def test_without_traces_it_says_why(hachi):
    assert (
        "there is no trace yet; none is recorded while HACHI_TRACE_CONTENT" in hachi("traces", "ls").complaint
    )
    assert hachi("traces", "ls", "--json").json == []
    for command in (["show"], ["replay", "last"], ["to-test"]):
        ran = hachi("traces", *command)
        assert (ran.code, ran.complaint) == (1, "hachi: there is no trace yet")
    hachi("chat", "-m", "hello", HACHI_TRACE_CONTENT="off")
    assert hachi("traces", "ls", "--json").json == []


def test_pruning_asks_at_a_terminal(hachi):
    hachi("chat", "-m", "hello")
    assert hachi("traces", "prune", "--older", "1d").out == "0 traces deleted\n"
    count = len(hachi("traces", "ls", "--all", "--json").json)
    noun = "trace" if count == 1 else "traces"
    would = hachi("traces", "prune", "--older", "0s", "--dry-run", "--json").json
    assert (would["count"], would["dry_run"]) == (count, True)
    kept = hachi("traces", "prune", "--older", "0s", stdin=b"n\n", typed=True)
    assert (kept.code, f"{count} {noun} from before" in kept.out) == (1, True)
    assert len(hachi("traces", "ls", "--all", "--json").json) == count
    asked = hachi("traces", "prune", "--older", "0s", stdin=b"y\n", typed=True)
    assert asked.out.endswith(f"{count} {noun} deleted\n")
    assert hachi("traces", "ls", "--json").json == []


def test_turns_are_followed_until_ctrl_c(hachi):
    hachi("chat", "-m", "I broke my shoulder", "--user", "ben")

    async def new_turn():
        async with Companion.open(Settings(home=hachi.home, embedder="bundled"), periodic_jobs=False) as pet:
            await pet.respond("hello from ana", user="ana")
            await pet.respond("hello from ben", user="ben")

    def act(out, _):
        with stopping():
            until(lambda: "shoulder" in out.getvalue())
            asyncio.run(new_turn())
            until(
                lambda: out.getvalue().count("hello from ben") and '"ok"' in out.getvalue().splitlines()[-1]
            )

    ran = hachi("traces", "tail", "--json", "-n", "1", "--user", "ben", meanwhile=act)
    assert (ran.code, ran.err) == (0, "")
    seen = [json.loads(line)["said"] for line in ran.out.splitlines()]
    assert list(dict.fromkeys(seen)) == ["I broke my shoulder", "hello from ben"]
