"""The command `hachi` as a process of its own. It is forked from a server that has loaded the large libraries
once: loading them takes most of a start."""

import asyncio
import multiprocessing
import os
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import DupFd

from agent.surfaces.cli import main

FORKS = multiprocessing.get_context("forkserver")
BOTS = [f"agent.surfaces.bots.{name}.bot" for name in ("discord", "slack")]
FORKS.set_forkserver_preload(["agents", *BOTS])


@asynccontextmanager
async def forked(command: str, settings: Mapping[str, str]) -> AsyncIterator[None]:
    """`hachi COMMAND` with these settings and no others, killed (SIGKILL) at the end of the block."""
    process = FORKS.Process(target=_run, args=(command, dict(settings)))
    process.start()
    try:
        yield
    finally:
        process.kill()
        await asyncio.to_thread(process.join)


@contextmanager
def forked_with(
    stdin: int, stdout: int, command: str, settings: Mapping[str, str] = os.environ
) -> Iterator[BaseProcess]:
    """`hachi COMMAND` that reads one file and writes the other, on stderr too. Both are closed here."""
    files = [DupFd(file) for file in (stdin, stdout, stdout)]
    process = FORKS.Process(target=_run, args=(command, dict(settings), files))
    process.start()
    for file in {stdin, stdout}:
        os.close(file)
    try:
        yield process
    finally:
        process.kill()
        process.join()


def _run(command: str, settings: dict[str, str], files: Sequence[DupFd] = ()) -> None:
    os.environ.clear()
    os.environ.update(settings)
    for number, (file, name) in enumerate(zip(files, ("stdin", "stdout", "stderr"), strict=False)):
        os.dup2(file.detach(), number)
        setattr(sys, name, os.fdopen(number, "w" if number else "r", buffering=1))
    sys.exit(main((command,)))
