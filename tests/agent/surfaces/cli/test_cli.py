"""The command as a whole: errors are one line, never a traceback."""

import os
import shlex
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from command import stopping, until
from scripted_server import Say

from agent.services.listing import ListService
from agent.surfaces.cli import main
from agent.surfaces.cli.options import login

NO_SPACE = "hachi: there is no room left to write; make room and run it again"
WRONG_USAGE = [
    line.split(" → ") for line in Path(__file__).with_name("wrong_usage.txt").read_text().splitlines()
]


def test_version_and_help(shared):
    assert shared("--version").out == "hachi 0.1.0\n"
    ran = shared()
    assert (ran.code, "chat" in ran.out, "doctor" in ran.out) == (0, True, True)


def test_no_line_of_help_is_cut(shared):
    groups = "memories people tasks context messages conversations knowledge traces keys jobs".split()
    for group in ["", *groups]:
        ran = shared(*group.split(), "-h", COLUMNS="60")
        commands = ran.out.partition("Commands:\n")[2].splitlines()
        assert commands
        assert [line for line in commands if line.endswith("...")] == []


def test_a_shell_completes_commands(monkeypatch, capsys):
    monkeypatch.setenv("_HACHI_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "hachi mem")
    monkeypatch.setenv("COMP_CWORD", "1")
    with pytest.raises(SystemExit, match="0"):
        main([])
    assert capsys.readouterr().out.split() == ["memories"]


@pytest.mark.parametrize(
    ("commands", "heavy"),
    [
        ("--help,memories --help,chat --help", "sqlalchemy agents openai rich numpy prompt_toolkit"),
        ("traces ls,traces show", "agents openai qdrant_client wordllama numpy alembic"),
        ("memories list --json,doctor", "agents openai mcp qdrant_client wordllama numpy alembic"),
    ],
)
def test_nothing_heavy_is_loaded_before_it_is_needed(hachi, commands, heavy):
    hachi("chat", "-m", "hello")
    script = (
        "import sys; from agent.surfaces.cli import main\n"
        f"codes = [main(line.split()) for line in {commands!r}.split(',')]\n"
        f"print(any(codes), sorted(set({heavy!r}.split()) & set(sys.modules)), file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stderr == "False []\n"


@pytest.mark.parametrize(("args", "message"), WRONG_USAGE, ids=[args for args, _ in WRONG_USAGE])
def test_wrong_usage_is_one_line_and_exits_with_2(shared, args, message):
    ran = shared(*shlex.split(args))
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
    ran = shared("memories", "search", "x", **settings)
    assert (ran.code, ran.out) == (1, "")
    assert message in ran.complaint
    debug = shared("--debug", "memories", "search", "x", **settings).err
    assert "Traceback" in debug
    assert message in debug.splitlines()[-1]


def test_a_database_or_folder_that_cannot_be_used_is_one_line(hachi, home):
    (home / "hachi.db").write_text("garbage\n" * 1000)
    ran = hachi("memories", "list")
    assert (ran.code, "no database, or a damaged one" in ran.complaint) == (1, True)
    ran = hachi("memories", "list", HACHI_HOME=str(home / "hachi.db"))
    assert (ran.code, "set HACHI_HOME" in ran.complaint) == (1, True)


def test_a_bug_is_one_line_with_its_traceback_in_the_log(hachi, home, monkeypatch):
    async def breaks(*_, **__):
        raise ZeroDivisionError("a slip")

    monkeypatch.setattr(ListService, "list", breaks)
    ran = hachi("memories", "list")
    assert ran.code == 1
    assert ran.complaint == (
        "hachi: internal error: ZeroDivisionError: a slip; run again with `hachi --debug …`"
    )
    assert "Traceback" in (home / "hachi.log").read_text()


def test_ctrl_c_stops_a_turn(hachi, model):
    model.then = Say("Hello there", pause=5.0)

    def press(*_):
        with stopping():
            until(lambda: model.asked)

    ran = hachi("chat", "-m", "hello", meanwhile=press)
    assert (ran.code, ran.out, ran.complaint) == (1, "", "hachi: stopped")


def test_a_closed_pipe_ends_it_quietly_and_what_was_said_is_kept(hachi, monkeypatch, capsys):
    reading, writing = os.pipe()
    os.close(reading)
    with suppress(OSError), open(writing, "w") as closed:  # the file is flushed when it is closed
        monkeypatch.setattr(sys, "stdout", closed)
        assert main(["chat", "--user", "lea", "-m", "My name is Lea"]) == 1
        monkeypatch.undo()
    err = capsys.readouterr().err
    assert "Traceback" not in err
    assert "Broken" not in err
    assert "My name is Lea" in hachi("memories", "export", "--user", "lea").out


def test_a_full_disk_is_one_line(home, monkeypatch, capsys):
    with suppress(OSError), open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert main(["memories", "export"]) == 1
    assert capsys.readouterr().err.splitlines() == [NO_SPACE]


def test_closed_streams_are_no_error(home, monkeypatch):
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    assert main(["chat"]) == 0
    for name in ("stdout", "stderr"):
        getattr(sys, name).close()


@pytest.mark.parametrize(
    ("environment", "name"),
    [({"LOGNAME": "ann", "USER": "bea"}, "ann"), ({"LOGNAME": "", "USER": "bea"}, "bea"), ({}, "you")],
)
def test_the_login_name_is_from_the_environment(monkeypatch, environment, name):
    for key in ("LOGNAME", "USER", "USERNAME"):
        monkeypatch.delenv(key, raising=False)
    for key, value in environment.items():
        monkeypatch.setenv(key, value)
    assert login() == name
