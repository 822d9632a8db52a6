"""`hachi traces`: what happened in turns, from the command line."""

import asyncio
import json
import signal
import subprocess
import sys
import time

import pytest

from agent.surfaces.cli.traces import tail as traces_tail
from agent.tracing.filters import read_duration

HEAVY = ("agents", "openai", "qdrant_edge", "qdrant_client", "wordllama", "numpy", "rich", "alembic")


@pytest.fixture
def told(hachi):
    """Two people, one of them in a place; what was said is looked up, remembered, noted."""
    hachi("chat", "-m", "my sister Lucie is allergic to nuts", "--user", "ana")
    hachi("chat", "-m", "what is Lucie allergic to?", "--user", "ana")
    hachi("chat", "-m", "I broke my shoulder", "--user", "ben", "--place", "acme/general")


def said(found):
    return [one["said"] for one in found.json]


def test_turns_are_listed_newest_first(hachi, told):
    lines = hachi("traces", "ls").out.splitlines()
    assert lines[0].split() == "ID WHEN WHERE USER SAID CALLS TOOLS TOKENS DUR STATUS".split()
    assert ["shoulder" in line for line in lines[1:]] == [True, False, False]
    assert "acme/general" in lines[1]
    assert lines[1].endswith("  ok")
    assert len({len(line.partition("dm ")[0]) for line in lines[2:]}) == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--user", "ana"], ["what is Lucie", "my sister"]),
        (["--place", "dm"], ["what is Lucie", "my sister"]),
        (["--place", "acme"], ["I broke"]),
        (["--tool", "search_memories"], ["what is Lucie"]),
        (["--text", "LUCIE"], ["what is Lucie", "my sister"]),
        (["--since", "1d", "-n", "1"], ["I broke"]),
        (["--since", "2999-01-01"], []),
        (["--slower", "0ms"], ["I broke", "what is Lucie", "my sister"]),
        (["--slower", "10m"], []),
        (["--error"], []),
        (["--user", "ana", "--tool", "remember"], ["my sister"]),
    ],
    ids=" ".join,
)
def test_what_is_listed_can_be_chosen(hachi, told, options, words):
    found = said(hachi("traces", "ls", "--json", *options))
    assert [any(word in text for word in words) for text in found] == [True] * len(words)


def test_the_work_after_turns_is_listed_where_it_is_asked_for(hachi, told):
    found = hachi("traces", "ls", "--all", "--json").json
    kinds = [one["kind"] for one in found]
    assert kinds.count("turn") == 3
    assert "look_back" in kinds
    turns = {one["id"] for one in found if one["kind"] == "turn"}
    assert {one["turn_id"] for one in found if one["kind"] != "turn"} <= turns
    assert "look_back of " in hachi("traces", "ls", "--all").out


def test_a_turn_is_shown_by_the_beginning_of_its_id_and_as_the_last(hachi, told):
    last, first = hachi("traces", "show"), hachi("traces", "ls", "--json").json[-1]
    assert 'ben: "I broke my shoulder"' in last.out
    assert last.out == hachi("traces", "show", "last").out
    shown = hachi("traces", "show", first["id"][:14]).out
    assert 'ana: "my sister Lucie is allergic to nuts"' in shown
    assert "remember(" in shown
    assert "afterwards" in shown
    assert len(shown.splitlines()) < 40
    assert "system message, rules" in hachi("traces", "show", "--full").out
    whole = hachi("traces", "show", first["id"], "--json").json
    assert whole["root"]["spans"][1]["data"]["request"]["system"].startswith("You are Hachi")
    assert [one["kind"] for one in whole["afterwards"]] == ["look_back"]


def test_a_tool_that_fails_is_seen_at_a_glance(hachi, told, monkeypatch):
    monkeypatch.setenv("QDRANT_URL", "http://127.0.0.1:9")
    hachi("chat", "-m", "what is Lucie allergic to?", "--user", "ana")
    [line] = hachi("traces", "ls", "--error").out.splitlines()[1:]
    assert "2 1✗" in line
    assert line.endswith("  tool_error: search_memories")
    shown = hachi("traces", "show").out
    assert "✗ search_memories(" in shown
    assert "127.0.0.1:9" in shown


def test_a_model_that_does_not_answer_is_seen_at_a_glance(hachi, model, monkeypatch):
    model.pause = 5.0
    monkeypatch.setenv("HACHI_MODEL_TIMEOUT", "0.2")
    failed = hachi("chat", "-m", "hello?")
    assert "trace_" in failed.err
    [line] = hachi("traces", "ls", "--error").out.splitlines()[1:]
    assert "  error: ModelUnavailable: the model at http://127.0.0.1" in line
    shown = hachi("traces", "show", failed.err.partition("(trace_")[2][:8]).out
    assert "✗ call 1  small" in shown
    assert "did not answer within 0.2 s" in shown


