"""Who the companion is, in a file of a person's own."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from agent.errors import SettingsError
from agent.turn.persona import MAX_CHARACTERS, read_persona
from agent.turn.prompt import PromptContext, build_messages_for_model
from memory.audience import PRIVATE


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "persona.md"


def refused(path: Path) -> str:
    with pytest.raises(SettingsError) as caught:
        read_persona(path)
    reason = str(caught.value)
    assert reason.startswith("HACHI_PERSONA: ")
    assert len(reason.splitlines()) == 1
    return reason


def test_nobody_is_named_where_no_file_is() -> None:
    assert read_persona(None) == ""


@pytest.mark.parametrize(
    "text",
    [
        "You are Rex.",
        "# Rex\n\nYou fetch.",
        "אתה רקס, כלב נאמן.",
        "あなたはレックス。🐕",
        "{{places}} {{speaker}}",
    ],
)
def test_a_persona_is_the_text_of_its_file(file: Path, text: str) -> None:
    file.write_text(f"\n{text} \n", encoding="utf-8")

    assert read_persona(file) == text


def test_braces_in_it_are_taken_literally(file: Path, clock: Callable[[], datetime]) -> None:
    file.write_text("You are Rex, {{speaker}}'s dog. {{places}}", encoding="utf-8")

    scene = PromptContext(clock(), "Ana", PRIVATE, (), "hi", persona=read_persona(file))

    written = build_messages_for_model(scene)[0]["content"]
    assert written.startswith("You are Rex, {{speaker}}'s dog. {{places}}\n")


def test_the_mark_that_some_editors_begin_a_file_with_is_no_part_of_it(file: Path) -> None:
    file.write_bytes(b"\xef\xbb\xbfYou are Rex.\r\nYou fetch.\r\n")

    assert read_persona(file) == "You are Rex.\nYou fetch."


def test_a_home_folder_may_be_written_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "rex.md").write_text("You are Rex.")

    assert read_persona(Path("~/rex.md")) == "You are Rex."


def test_a_home_folder_that_nobody_has_is_named() -> None:
    assert "~nobody-of-this-name/rex.md cannot be read" in refused(Path("~nobody-of-this-name/rex.md"))


def test_a_missing_file_is_named(file: Path) -> None:
    assert f"{file} cannot be read (No such file or directory)" in refused(file)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    assert f"{tmp_path} cannot be read (Is a directory)" in refused(tmp_path)


def test_a_path_that_is_none_is_named() -> None:
    assert "cannot be read" in refused(Path("rex\x00.md"))


@pytest.mark.parametrize(
    "content",
    [
        b"\x89PNG\r\n\x1a\n\x00\x00",
        "You are Rex.".encode("utf-16"),
        "You are Rex.".encode("utf-16-le"),
        "Tu es né à Lyon.".encode("latin-1"),
        b"You are Rex.\x00",
    ],
    ids=["binary", "utf-16", "utf-16 without a mark", "latin-1", "with a NUL"],
)
def test_what_is_no_text_is_told_to_be_none(file: Path, content: bytes) -> None:
    file.write_bytes(content)

    assert "is not UTF-8 text" in refused(file)


@pytest.mark.parametrize("content", ["", " \n\t\n ", "\ufeff", "\u2028"])
def test_a_blank_file_says_nothing(file: Path, content: str) -> None:
    file.write_text(content, encoding="utf-8")

    assert "is empty; give a Markdown file, or unset it" in refused(file)


def test_a_persona_is_a_page_and_no_book(file: Path) -> None:
    file.write_text("é" * MAX_CHARACTERS, encoding="utf-8")
    assert len(read_persona(file)) == MAX_CHARACTERS

    file.write_text("é" * (MAX_CHARACTERS + 1), encoding="utf-8")
    assert "has more than 20,000 characters; shorten it" in refused(file)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no file without an end here")
def test_a_file_without_an_end_is_not_read_to_its_end() -> None:
    assert "is not UTF-8 text" in refused(Path("/dev/zero"))
