"""Files that come with a message: which are read, and what is said of the others."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from agent.surfaces.bots.files import MOST_BYTES, MOST_CHARACTERS, MOST_FILES, File, Unreadable, read_files


def content(given: bytes) -> Callable[[], Awaitable[bytes]]:
    async def fetch() -> bytes:
        return given

    return fetch


def file(name: str = "a.txt", given: bytes = b"text", kind: str = "text/plain", **other: Any) -> File:
    return File(name, kind, other.pop("size", len(given)), content(given), **other)


@pytest.mark.parametrize(
    ("name", "kind", "text"),
    [
        ("a", "text/plain; charset=utf-8", False),
        ("a", "application/json", False),
        ("notes.MD", "", False),
        ("main.rs", "application/octet-stream", False),
        ("a", "", True),
    ],
)
async def test_a_text_is_known_by_its_type_its_ending_or_the_platforms_word(
    name: str, kind: str, text: bool
) -> None:
    read = await read_files([file(name, "\ufeffé".encode(), kind, text=text)])
    assert read == f"[file {name}]\né\n[end of {name}]"


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (file("a.png", kind="image/png"), "image/png, I read text only"),
        (file("md", kind=""), "not text, I read text only"),
        (file(size=MOST_BYTES + 1), "more than 64 kB"),
        (file(given=b"\xff"), "no text in UTF-8"),
        (file(given=b"x" * (MOST_CHARACTERS + 1), size=1), "the files are too long together"),
    ],
)
async def test_why_a_file_is_not_read_is_said(wrong: File, why: str) -> None:
    assert await read_files([wrong]) == f"[attached, but not read: {wrong.name} ({why})]"


async def test_what_is_too_big_or_no_text_is_not_even_fetched() -> None:
    async def never() -> bytes:
        raise AssertionError("it was fetched")

    await read_files([File("a.png", "image/png", 1, never), File("a.txt", "text/plain", 10**9, never)])


async def test_what_cannot_be_fetched_does_not_keep_the_others_from_being_read() -> None:
    async def gone() -> bytes:
        raise Unreadable("it could not be fetched")

    read = await read_files([File("a.txt", "", 1, gone), file("b.txt")])
    assert (
        read
        == "[file b.txt]\ntext\n[end of b.txt]\n\n[attached, but not read: a.txt (it could not be fetched)]"
    )


async def test_so_many_are_read_and_no_more() -> None:
    read = await read_files([file(f"{number}.txt") for number in range(MOST_FILES + 2)])
    assert read.count("[end of") == MOST_FILES
    assert "5.txt (one too many); 6.txt (one too many)" in read


async def test_all_of_them_together_are_not_too_long() -> None:
    half = file(given=b"x" * (MOST_CHARACTERS // 2 + 1))
    read = await read_files([half, half])
    assert (read.count("[end of"), read.count("too long together")) == (1, 1)


async def test_a_name_is_shown_on_one_line() -> None:
    assert "[file a b.txt]" in await read_files([file("a\nb.txt")])
