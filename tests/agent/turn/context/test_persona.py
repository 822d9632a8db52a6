"""Who the companion is, in a file of a person's own."""

from pathlib import Path

import pytest

from agent.errors import SettingsError
from agent.turn.context.persona import MAX_CHARACTERS, read_persona


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"\n# Rex\n\nYou fetch. \n", "# Rex\n\nYou fetch."),
        ("あなたはレックス。🐕".encode(), "あなたはレックス。🐕"),
        (b"\xef\xbb\xbfYou are Rex.\r\nYou fetch.\r\n", "You are Rex.\nYou fetch."),
        ("é".encode() * MAX_CHARACTERS, "é" * MAX_CHARACTERS),
    ],
    ids=["trimmed", "of any script", "with the mark of some editors", "of a page"],
)
def test_a_persona_is_the_text_of_its_file(tmp_path, monkeypatch, content, text):
    (tmp_path / "rex.md").write_bytes(content)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert read_persona(tmp_path / "rex.md") == read_persona(Path("~/rex.md")) == text
    assert read_persona(None) == ""


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("You are Rex.".encode("utf-16"), "is not UTF-8 text"),
        *((blank.encode(), "is empty; give a Markdown file, or unset it") for blank in ("", " \n", "\u2028")),
        ("é".encode() * (MAX_CHARACTERS + 1), "has more than 20,000 characters; shorten it"),
    ],
)
def test_what_can_be_no_persona_is_refused(tmp_path, content, reason):
    (tmp_path / "rex.md").write_bytes(content)
    assert reason in refused(tmp_path / "rex.md")


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("~nobody-of-this-name/rex.md", "~nobody-of-this-name/rex.md cannot be read"),
        ("/nowhere/rex.md", "/nowhere/rex.md cannot be read (No such file or directory)"),
        ("/", "/ cannot be read (Is a directory)"),
        ("rex\x00.md", "cannot be read"),
        ("/dev/zero", "is not UTF-8 text"),  # which has no end
    ],
)
def test_what_cannot_be_read_is_named(path, reason):
    assert reason in refused(Path(path))


def refused(path: Path) -> str:
    with pytest.raises(SettingsError) as caught:
        read_persona(path)
    reason = str(caught.value)
    assert reason.startswith("HACHI_PERSONA: ")
    assert len(reason.splitlines()) == 1
    return reason
