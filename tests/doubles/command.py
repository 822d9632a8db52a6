"""The command `hachi`, run in this process as by a person or another program."""

import functools
import io
import json
import re
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agent.surfaces.cli import main
from memory.index.embedders import bundled

load_bundled_once = functools.cache(bundled._load)
"""The bundled embedder's weights take 0.4 s to load; one copy serves all tests of a process."""


@dataclass(frozen=True)
class Ran:
    """The result of a run of the command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def complaint(self) -> str:
        """Return the only line on stderr; more lines fail the test."""
        [line] = self.err.splitlines()
        return line


class Keyboard(io.TextIOWrapper):
    """Input that a person types."""

    def isatty(self) -> bool:
        return True


class Screen(io.StringIO):
    """Output that a person reads."""

    def isatty(self) -> bool:
        return True


@dataclass(frozen=True)
class Hachi:
    """Runs the command: `hachi("memories", "list", stdin=b"…")`, with settings such as
    `HACHI_MEMORY="no"`."""

    home: Path

    def __call__(
        self,
        *args: str,
        stdin: bytes = b"",
        typed: bool = False,
        screen: bool = False,
        meanwhile: Callable[[io.StringIO, io.StringIO], object] | None = None,
        **settings: str,
    ) -> Ran:
        """Run the command. `typed`: the input comes from a terminal. `screen`: the output goes to one.
        `meanwhile(out, err)` runs at the same time, on a thread."""
        out, err = Screen() if screen else io.StringIO(), Screen() if screen else io.StringIO()
        with (
            (Keyboard if typed else io.TextIOWrapper)(tempfile.TemporaryFile(), encoding="utf-8") as keys,
            pytest.MonkeyPatch.context() as patch,
            redirect_stdout(out),
            redirect_stderr(err),
            ThreadPoolExecutor(1) as pool,
        ):
            keys.buffer.write(stdin)
            keys.seek(0)
            patch.setattr(sys, "stdin", keys)
            use_home(patch, self.home)
            for name, value in settings.items():
                patch.setenv(name, value)
            acting = pool.submit(meanwhile, out, err) if meanwhile else None
            code = main(args)
            if acting is not None:
                acting.result(30)
        return Ran(code, out.getvalue(), err.getvalue())

    def serving(self, *args: str, visit: Callable[[str], object], stop: int = signal.SIGTERM) -> Ran:
        """Run a server, `visit` its address, and stop it."""

        def act(_: io.StringIO, err: io.StringIO) -> None:
            with stopping(stop):
                visit(until(lambda: re.search(r"listening on (http://\S+);", err.getvalue()))[1])

        return self(*args, meanwhile=act)


@contextmanager
def stopping(number: int = signal.SIGINT) -> Iterator[None]:
    """Send this process a signal at the end of the block, as Ctrl-C does."""
    try:
        yield
    finally:
        signal.pthread_kill(threading.main_thread().ident or 0, number)


def until(true: Callable[[], Any], seconds: float = 30) -> Any:
    """Wait until `true` returns a true value, and return that."""
    end = time.monotonic() + seconds
    while not (found := true()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)
    return found


def use_home(patch: pytest.MonkeyPatch, home: Path) -> None:
    settings = {"HACHI_HOME": str(home), "LOGNAME": "mickael", "COLUMNS": "200", "TZ": "UTC"}
    for name, value in settings.items():
        patch.setenv(name, value)
    patch.setattr(bundled, "_load", load_bundled_once)
    time.tzset()
