"""Parse documents in separate processes, within limits of time and memory, one per owner at a time.

A document can cost a parser minutes, all memory, or its process. A process parses one upload or folder; one
that exceeds its limits is ended, and the next document gets a new one.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any
from weakref import WeakValueDictionary

from memory.documents.chunking import ChunkText
from memory.documents.formats.blocks import UnreadableDocument
from memory.process.pace import pause

AT_ONCE = 2
"""Documents that are parsed at the same time."""
SECONDS, SECONDS_PER_MB = 60.0, 30.0
"""The time limit of a document, and the addition for each megabyte: far more than an idle machine needs."""
MEMORY = 2 * 2**30
"""Bytes of address space of one process."""
LONGEST_LINE = 2**26
ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "SYSTEMROOT", "TMPDIR", "TEMP")
"""The environment variables that a process gets. Keys are not among them, because it reads untrusted
files."""

Parsed = tuple[str, list[ChunkText]]
"""The title and the chunks."""
Parse = Callable[[str, bytes], Awaitable[Parsed]]
"""Parses a document by its name. Raises UnreadableDocument."""


class DocumentParser:
    """Parses one document per owner at a time, so that owners do not wait for each other."""

    def __init__(self) -> None:
        self._free = asyncio.Semaphore(AT_ONCE)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def open(self, owner: str) -> AsyncIterator[Parse]:
        """Yield a function that parses documents of this owner, until the block ends."""
        turn, process = self._turns.setdefault(owner, asyncio.Lock()), _Process()

        async def parse(name: str, data: bytes) -> Parsed:
            async with turn, self._free:
                return await process.parse(name, data)

        try:
            yield parse
        finally:
            await process.end()


class _Process:
    """A process that is started by its first document."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None

    async def parse(self, name: str, data: bytes) -> Parsed:
        """Raise UnreadableDocument."""
        seconds = SECONDS + SECONDS_PER_MB * len(data) / 2**20
        process = self._process = self._process or await _start()
        limit = "it crashes the parser, or needs more memory than one document may"
        answers: list[Any] = []
        try:
            async with asyncio.timeout(seconds):
                with suppress(OSError, ValueError):  # the process died during the exchange
                    await _ask(process, name, data, answers)
        except TimeoutError:
            limit = f"it takes longer than {seconds:.0f} s to parse"
        finally:
            if not (whole := answers and isinstance(answers[-1], dict)):
                await self.end()
        if not whole:
            raise UnreadableDocument(f"{limit}; split it, or save it as a simpler file")
        *chunks, last = answers
        if "unreadable" in last:
            raise UnreadableDocument(last["unreadable"])
        return last["title"], [ChunkText(*chunk) for chunk in chunks]

    async def end(self) -> None:
        process, self._process = self._process, None
        if process:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def _start() -> asyncio.subprocess.Process:
    package = str(Path(__file__).parents[2])
    environment = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH"))))
    command = (sys.executable, "-P", "-m", "memory.documents.formats.child", str(MEMORY))
    return await asyncio.create_subprocess_exec(
        *command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=environment, limit=LONGEST_LINE
    )


async def _ask(process: asyncio.subprocess.Process, name: str, data: bytes, answers: list[Any]) -> None:
    """Append the answers of the process to `answers`. The last one is a JSON object."""
    assert process.stdin
    assert process.stdout
    process.stdin.write(json.dumps([name, len(data)]).encode() + b"\n")
    process.stdin.write(data)
    await process.stdin.drain()
    async for line in process.stdout:
        answers.append(json.loads(line))
        if isinstance(answers[-1], dict):
            break
        await pause()
