"""The command as a whole: errors are one line, never a traceback."""

import os
import signal
import subprocess
import sys
import time

import pytest

from agent.companion import Companion
from agent.surfaces.cli import main

NO_SPACE = "hachi: there is no room left to write; make room and run it again"


def test_version_and_help(shared):
    assert shared("--version").out == "hachi 0.1.0\n"
    ran = shared()
    assert ran.code == 0
    assert "chat" in ran.out
    assert "doctor" in ran.out


def test_help_loads_nothing_heavy():
    heavy = {"sqlalchemy", "agents", "openai", "rich", "numpy", "prompt_toolkit", "pydantic_settings"}
    script = (
        "import sys; from agent.surfaces.cli import main\n"
        "for args in (['--help'], ['memories', '--help'], ['chat', '--help']): main(args)\n"
        f"print(sorted({heavy!r} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("nonsense", "hachi: No such command 'nonsense'; see `hachi --help`"),
        ("memories", "hachi: Missing command; see `hachi memories --help`"),
        ("memories list --nope", "see `hachi memories list --help`"),
        ("memories list --user=", "a name, which tells one person from others"),
        ("memories add x --importance nan", "'nan' is no number from 0 to 1"),
        ("memories add x --importance much", "'much' is no number from 0 to 1"),
        ("memories add x --at yesterday", "'yesterday' is no time"),
        ("memories add x --type z", "hachi: Invalid value for '--type': 'z' is not one of"),
        ("memories erase --yes", "--user"),
        ("tasks update new", "a new task needs a --description"),
        ("tasks update abcd1234", "say what is to change"),
        ("tasks update new --due soon", "'soon' is not a time"),
        ("context set name", "VALUE"),
        ("keys create laptop", "give either --service, or --user NAME"),
        ("keys create laptop --service --user ana", "give either --service, or --user NAME"),
        ("knowledge list --user lea --place acme", "give --user or --place"),
        ("knowledge search oars --place dm", "give --user"),
        ("knowledge search x --limit 0", "--limit"),
        ("mcp", "say whose memory it is: --user NAME, or --http PORT, where keys say it"),
        ("mcp --http 0 --user ana", "over HTTP the key says whose memory it is"),
        ("mcp --http 0 --place acme", "over HTTP the key says whose memory it is"),
        ("mcp --user ana --allow-host hachi.example", "--allow-host is for HTTP"),
        ("mcp --http 70000", "less than or equal to 65535"),
        ("traces ls --since yesterday", "is no time such as 2h, 1d"),
        ("traces ls --slower soon", "no length of time such as 2s"),
        ("traces ls --limit 0", "--limit"),
        ("traces prune", "Missing option '--older'"),
        ("traces stats --price gpt", "is no price such as"),
        ("traces stats --price gpt=1/2/3/4", "is no price such as"),
        ("traces replay", "name the turns by their ids, or --newest N"),
        ("traces replay last --newest 2", "name the turns by their ids, or --newest N"),
        ("traces replay last --from 2", "--from N and --model live go together"),
        ("traces replay last --model live", "--from N and --model live go together"),
    ],
)
def test_wrong_usage_is_one_line_and_exits_with_2(shared, args, message):
    ran = shared(*args.split())
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.complaint


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"HACHI_MAX_TURNS": "soon"}, "HACHI_MAX_TURNS='soon'"),
        ({"HACHI_EMBEDDER": "crystal-ball"}, "there is no embedder 'crystal-ball'"),
        ({"DATABASE_URL": "mysql://x"}, "DATABASE_URL names mysql"),
    ],
)
def test_a_wrong_setting_is_one_line(shared, settings, message):
    ran = shared("memories", "list", **settings)
    assert (ran.code, ran.out) == (1, "")
    assert message in ran.complaint
    debug = shared("--debug", "memories", "list", **settings).err
    assert "Traceback" in debug
    assert message in debug.splitlines()[-1]


def test_a_missing_model_is_reported_before_anything_is_typed(shared):
    ran = shared("chat", stdin=b"hello\n", OPENAI_BASE_URL="http://127.0.0.1:9/v1")
    assert ran.code == 1
    assert "HACHI_MODEL" in ran.complaint


def test_a_database_or_folder_that_cannot_be_used_is_one_line(hachi, home):
    (home / "hachi.db").write_text("garbage\n" * 1000)
    ran = hachi("memories", "list")
    assert (ran.code, "no database, or a damaged one" in ran.complaint) == (1, True)
    ran = hachi("memories", "list", HACHI_HOME=str(home / "hachi.db"))
    assert (ran.code, "set HACHI_HOME" in ran.complaint) == (1, True)


def test_a_bug_is_one_line_with_its_traceback_in_the_log(hachi, home, monkeypatch):
    async def breaks(*_, **__):
        raise ZeroDivisionError("a slip")

    monkeypatch.setattr(Companion, "memories", breaks)
    ran = hachi("memories", "list")
    assert ran.code == 1
    assert ran.complaint == (
        "hachi: something broke inside: ZeroDivisionError: a slip; run again with `hachi --debug …`"
    )
    assert "Traceback" in (home / "hachi.log").read_text()


def test_the_log_goes_to_the_terminal_only_with_verbose(hachi, home):
    assert hachi("memories", "add", "Mickael skis").err == ""
    assert '"event": "memory_decision"' in hachi("-v", "memories", "add", "Mickael rides a horse").err
    assert (home / "hachi.log").read_text().count("memory_decision") == 2


def test_ctrl_c_ends_a_process_with_one_line(process):
    running = process("chat")
    running.stdin.write(b"hello\n")
    running.stdin.flush()
    assert running.stdout.readline()
    running.send_signal(signal.SIGINT)
    began = time.monotonic()
    assert running.wait(timeout=20) == 1
    assert time.monotonic() - began < 10, "it waits for a line that never comes"
    assert running.stderr.read().splitlines()[-1] == b"hachi: stopped"


def test_ctrl_c_stops_a_turn(hachi, model):
    model.answer, model.pause = "Hello there", 5.0
    waiting = model.interrupt_once_asked()
    ran = hachi("chat", "-m", "hello")
    waiting.join()
    assert (ran.code, ran.out, ran.complaint) == (1, "", "hachi: stopped")


def test_a_closed_pipe_ends_it_quietly_and_what_was_said_is_kept(process, hachi):
    running = process("chat", "--user", "lea")
    running.stdout.close()
    running.stdin.write(b"My name is Lea\nMy name is Lea\nMy name is Lea\n")
    running.stdin.close()
    assert running.wait(timeout=30) == 1
    err = running.stderr.read()
    assert b"Traceback" not in err
    assert b"Broken" not in err
    assert "My name is Lea" in hachi("memories", "export", "--user", "lea").out


def test_a_full_disk_is_one_line(process, hachi, monkeypatch, capsys):
    with open("/dev/full", "wb") as full:
        running = process("memories", "export", stdout=full)
        _, err = running.communicate(timeout=30)
    assert (running.returncode, err.decode().splitlines()) == (1, [NO_SPACE])
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert main(["memories", "export"]) == 1
    assert capsys.readouterr().err.splitlines() == [NO_SPACE]


def test_closed_streams_are_no_error(home, monkeypatch):
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    assert main(["memories", "list"]) == 0
    for name in ("stdout", "stderr"):
        getattr(sys, name).close()
    command = [sys.executable, "-m", "agent.surfaces.cli"]
    closed = subprocess.run(["sh", "-c", 'exec "$0" -m "$2" chat <&- >&- 2>&-', *command], env=os.environ)
    assert closed.returncode == 0
