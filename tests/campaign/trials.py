"""A trial: processes that work on a home of their own, are killed, and what is found afterwards."""

import asyncio
import json
import multiprocessing
import random
import shutil
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

PRELOADED = ["agent", "agents", "memory.index.indexing", "agents.testing", "tests.campaign.world"]
"""Imported once, by the process that all others are forked from: a start takes milliseconds then."""
LONGEST_CHECK = 300.0
"""Seconds after which a check counts as hung."""

processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(PRELOADED)


@dataclass(frozen=True)
class Place:
    """Where a trial works."""

    home: Path
    url: str | None = None
    """Of its database on PostgreSQL; None is SQLite in the home."""
    other: Path | None = None
    """A second folder: what a move or a backup writes to."""


@dataclass(frozen=True)
class Findings:
    """What was looked for after a trial and in which state it was."""

    kept: int = 0
    lost: tuple[str, ...] = ()
    double: tuple[str, ...] = ()
    missed: tuple[str, ...] = ()
    """Stored, and not found by a search that complained of nothing."""
    false: tuple[str, ...] = ()
    """Claims that do not hold: a receipt, an exit code."""
    error: str | None = None
    """The one-line error that the product gave; allowed where a file it cannot do without is damaged."""
    crash: str | None = None
    """A traceback, a signal or a hang: never allowed."""


@dataclass(frozen=True)
class Outcome:
    """A line of the campaign's results."""

    scenario: str
    seed: int
    tried: int
    """Kills, damaged files, turns: what the scenario counts."""
    found: Findings
    seconds: float

    @property
    def survived(self) -> bool:
        wrong = (self.found.lost, self.found.double, self.found.missed, self.found.false)
        return not any(wrong) and self.found.crash is None

    def line(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def parse(cls, line: str) -> "Outcome":
        read = json.loads(line)
        found = {key: tuple(one) if isinstance(one, list) else one for key, one in read.pop("found").items()}
        return cls(found=Findings(**found), **read)


Tell = Callable[[Any], None]
"""Called with what a process has acknowledged."""
Work = Callable[[Place, Tell, int], Coroutine[Any, Any, None]]
"""What is killed; the number is the round."""
Check = Callable[[Place, Sequence[Any]], Coroutine[Any, Any, Findings]]


@dataclass(frozen=True)
class Killing:
    """A scenario in which a process is killed at a random moment, several times in a row on one home."""

    prepare: Work
    work: Work
    check: Check
    longest: float = 1.2
    """Seconds within which the process is killed, from its first acknowledgement on."""
    rounds: int = 5
    opening: bool = False
    """Whether it is killed from its start on instead."""

    def run(self, name: str, seed: int, place: Place) -> Outcome:
        chance, begun, told = random.Random(seed), time.monotonic(), list[Any]()
        found = _in_process(_worked, self.prepare, place, 0, told)
        for number in range(self.rounds):
            if found.crash:
                break
            told += killed(self.work, chance.uniform(0.01, self.longest), place, number, opening=self.opening)
            found = checked(self.check, place, told)
            if not Outcome(name, seed, 0, found, 0).survived:
                break
        return Outcome(name, seed, self.rounds, found, time.monotonic() - begun)


def killed(work: Work, seconds: float, place: Place, number: int, *, opening: bool = False) -> list[Any]:
    """What the process acknowledged until it was killed, so long after its first acknowledgement, or with
    `opening` after its start."""
    receiver, sender = processes.Pipe(duplex=False)
    process = processes.Process(target=_worked, args=(work, place, number, sender))
    process.start()
    sender.close()
    told = list[Any]()
    with receiver, suppress(EOFError):
        if not opening and receiver.poll(LONGEST_CHECK):
            told.append(receiver.recv())
        process.join(seconds)
        process.kill()
        process.join()
        while receiver.poll():
            told.append(receiver.recv())
    return [one for one in told if not isinstance(one, Findings)]


def checked(check: Check, place: Place, told: Sequence[Any]) -> Findings:
    """Run in a process of its own: a damaged file may take it with it."""
    return _in_process(_checks, check, place, list(told), [])


def prepared(work: Work, place: Place, told: list[Any]) -> Findings:
    """Run `work` to its end in a process of its own; `told` gets what it acknowledged."""
    return _in_process(_worked, work, place, 0, told)


def _worked(work: Work, place: Place, number: int, sender: Connection) -> None:
    asyncio.run(work(place, sender.send, number))
    sender.send(Findings())


def _checks(check: Check, place: Place, told: list[Any], sender: Connection) -> None:
    sender.send(asyncio.run(check(place, told)))


def _in_process(
    target: Callable[..., None], what: Any, place: Place, given: Any, told: list[Any]
) -> Findings:
    receiver, sender = processes.Pipe(duplex=False)
    process = processes.Process(target=target, args=(what, place, given, sender))
    process.start()
    sender.close()
    try:
        while receiver.poll(LONGEST_CHECK):
            message = receiver.recv()
            if isinstance(message, Findings):
                process.join()
                return message
            told.append(message)
        process.kill()
        return Findings(crash="hung")
    except EOFError:
        process.join()
        return Findings(crash=f"the process ended with {process.exitcode}")
    finally:
        receiver.close()


def fresh(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
