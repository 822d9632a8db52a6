"""The command `hachi` as its own process, forked from a server that has loaded the large libraries once.
Loading them takes most of a start."""

import multiprocessing
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import DupFd

from agent.surfaces.bots import platform_jobs
from agent.surfaces.cli import main
from agent.surfaces.http import server as http_server

FORKS = multiprocessing.get_context("forkserver")
SURFACES = ["agent.surfaces.bots.slack.bot", "agent.surfaces.http.application"]
FOR_A_TURN = [
    "agents",
    "agent.models.choice.choose",
    "agent.background.worker",
    "agent.turn.turn",
    "wordllama",
]
FORKS.set_forkserver_preload([*SURFACES, *FOR_A_TURN])


@contextmanager
def forked(
    *command: str, settings: Mapping[str, str] = os.environ, files: Sequence[int] = ()
) -> Iterator[BaseProcess]:
    """Run `hachi COMMAND` with only these settings during the block, and kill it (SIGKILL) at the end.
    `files` are its stdin, and its stdout and stderr; they are closed here."""
    copies = [DupFd(files[number]) for number in (0, 1, 1)] if files else []
    process = FORKS.Process(target=_run, args=(command, dict(settings), copies))
    process.start()
    for file in set(files):
        os.close(file)
    try:
        yield process
    finally:
        process.kill()
        process.join()


def _run(command: Sequence[str], settings: dict[str, str], files: Sequence[DupFd]) -> None:
    os.environ.clear()
    os.environ.update(settings)
    for number, (file, name) in enumerate(zip(files, ("stdin", "stdout", "stderr"), strict=False)):
        os.dup2(file.detach(), number)
        setattr(sys, name, os.fdopen(number, "w" if number else "r", buffering=1))
    platform_jobs.LOOK_SECONDS = http_server.AGAIN_SECONDS = 0.1
    sys.exit(main(command))
