"""Run llama.cpp as a child process that serves one model file, started by the first call."""

import asyncio
import json
import logging
import os
import secrets
import sys
import tempfile
import time
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx2
import openai
from agents.exceptions import AgentsException

from agent.models.local import child
from agent.models.pictures import put_pictures
from agent.models.wire.fit import ask_about

log = logging.getLogger("hachi.models")

WINDOW = 8192
"""Tokens of a prompt and its answer."""
SLOTS = 1
END_SECONDS = 5.0
TRIED_TOKENS = 8
"""Tokens generated at the start, to measure the speed."""


class NotStarted(AgentsException):
    """The child ended before it served the model."""


class LocalServer:
    """The child process and its address."""

    def __init__(self, file: Path, window: int | None, slots: int | None) -> None:
        self._window, self._slots = window or WINDOW, slots or SLOTS
        self.key = secrets.token_urlsafe(16)
        """The API key, so that nobody else on this machine can use the model."""
        self._file = file
        self._child: Process | None = None
        self._starting: asyncio.Task[str] | None = None

    async def url(self) -> str:
        """Return its base URL once it serves the model; start it if it does not run. The start goes on if the
        caller is cancelled. Raises NotStarted."""
        if self._starting is None or (self._starting.done() and not self._running):
            self._starting = asyncio.create_task(self._start())
            self._starting.add_done_callback(_retrieved)
        return await asyncio.shield(self._starting)

    async def close(self) -> None:
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.wait([self._starting])
        await self._end()

    @property
    def _running(self) -> bool:
        """Whether the process runs, judged by its output, which closes before the exit is noticed."""
        return self._child is not None and self._child.stdout is not None and not self._child.stdout.at_eof()

    async def _start(self) -> str:
        if self._child is not None:
            await self._end()
            code = self._child.returncode or 0
            how = f"signal {-code}" if code < 0 else f"exit {code}"
            log.warning("the process of the model %s ended (%s); it is started again", self._file.name, how)
        began = time.monotonic()
        with tempfile.TemporaryFile() as errors:
            self._child = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-P", str(child.__file__)),
                stdin=PIPE,
                stdout=PIPE,
                stderr=errors,
                start_new_session=True,  # Ctrl-C in the terminal is for the parent
            )
            try:
                url = await self._child_url(self._child)
            except BaseException:
                await self._end()
                raise
            if url is None:
                await self._child.wait()
                errors.seek(0)
                raise NotStarted(
                    f"llama.cpp cannot serve it: {_reason(errors.read(), self._child.returncode)}"
                )
        await self._introduce(url, time.monotonic() - began)
        return f"{url}/v1"

    async def _child_url(self, process: Process) -> str | None:
        """Tell the child what to serve, and return its address; None if the child ended first."""
        assert process.stdin is not None
        assert process.stdout is not None
        request = {
            "file": str(self._file),
            "key": self.key,
            "window": self._window,
            "slots": self._slots,
            "threads": threads(),
            "packages": _packages(),
        }
        with suppress(ConnectionError):
            process.stdin.write(json.dumps(request).encode() + b"\n")
            await process.stdin.drain()
        line = await process.stdout.readline()
        return str(json.loads(line)["url"]) if line else None

    async def _introduce(self, url: str, took: float) -> None:
        """Log the model's window, whether its template takes tools, and its speed."""
        try:
            async with openai.AsyncOpenAI(api_key=self.key, base_url=f"{url}/v1", max_retries=0) as client:
                about = await ask_about(client, self._file.stem, 60.0)
                body: Any = {"prompt": "Hello", "n_predict": TRIED_TOKENS}
                tried = await client.post(f"{url}/completion", body=body, cast_to=httpx2.Response)
                speed = tried.json()["timings"]["predicted_per_second"]
            log.info(
                "%s is served at %s after %.1f s: a window of %s tokens, %s, %.0f tokens a second by %s",
                self._file.name,
                url,
                took,
                f"{about.window or self._window:,}",
                "tools" if about.tools else "no tools in its template",
                speed,
                "1 thread" if threads() == 1 else f"{threads()} threads",
            )
        except (openai.OpenAIError, ValueError, LookupError, TypeError) as error:
            log.warning("%s is served at %s, which did not say how: %r", self._file.name, url, error)

    async def _end(self) -> None:
        process = self._child
        if process is None or process.returncode is not None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            async with asyncio.timeout(END_SECONDS):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


class LocalClient(openai.AsyncOpenAI):
    """A client of the child, which its first call starts."""

    def __init__(self, file: Path, window: int | None = None, slots: int | None = None) -> None:
        self._server = LocalServer(file, window, slots)
        super().__init__(
            api_key=self._server.key,
            base_url="http://127.0.0.1/v1",
            max_retries=0,
            http_client=openai.DefaultAsyncHttpxClient(event_hooks={"request": [put_pictures]}),
        )

    async def _prepare_options(self, options: Any) -> Any:
        self.base_url = await self._server.url()
        return await super()._prepare_options(options)

    async def close(self) -> None:
        await super().close()
        await self._server.close()


def threads() -> int:
    """Return the number of computing threads. On few or busy cores one thread is faster than several that
    wait for each other."""
    cores = os.cpu_count() or 1
    busy = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return max(1, int(cores - busy) // 2) if cores > 2 else 1


def _packages() -> str:
    """Return the folder from which the child imports llama.cpp."""
    spec = find_spec("xllamacpp")
    assert spec is not None
    where = Path(str(spec.origin))
    return str(where.parent.parent if spec.submodule_search_locations else where.parent)


def _reason(errors: bytes, code: int | None) -> str:
    """Return llama.cpp's first line with an error, without its timestamp; else its last line."""
    lines = [line.strip() for line in errors.decode(errors="replace").splitlines() if line.strip()]
    wrong = [line.split(" E ", 1)[1] for line in lines if " E " in line]
    return (wrong or lines[-1:] or [f"it ended with {code} and no reason"])[0][:300]


def _retrieved(start: asyncio.Task[str]) -> None:
    if not start.cancelled():
        start.exception()
