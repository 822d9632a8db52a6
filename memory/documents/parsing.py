"""Parses documents in processes of their own, within limits of time and memory, in turns by owner.

What people hand over can take a parser minutes, all memory, or the process. Two processes are kept while
documents come; one that exceeds its limits is ended, and the next document gets a new one.
"""

import asyncio
import atexit
import json
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from memory.documents.chunking import ChunkText
from memory.documents.formats.blocks import UnreadableDocument

PROCESSES = 2
SECONDS, SECONDS_PER_MB = 20.0, 10.0
"""Of processor time for one document, and more for each megabyte of it."""
PATIENCE = 6
"""How many times as long it may take where the machine is busy with something else, or stops the process."""
MEMORY = 2 * 2**30
"""Bytes of address space of one process."""
IDLE = 30.0
"""Seconds after which a process without a document ends."""
ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "SYSTEMROOT", "TMPDIR", "TEMP")
"""What a process is given of the environment: no keys, since it reads what strangers wrote."""
OUT_OF_TIME = getattr(signal, "SIGXCPU", 0)
"""What ends a process that has used up its time."""

Parsed = tuple[str, list[ChunkText]]
"""Title and chunks."""


class DocumentParser:
    """Parses one document of each owner at a time, so nobody's documents hold up those of somebody else."""

    def __init__(self) -> None:
        self._free = asyncio.Semaphore(PROCESSES)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def parse(self, name: str, data: bytes, owner: str) -> Parsed:
        """Raises UnreadableDocument."""
        turn = self._turns.setdefault(owner, asyncio.Lock())
        async with turn, self._free:
            return await asyncio.get_running_loop().run_in_executor(_threads, _parse, name, data)


class _Process:
    """One process, which the thread that made it talks to."""

    def __init__(self) -> None:
        package = str(Path(__file__).parents[2])
        environment = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH"))))
        command = (sys.executable, "-P", "-m", "memory.documents.formats.child", str(MEMORY), str(IDLE))
        pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nowhere, env=environment)
        self._late = self.ended = False
        atexit.register(self.end)

    def parse(self, name: str, data: bytes) -> Parsed | None:
        """Return None if the process had ended before. Raises UnreadableDocument."""
        seconds = SECONDS + SECONDS_PER_MB * len(data) / 2**20
        timer = threading.Timer(PATIENCE * seconds, self._stop)
        timer.start()
        try:
            answers = self._ask(name, data, seconds)
        except (OSError, ValueError):
            answers = []
        finally:
            timer.cancel()
        if not answers or isinstance(answers[-1], list):
            self.end()
            if self._process.returncode == 0:
                return None
            late = self._late or self._process.returncode == -OUT_OF_TIME
            broken = "it breaks the parser, or takes more memory than there is for one document"
            limit = f"it takes longer than {seconds:.0f} s to parse" if late else broken
            raise UnreadableDocument(f"{limit}; save it as a simpler file")
        *chunks, told = answers
        if "unreadable" in told:
            raise UnreadableDocument(told["unreadable"])
        return told["title"], [ChunkText(*chunk) for chunk in chunks]

    def _ask(self, name: str, data: bytes, seconds: float) -> list[Any]:
        given, told = self._process.stdin, self._process.stdout
        assert given
        assert told
        given.write(json.dumps([name, len(data), seconds]).encode() + b"\n")
        given.write(data)
        given.flush()
        answers: list[Any] = []
        for line in told:
            answers.append(json.loads(line))
            if isinstance(answers[-1], dict):
                break
        return answers

    def _stop(self) -> None:
        self._late = True
        self._process.kill()

    def end(self) -> None:
        """End it, if it did not do so by itself."""
        self.ended = True
        atexit.unregister(self.end)
        with suppress(OSError):
            self._process.stdin.close()  # type: ignore[union-attr]
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(1)
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()  # type: ignore[union-attr]


_threads = ThreadPoolExecutor(PROCESSES, thread_name_prefix="hachi-documents")
_own = threading.local()
"""Each thread's process."""


def _parse(name: str, data: bytes) -> Parsed:
    """Parse with this thread's process, or with a new one where that has ended meanwhile."""
    process: _Process | None = getattr(_own, "process", None)
    if process and not process.ended and (parsed := process.parse(name, data)):
        return parsed
    _own.process = process = _Process()
    if parsed := process.parse(name, data):
        return parsed
    raise UnreadableDocument("the process that parses documents does not start; try again")
