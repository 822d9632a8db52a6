import io

import pytest

from agent.surfaces.cli.output import console, json_line, plain, progress_bar
from agent.surfaces.cli.session import error_line


def test_control_characters_are_removed_and_line_breaks_kept():
    assert plain("a\x1b[1mb\r\n\tc\x9bd") == "a[1mb\n\tcd"


def test_json_keeps_every_script_and_refuses_unknown_types():
    text = json_line({"text": "שלום", "owners": frozenset({"b", "a"})})
    assert text == '{"text": "שלום", "owners": ["a", "b"]}'
    with pytest.raises(TypeError):
        json_line(object())


def test_width_and_progress_depend_on_the_terminal(monkeypatch):
    class Screen(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr("sys.stdout", io.StringIO())
    monkeypatch.setattr("sys.stderr", io.StringIO())
    assert (console().width, progress_bar().disable) == (160, True)
    monkeypatch.setattr("sys.stdout", Screen())
    monkeypatch.setattr("sys.stderr", Screen())
    assert (console().width, progress_bar().disable) == (80, False)


def test_an_error_is_one_line():
    assert error_line(OSError("odd\nerror")) == "odd error"
    assert error_line(OSError()) == "OSError"
