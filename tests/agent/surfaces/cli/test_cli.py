"""The command as a whole: what it says when something is wrong, and that it never shows a traceback."""

import logging
import os
import signal
import subprocess
import sys
import time

import pytest

from agent.companion import Companion

NO_ROOM = "hachi: there is no room left to write; make room and run it again"


def test_the_version_is_said(hachi):
    assert hachi("--version").out == "hachi 0.1.0\n"


def test_without_a_command_help_is_shown(hachi):
    ran = hachi()
    assert ran.code == 0
    assert "chat" in ran.out
    assert "doctor" in ran.out


@pytest.mark.parametrize("args", [["--help"], ["memories", "--help"], ["chat", "--help"]])
def test_help_loads_nothing_heavy(args):
    heavy = {"sqlalchemy", "agents", "openai", "rich", "numpy", "prompt_toolkit", "pydantic_settings"}
    look = (
        f"import sys; from agent.surfaces.cli import main; main({args!r});"
        f"print(sorted({heavy!r} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True).stdout
    assert out.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["nonsense"], "hachi: No such command 'nonsense'; see `hachi --help`"),
        (["memories"], "hachi: Missing command; see `hachi memories --help`"),
        (["memories", "list", "--nope"], "see `hachi memories list --help`"),
        (["memories", "list", "-u", " "], "a name, which tells one person from others"),
        (["memories", "add", "x", "--importance", "nan"], "'nan' is no number from 0 to 1"),
        (["memories", "add", "x", "--importance", "much"], "'much' is no number from 0 to 1"),
        (["memories", "add", "x", "--at", "yesterday"], "'yesterday' is no time"),
        (["memories", "add", "x", "--type", "z"], "hachi: Invalid value for '--type': 'z' is not one of"),
        (["tasks", "update", "new"], "a new task needs a --description"),
    ],
)
def test_a_mistyped_command_is_told_in_one_line(hachi, args, said):
    ran = hachi(*args)
    assert ran.code == 2
    assert said in ran.complaint


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"HACHI_MAX_TURNS": "soon"}, "HACHI_MAX_TURNS='soon'"),
        ({"HACHI_EMBEDDER": "crystal-ball"}, "there is no embedder 'crystal-ball'"),
        ({"DATABASE_URL": "mysql://x"}, "DATABASE_URL names mysql"),
    ],
)
def test_a_wrong_setting_is_told_in_one_line(hachi, monkeypatch, settings, said):
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    ran = hachi("memories", "list")
    assert (ran.code, ran.out) == (1, "")
    assert said in ran.complaint


def test_a_model_nobody_named_is_asked_for_before_anything_is_typed(hachi, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    ran = hachi("chat", stdin=b"hello\n")
    assert ran.code == 1
    assert "HACHI_MODEL" in ran.complaint


def test_a_damaged_database_is_told_in_one_line(hachi, home):
    home.mkdir()
    (home / "hachi.db").write_text("garbage\n" * 1000)
    ran = hachi("memories", "list")
    assert ran.code == 1
    assert "no database, or a damaged one" in ran.complaint


def test_a_data_folder_that_cannot_be_made_is_told_in_one_line(hachi, home):
    home.write_text("a file")
    ran = hachi("memories", "list")
    assert ran.code == 1
    assert "set HACHI_HOME" in ran.complaint


def test_what_nobody_foresaw_is_one_line_with_the_traceback_in_the_log(hachi, home, monkeypatch):
    async def breaks(*_, **__):
        raise ZeroDivisionError("a slip")

    monkeypatch.setattr(Companion, "memories", breaks)
    ran = hachi("memories", "list")
    assert ran.code == 1
    assert ran.complaint == (
        "hachi: something broke inside: ZeroDivisionError: a slip; run again with `hachi --debug …`"
    )
    assert "Traceback" in (home / "hachi.log").read_text()


def test_with_debug_the_traceback_is_shown(hachi, monkeypatch):
    monkeypatch.setenv("HACHI_MAX_TURNS", "soon")
    ran = hachi("--debug", "memories", "list")
    assert "Traceback" in ran.err
    assert ran.err.splitlines()[-1].startswith("hachi: HACHI_MAX_TURNS")


def test_the_log_goes_to_the_terminal_only_when_asked(hachi, home):
    quiet = hachi("memories", "add", "Mickael skis")
    loud = hachi("-v", "memories", "add", "Mickael rides a horse")
    assert quiet.err == ""
    assert '"event": "memory_decision"' in loud.err
    assert (home / "hachi.log").read_text().count("memory_decision") == 2
    assert logging.root.handlers == [h for h in logging.root.handlers if "hachi" not in type(h).__module__]


def test_ctrl_c_ends_with_one_line(process):
    running = process("chat")
    running.stdin.write(b"hello\n")
    running.stdin.flush()
    assert running.stdout.readline()
    running.send_signal(signal.SIGINT)
    began = time.monotonic()
    assert running.wait(timeout=20) == 1
    assert time.monotonic() - began < 10, "it waits for a line that never comes"
    assert running.stderr.read().splitlines()[-1] == b"hachi: stopped"


def test_a_reader_that_has_gone_ends_it_quietly(process, hachi):
    running = process("chat", "--user", "lea")
    running.stdout.close()
    running.stdin.write(b"My name is Lea\nMy name is Lea\nMy name is Lea\n")
    running.stdin.close()
    assert running.wait(timeout=30) == 1
    assert b"Traceback" not in (err := running.stderr.read())
    assert b"Broken" not in err
    assert "My name is Lea" in hachi("memories", "export", "--user", "lea").out


def test_output_that_finds_no_room_is_told_in_one_line(process):
    with open("/dev/full", "wb") as full:
        running = process("memories", "export", stdout=full)
        _, err = running.communicate(timeout=30)
    assert running.returncode == 1
    assert err.decode().splitlines() == [NO_ROOM]


def test_output_that_finds_no_room_is_let_go_of(hachi, monkeypatch):
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        ran = hachi("memories", "export")
    assert (ran.code, ran.complaint) == (1, NO_ROOM)


def test_a_reader_that_has_gone_loses_nothing(hachi, monkeypatch):
    read, write = os.pipe()
    os.close(read)
    with monkeypatch.context() as patch, os.fdopen(write, "w") as nobody:
        patch.setattr(sys, "stdout", nobody)
        ran = hachi("chat", "--json", stdin=b"I broke my shoulder\nMy sister is called Lea\n")
    assert ran.code == 1
    assert len(ran.err.splitlines()) == 1, "only the stand-in's announcement"
    assert len(hachi("memories", "list", "--json").json) == 1


def test_ctrl_c_stops_what_is_going_on(hachi, model):
    model.answer, model.pause = "Hello there", 5.0

    waiting = model.interrupt_once_asked()
    ran = hachi("chat", "-m", "hello")
    waiting.join()
    assert (ran.code, ran.out, ran.complaint) == (1, "", "hachi: stopped")


def test_closed_streams_are_no_fault(hachi, monkeypatch):
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    assert hachi("memories", "list").code == 0
    for name in ("stdout", "stderr"):
        getattr(sys, name).close()


def test_it_runs_without_any_streams(home):
    call = "import sys; from agent.surfaces.cli import main; sys.exit(main(['chat']))"
    closed = subprocess.run(["sh", "-c", 'exec "$0" -c "$1" <&- >&- 2>&-', sys.executable, call])
    assert closed.returncode == 0
