"""Parsing in processes of their own."""

import asyncio
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memory.documents import parsing
from memory.documents.formats import child
from memory.documents.formats.blocks import UnreadableDocument
from memory.documents.parsing import DocumentParser

TEA = b"# Tea\n\nSencha is steeped for two minutes."
ENDLESS = b"<!-- " * 200_000


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Processes with the limits of the test, and none left over."""
    yield
    end_processes()


def in_each_thread(act: Callable[[], None]) -> None:
    together = threading.Barrier(parsing.PROCESSES)
    acting = [parsing._threads.submit(lambda: (together.wait(), act())) for _ in range(parsing.PROCESSES)]
    for one in acting:
        one.result()


def end_processes() -> None:
    """The next document of each thread gets a new process."""
    in_each_thread(_end_own)


def _end_own() -> None:
    if process := getattr(parsing._own, "process", None):
        process.end()


async def test_what_takes_too_long_is_refused_and_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    parser = DocumentParser()
    await asyncio.gather(*(parser.parse("tea.md", TEA, owner) for owner in ("user:eve", "user:ada")))
    monkeypatch.setattr(parsing, "SECONDS_PER_MB", 0.0)
    monkeypatch.setattr(parsing, "SECONDS", 0.5)
    endless = [asyncio.create_task(parser.parse(f"{n}.md", ENDLESS, "user:eve")) for n in range(2)]
    await asyncio.sleep(0.1)
    monkeypatch.setattr(parsing, "SECONDS", 20.0)
    await parser.parse("tea.md", TEA, "user:ada")
    assert not endless[0].done()
    endless[1].cancel()
    with pytest.raises(UnreadableDocument, match="it takes longer than 0 s to parse"):
        await endless[0]
    assert (await parser.parse("tea.md", TEA, "user:eve"))[0] == "Tea"


async def test_only_the_time_that_a_document_itself_takes_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the machine is busy with something else, a document is not refused for that."""
    parser = DocumentParser()
    end_processes()
    monkeypatch.setattr(parsing, "SECONDS", 0.2)
    monkeypatch.setattr(parsing, "PATIENCE", 300)
    began = parsing._Process

    def stopped_for_a_while() -> parsing._Process:
        process = began()
        process._process.send_signal(signal.SIGSTOP)
        threading.Timer(0.5, process._process.send_signal, [signal.SIGCONT]).start()
        return process

    monkeypatch.setattr(parsing, "_Process", stopped_for_a_while)
    assert (await parser.parse("tea.md", TEA, "user:ada"))[0] == "Tea"


async def test_a_document_that_takes_too_much_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    end_processes()
    parser = DocumentParser()
    with monkeypatch.context() as patch:
        patch.setattr(parsing, "MEMORY", 130_000_000)
        with pytest.raises(UnreadableDocument, match="memory"):
            await parser.parse("large.txt", b"a\n\n" * 6_000_000, "user:eve")
    assert (await parser.parse("tea.md", TEA, "user:eve"))[0] == "Tea"


async def test_a_new_process_has_no_keys_or_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parser = DocumentParser()
    title, chunks = await parser.parse("tea.md", TEA, "global")
    assert title == "Tea"
    [chunk] = chunks
    assert (chunk.heading, chunk.text) == ("Tea", "Sencha is steeped for two minutes.")
    in_each_thread(_kill_own)
    (tmp_path / "memory.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-owner")
    began, made = parsing._Process, list[parsing._Process]()
    monkeypatch.setattr(parsing, "_Process", lambda: made.append(began()) or made[-1])
    assert (await parser.parse("tea.md", TEA, "global"))[0] == "Tea"
    if given := environment_of(made[0]):
        assert b"PYTHONPATH" in given
        assert b"sk-of-the-owner" not in given


def environment_of(process: parsing._Process) -> bytes:
    """Nothing on a machine that has no /proc."""
    environment = Path(f"/proc/{process._process.pid}/environ")
    return environment.read_bytes() if environment.exists() else b""


def _kill_own() -> None:
    if process := getattr(parsing._own, "process", None):
        process._process.stdin.close()
        process._process.wait()


async def test_one_document_of_each_owner_is_parsed_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now, most = {"eve": 0, "ada": 0}, {"eve": 0, "ada": 0}

    def slowly(name: str, data: bytes) -> parsing.Parsed:
        now[name] += 1
        most[name] = max(most[name], now[name])
        time.sleep(0.02)
        now[name] -= 1
        return name, []

    monkeypatch.setattr(parsing, "_parse", slowly)
    parser = DocumentParser()
    eves = [asyncio.create_task(parser.parse("eve", TEA, "user:eve")) for _ in range(20)]
    await parser.parse("ada", TEA, "user:ada")
    assert sum(eve.done() for eve in eves) < 5, "who has one document does not wait for all twenty"
    await asyncio.gather(*eves)
    assert most == {"eve": 1, "ada": 1}


def test_a_parser_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str, data: bytes) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(child, "parse", fail)
    told = b'{"unreadable": "it cannot be parsed (ZeroDivisionError)"}\n'
    assert list(child._answers("a.md", b"a")) == [told]