def test_an_answer_that_was_read_leniently_is_marked(hachi, model):
    hachi("chat", "-m", "hello?")
    assert hachi("traces", "ls").out.splitlines()[1].endswith("  malformed")
    assert "read leniently" in hachi("traces", "show").out


def test_nothing_recorded_is_said(hachi, monkeypatch):
    assert hachi("traces", "ls").complaint == "hachi: there is no such trace"
    assert hachi("traces", "ls", "--json").json == []
    assert hachi("traces", "show").complaint == "hachi: there is no trace yet"
    monkeypatch.setenv("HACHI_TRACES", "false")
    hachi("chat", "-m", "hello")
    assert "HACHI_TRACES is off" in hachi("traces", "ls").complaint


@pytest.mark.parametrize(
    ("args", "complaint", "code"),
    [
        (["show", "deadbeef"], "there is no trace 'deadbeef'", 1),
        (["show", "xyz"], "'xyz' is no id of a trace", 1),
        (["export", "deadbeef"], "there is no trace 'deadbeef'", 1),
        (["diff", "last", "deadbeef"], "there is no trace", 2),
        (["ls", "--since", "yesterday"], "is no time such as 2h, 1d", 2),
        (["ls", "--slower", "soon"], "no length of time such as 2s", 2),
        (["prune"], "Missing option '--older'", 2),
        (["stats", "--price", "gpt"], "is no price such as", 2),
        (["stats", "--price", "gpt=1/2/3/4"], "is no price such as", 2),
        (["ls", "--limit", "0"], "--limit", 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_is_wrong_is_one_line(hachi, args, complaint, code):
    ran = hachi("traces", *args)
    assert (ran.code, complaint in ran.complaint) == (code, True)
    assert ran.out == ""


def test_turns_are_compared(hachi, told):
    one, other = [summary["id"] for summary in hachi("traces", "ls", "--json").json[:2]]
    differing = hachi("traces", "diff", one, other)
    assert differing.code == 1
    assert "@@ what was said: differs\n-I broke my shoulder\n+what is Lucie allergic to?\n" in differing.out
    same = hachi("traces", "diff", one, one)
    assert (same.code, same.out) == (0, "")
    assert "are the same" in same.complaint
    found = hachi("traces", "diff", one, other, "--json").json
    assert found[0] == {
        "where": "what was said",
        "what": "differs",
        "before": "I broke my shoulder",
        "after": "what is Lucie allergic to?",
    }


@pytest.mark.parametrize(
    ("format", "begins"),
    [("json", "["), ("md", "# Trace "), ("html", "<!doctype"), ("otlp", '{"resourceSpans"')],
)
def test_traces_are_written_to_a_file_for_the_owner_alone(hachi, told, tmp_path, format, begins):
    one, other = [summary["id"] for summary in hachi("traces", "ls", "--json").json[:2]]
    file = tmp_path / f"traces.{format}"
    ran = hachi("traces", "export", one, other, "--format", format, "--output", str(file))
    assert ran.out == ""
    assert ran.complaint == f"hachi: 2 traces are in {file}"
    assert file.stat().st_mode & 0o077 == 0
    text = file.read_text()
    assert text.startswith(begins)
    assert text == hachi("traces", "export", one, other, "--format", format, "-o", "-").out
    assert "shoulder" in text
    assert "Lucie" in text


def test_a_file_that_cannot_be_written_is_named(hachi, told, tmp_path):
    ran = hachi("traces", "export", "last", "--output", str(tmp_path / "no" / "file.json"))
    assert ran.code == 1
    assert "file.json" in ran.complaint


def test_tools_and_models_are_counted_and_cost_what_is_said(hachi, told):
    table = hachi("traces", "stats").out
    assert [line.split()[0] for line in table.splitlines() if line] == [
        *("TURNS", "3", "AFTER", "look_back"),
        *("TOOL", "remember", "get_recent_memories", "search_memories", "MODEL", "offline"),
    ]
    assert table.splitlines()[-1].endswith("?")
    counted = hachi("traces", "stats", "--json", "--price", "offline=1/2").json
    assert counted["models"]["offline"]["calls"] == 6
    assert counted["models"]["offline"]["cost"] == 0.0
    assert counted["tools"]["remember"]["errors"] == 0
    assert hachi("traces", "stats", "--user", "ben", "--json").json["turns"]["calls"] == 1
    assert hachi("traces", "stats", "--since", "2999-01-01", "--json").json["turns"]["calls"] == 0
    unused = hachi("traces", "stats", "--price", "other=1/2")
    assert "no call of 'other' is recorded" in unused.complaint


def test_old_traces_are_deleted_where_that_is_wanted(hachi, told):
    assert hachi("traces", "prune", "--older", "1d").out == "0 traces deleted\n"
    count = len(hachi("traces", "ls", "--all", "--json").json)
    would = hachi("traces", "prune", "--older", "0s", "--dry-run", "--json").json
    assert (would["count"], would["dry_run"]) == (count, True)
    kept = hachi("traces", "prune", "--older", "0s", stdin=b"n\n", typed=True)
    assert (kept.code, f"{count} traces from before" in kept.out) == (1, True)
    assert len(hachi("traces", "ls", "--all", "--json").json) == count
    asked = hachi("traces", "prune", "--older", "0s", stdin=b"y\n", typed=True)
    assert asked.out.endswith(f"{count} traces deleted\n")
    assert hachi("traces", "ls", "--json").json == []


def test_they_may_be_in_a_database_of_their_own(hachi, tmp_path, monkeypatch):
    monkeypatch.setenv("HACHI_TRACES_URL", f"sqlite:///{tmp_path}/traces.db")
    hachi("chat", "-m", "hello")
    assert said(hachi("traces", "ls", "--json")) == ["hello"]
    monkeypatch.delenv("HACHI_TRACES_URL")
    assert said(hachi("traces", "ls", "--json")) == []


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("500ms", 0.5), ("1.5h", 5400), ("2 d", 172_800), ("1w", 604_800), ("3", None)],
)
def test_a_length_of_time_is_read(text, seconds):
    found = read_duration(text)
    assert (found.total_seconds() if found else None) == seconds


def test_looking_at_traces_loads_nothing_heavy(hachi, told, home):
    """Most of the time that `ls` and `show` take is loading modules."""
    script = (
        "import sys; from agent.surfaces.cli import main\n"
        "codes = main(['traces', 'ls']), main(['traces', 'show'])\n"
        f"print(codes, [name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert ran.stderr.strip() == "(0, 0) []"


def test_turns_of_another_process_are_followed_until_ctrl_c(hachi, told, process):
    following = process("traces", "tail", "--json", "-n", "1", "--user", "ben")
    first = json.loads(following.stdout.readline())
    assert first["said"] == "I broke my shoulder"
    hachi("chat", "-m", "hello from ana", "--user", "ana")
    hachi("chat", "-m", "hello from ben", "--user", "ben")
    status = ""
    while status in ("", "running"):
        new = json.loads(following.stdout.readline())
        status = new["status"]
        assert new["said"] == "hello from ben"
    following.send_signal(signal.SIGINT)
    out, err = following.communicate(timeout=20)
    assert (following.returncode, err) == (0, b"")
    assert out == b""


def test_a_follower_whose_reader_has_gone_ends(hachi, told, process):
    following = process("traces", "tail")
    assert following.stdout.readline().startswith(b"ID")
    following.stdout.close()
    end = time.monotonic() + 30
    number = 0
    while following.poll() is None and time.monotonic() < end:
        number += 1
        hachi("chat", "-m", f"hello {number}")
    assert following.returncode == 1
    assert b"Traceback" not in following.stderr.read()


async def test_a_turn_that_goes_on_is_told_again_when_it_ends(tmp_path):
    """And one whose process is gone, as killed."""
    from datetime import UTC, datetime

    from agent.tracing.redact import Redaction
    from agent.tracing.serialization import Serializer
    from agent.tracing.store import TraceFilter, Traces, this_process
    from agent.tracing.trace import Summary
    from memory.spans import Recording, Span
    from memory.sql.engine import Database

    gone = await asyncio.create_subprocess_exec(sys.executable, "-c", "")
    await gone.wait()
    database = await Database.open(None, tmp_path)
    traces, now = Traces(database), datetime.now(UTC)

    async def write(number, ended, pid):
        recorded = Recording(f"trace_{number:032x}", Span("turn"))
        recorded.open = not ended
        by = Serializer("full", Redaction(), {}, "cli", pid)
        about = Summary(id=recorded.id, kind="turn", started_at=now, user=None, said=str(number))
        await traces.write([by.serialize(recorded, about)], now)

    here, killed = this_process(), f"{this_process().rpartition(':')[0]}:{gone.pid}-0"
    await write(1, True, here)
    following = traces_tail.followed(traces, TraceFilter(), 1, pause=0.01)
    heard = []
    try:
        async with asyncio.timeout(20):
            for number, ended, pid in (
                (1, True, here),
                (2, False, here),
                (2, True, here),
                (3, False, killed),
            ):
                await write(number, ended, pid)
                heard.append(await anext(following))
    finally:
        await following.aclose()
        await database.close()
    assert [(one.id[-1], one.status) for one in heard] == [
        ("1", "ok"),
        ("2", "running"),
        ("2", "ok"),
        ("3", "killed"),
    ]
