import sys

import pytest

from agent.surfaces.cli.output import console, json_line, plain, progress_bar
from agent.surfaces.cli.session import error_line


def test_control_characters_are_taken_out_and_lines_kept():
    assert plain("a\x1b[1mb\r\n\tc\x9bd") == "a[1mb\n\tcd"


def test_json_keeps_every_script_and_knows_its_values():
    assert (
        json_line({"text": "שלום", "owners": frozenset({"b", "a"})})
        == '{"text": "שלום", "owners": ["a", "b"]}'
    )
    with pytest.raises(TypeError):
        json_line(object())


def test_a_table_in_a_file_is_wide(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert console().width == 160
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert console().width == 80


def test_progress_shows_where_somebody_sees_it(monkeypatch):
    assert progress_bar().disable
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert not progress_bar().disable


def test_an_error_is_always_one_line():
    assert error_line(OSError("odd\nerror")) == "odd error"
    assert error_line(OSError()) == "OSError"
