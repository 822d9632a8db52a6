import io

import pytest
from command import Screen

from agent.surfaces.cli.output import Output, console, plain, print_table, progress_bar, say


def test_what_would_drive_the_terminal_is_shown_escaped_and_every_script_stays(capsys):
    evil = "a\x1b[1mb\r\n\tc\x9bd\u202etxt.exe\u2028e"
    shown = "a\\x1b[1mb\n\tc\\x9bd\\u202etxt.exe\\u2028e"
    assert plain(evil) == shown
    say(evil)
    assert capsys.readouterr().err == f"hachi: {shown}\n"
    for kept in (
        "התור שלי ביום שני",
        "موعدي غدا",
        "👩\u200d🚀 👩\u200d👩\u200d👧",
        "नमस्\u200dते",
        "one\n\ttwo",
    ):
        assert plain(kept) == kept


def test_json_keeps_every_script_and_refuses_unknown_types(capsys):
    Output({"text": "שלום", "owners": frozenset({"b", "a"})}, "").print(json=True)
    assert capsys.readouterr().out.split() == '{ "text": "שלום", "owners": [ "a", "b" ] }'.split()
    with pytest.raises(TypeError):
        Output(object(), "").print(json=True)


@pytest.mark.parametrize(
    ("columns", "shown"), [("160", ["id", "content", "subjects", "type"]), ("50", ["id", "content"])]
)
def test_a_narrow_table_leaves_columns_out_and_keeps_the_text_readable(monkeypatch, capsys, columns, shown):
    monkeypatch.setenv("COLUMNS", columns)
    row = ("ac56a0f1", "Paul works as a carpenter in the old harbour", "paul, harbour, wood", "preference")
    print_table(("id", "content", "subjects", "type"), [row])
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == shown
    assert any("Paul works as a carpenter" in line for line in lines)


def test_width_and_progress_depend_on_the_terminal(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    for kind, seen in ((io.StringIO, (160, True)), (Screen, (80, False))):
        monkeypatch.setattr("sys.stdout", kind())
        monkeypatch.setattr("sys.stderr", kind())
        assert (console().width, progress_bar().disable) == seen
