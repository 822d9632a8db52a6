import io

import pytest
from command import Screen

from agent.surfaces.cli.output import Output, console, plain, progress_bar


def test_control_characters_are_removed_and_line_breaks_kept():
    assert plain("a\x1b[1mb\r\n\tc\x9bd") == "a[1mb\n\tcd"


def test_json_keeps_every_script_and_refuses_unknown_types(capsys):
    Output({"text": "שלום", "owners": frozenset({"b", "a"})}, "").print(json=True)
    assert capsys.readouterr().out.split() == '{ "text": "שלום", "owners": [ "a", "b" ] }'.split()
    with pytest.raises(TypeError):
        Output(object(), "").print(json=True)


def test_width_and_progress_depend_on_the_terminal(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    for kind, seen in ((io.StringIO, (160, True)), (Screen, (80, False))):
        monkeypatch.setattr("sys.stdout", kind())
        monkeypatch.setattr("sys.stderr", kind())
        assert (console().width, progress_bar().disable) == seen
