"""Parsing in processes of their own."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from memory.documents import parsing
from memory.documents.formats import child
from memory.documents.formats.blocks import UnreadableDocument
from memory.documents.parsing import DocumentParser, Parse

START, ASK = parsing._start, parsing._ask
TEA = b"# Tea\n\nSencha is steeped for two minutes."
ENDLESS = b"<!-- " * 200_000


@pytest.fixture(autouse=True)
def in_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "_start", START)
    monkeypatch.setattr(parsing, "_ask", ASK)


@pytest.fixture
def parser() -> DocumentParser:
    return DocumentParser()


@pytest.fixture
async def parse(parser: DocumentParser) -> AsyncIterator[Parse]:
    async with parser.open("user:ada") as parse:
        yield parse


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The processes, as they are started."""
    begin, found = parsing._start, list[Any]()

    async def noted() -> Any:
        found.append(await begin())
        return found[-1]

    monkeypatch.setattr(parsing, "_start", noted)
    return found


async def test_what_takes_too_long_is_refused_and_holds_nobody_up(
    parser: DocumentParser, parse: Parse, monkeypatch: pytest.MonkeyPatch
) -> None:
    await parse("tea.md", TEA)
    async with parser.open("user:eve") as eves:
        monkeypatch.setattr(parsing, "SECONDS_PER_MB", 0.0)
        monkeypatch.setattr(parsing, "SECONDS", 0.5)
        endless = [asyncio.create_task(eves(f"{n}.md", ENDLESS)) for n in range(2)]
        await asyncio.sleep(0.1)
        monkeypatch.setattr(parsing, "SECONDS", 20.0)
        await parse("tea.md", TEA)
        assert not endless[0].done()
        endless[1].cancel()
        with pytest.raises(UnreadableDocument, match="it takes longer than 0 s to parse"):
            await endless[0]
        assert (await eves("tea.md", TEA))[0] == "Tea"


async def test_a_document_that_takes_too_much_memory_is_refused(
    parse: Parse, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(parsing, "MEMORY", 130_000_000)
        with pytest.raises(UnreadableDocument, match="memory"):
            await parse("large.txt", b"a\n\n" * 6_000_000)
    assert (await parse("tea.md", TEA))[0] == "Tea"


async def test_a_process_has_no_keys_or_modules_and_ends_with_what_it_was_for(
    parser: DocumentParser, started: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "memory.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-owner")
    async with parser.open("global") as parse:
        title, [chunk] = await parse("tea.md", TEA)
        assert (title, chunk.heading, chunk.text) == ("Tea", "Tea", "Sencha is steeped for two minutes.")
        await parse("tea.md", TEA)
        assert len(started) == 1, "one process parses several documents"
        if given := environment_of(started[0].pid):
            assert b"PYTHONPATH" in given
            assert b"sk-of-the-owner" not in given
    assert started[0].returncode is not None


def environment_of(pid: int) -> bytes:
    """Nothing on a machine that has no /proc."""
    environment = Path(f"/proc/{pid}/environ")
    return environment.read_bytes() if environment.exists() else b""


async def test_one_document_of_each_owner_is_parsed_at_a_time(
    parser: DocumentParser, parse: Parse, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, most = {"eve": 0, "ada": 0}, {"eve": 0, "ada": 0}

    async def slowly(_: object, name: str, data: bytes) -> parsing.Parsed:
        now[name] += 1
        most[name] = max(most[name], now[name])
        await asyncio.sleep(0.02)
        now[name] -= 1
        return name, []

    monkeypatch.setattr(parsing._Process, "parse", slowly)
    async with parser.open("user:eve") as eves, parser.open("user:eve") as eves_too:
        theirs = [asyncio.create_task((eves, eves_too)[n % 2]("eve", TEA)) for n in range(20)]
        await parse("ada", TEA)
        assert sum(eve.done() for eve in theirs) < 5, "who has one document does not wait for all twenty"
        await asyncio.gather(*theirs)
    assert most == {"eve": 1, "ada": 1}


def test_a_parser_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str, data: bytes) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(child, "parse", fail)
    told = b'{"unreadable": "it cannot be parsed (ZeroDivisionError)"}\n'
    assert list(child._answers("a.md", b"a")) == [told]
