"""Kill it, damage it, fill its disk, take its servers away, and look whether all it accepted is there, once.

    python -m tests.campaign FOLDER [--minutes 60] [--only NAME …] [--part 0.1] [--workers 2]

Results are kept in FOLDER/results.jsonl, and a campaign that was stopped goes on where it was. Exit 1 where
anything was lost, double, missed silently or claimed falsely, and where a process crashed or hung.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Column, Table

from tests.campaign import damage, disks, load, moves, replicas, servers
from tests.campaign.kills import KILLS, ON_POSTGRESQL, seeds
from tests.campaign.postgresql import Server, running
from tests.campaign.trials import Outcome, Place, fresh

Run = Callable[[str, int, Place], Outcome]

AMOUNTS: dict[str, tuple[int, Run]] = {
    **{
        f"killed {name}": (25, partial(lambda killing, *given: killing.run(*given), one))
        for name, one in KILLS.items()
    },
    "killed turns": (60, KILLS["turns"].run),
    "killed move": (25, moves.run),
    "damaged database": (45, damage.run),
    "full disk": (4, disks.run),
    **{f"{name} away": (2, run) for name, run in servers.AWAY.items()},
    "replicas, Qdrant": (5, partial(replicas.run, with_qdrant=True)),
    "replicas, index in the process": (5, partial(replicas.run, with_qdrant=False)),
    "load": (1, load.run(20_000)),
}
"""Scenario → how many trials, and how one is run."""


def trials(part: float, only: list[str]) -> Iterator[tuple[str, int, Run, bool]]:
    """(scenario, seed, how, on PostgreSQL?)."""
    for name, (amount, run) in AMOUNTS.items():
        if only and not any(one in name for one in only):
            continue
        for seed in seeds(name, max(1, round(amount * part))):
            yield name, seed, run, False
        if name.removeprefix("killed ") in ON_POSTGRESQL:
            for seed in seeds(f"{name}, PostgreSQL", max(1, round(amount * part))):
                yield f"{name}, PostgreSQL", seed, run, True


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--part", type=float, default=1.0, help="of the trials")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    results = given.folder / "results.jsonl"
    before = [Outcome.parse(line) for line in results.read_text().splitlines()] if results.exists() else []
    done = {(one.scenario, one.seed) for one in before}
    todo = [one for one in trials(given.part, given.only) if one[:2] not in done]
    found = before + _run(todo, given.folder, time.monotonic() + 60 * given.minutes, given.workers)
    return _show(found)


def _run(todo: list[tuple[str, int, Run, bool]], folder: Path, until: float, workers: int) -> list[Outcome]:
    found = list[Outcome]()
    with ExitStack() as closing:
        results = closing.enter_context((folder / "results.jsonl").open("a"))
        postgresql = closing.enter_context(running()) if any(one[3] for one in todo) else None
        progress = closing.enter_context(Progress(transient=True))
        bar = progress.add_task("Trials", total=len(todo))
        pool = closing.enter_context(ThreadPoolExecutor(workers))

        def one(given: tuple[str, int, Run, bool]) -> Outcome | None:
            name, seed, run, server = given
            if time.monotonic() > until:
                return None
            return _trial(name, seed, run, folder, postgresql if server else None)

        for outcome in pool.map(one, todo):
            progress.advance(bar)
            if outcome is None:
                continue
            found.append(outcome)
            results.write(outcome.line() + "\n")
            results.flush()
            if not outcome.survived:
                progress.console.print(f"[red]{outcome.scenario} {outcome.seed}[/]: {outcome.found}")
    return found


def _trial(name: str, seed: int, run: Run, folder: Path, server: Server | None) -> Outcome:
    home = fresh(folder / f"{name.replace(' ', '-').replace(',', '')}-{seed}")
    place = Place(home / "home", server.new(f"trial_{seed}") if server else None, home / "other")
    outcome = run(name, seed, place)
    if outcome.survived:
        fresh(home).rmdir()
    return outcome


def _show(found: list[Outcome]) -> int:
    table = Table(
        Column("", no_wrap=True),
        "trials",
        "tried",
        "survived",
        "facts",
        "lost",
        "double",
        "silently missed",
        "false",
        "crashed",
    )
    for name in dict.fromkeys(one.scenario for one in found):
        these = [one for one in found if one.scenario == name]
        wrong = [
            [getattr(one.found, kind) for one in these] for kind in ("lost", "double", "missed", "false")
        ]
        table.add_row(
            name,
            f"{len(these):,}",
            f"{sum(one.tried for one in these):,}",
            f"{sum(one.survived for one in these):,}",
            f"{sum(one.found.kept for one in these):,}",
            *(str(sum(map(len, kind))) for kind in wrong),
            str(sum(one.found.crash is not None for one in these)),
        )
    Console(width=120).print(table)
    for one in found:
        if one.scenario == "load":
            Console().print(f"Memory under load: {one.found.error}")
    return int(not all(one.survived for one in found))


if __name__ == "__main__":
    sys.exit(main())
