"""A move that is killed at random moments and goes on, there and back: from SQLite to PostgreSQL or another
SQLite file, and from there into a third database, which holds what the first held."""

import random
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from agent.services.transfer.move import TABLES, Move, _checksum
from memory.sql.engine import Database
from memory.sql.engine.migrate import HEAD
from memory.sql.tables import metadata
from tests.campaign.trials import Findings, Outcome, Place, Tell, checked, killed, prepared
from tests.campaign.world import facts_are_there, fill

KILLS = 4
"""How often each of the two moves is killed, at most."""
LONGEST = 0.5
"""Seconds within which it is killed."""


def run(name: str, seed: int, place: Place) -> Outcome:
    chance, begun, told, kills = random.Random(seed), time.monotonic(), list[Any](), 0
    found = prepared(fill, replace(place, url=None), told)
    for back in (False, True):
        move = partial(_move, back=back)
        for number in range(KILLS):
            if found.crash or "moved" in killed(move, chance.uniform(0.01, LONGEST), place, number):
                break
            kills += 1
        found = found if found.crash else prepared(move, place, [])
    if found.crash is None:
        found = checked(_there, place, told)
    return Outcome(name, seed, kills, found, time.monotonic() - begun)


def _databases(place: Place) -> list[Database]:
    """The first, the one between, and the last."""
    other = place.other or Path()
    return [
        Database.connect(None, place.home),
        Database.connect(place.url, other / "between"),
        Database.connect(None, other / "back"),
    ]


async def _move(place: Place, tell: Tell, _: int, *, back: bool) -> None:
    source, target = _databases(place)[back : back + 2]
    tell("begun")
    if await target.revision() != HEAD or not await _users(target):  # else it was killed after its last write
        await Move(source, target).run(lambda _: None)
    tell("moved")
    await source.close()
    await target.close()


async def _users(database: Database) -> int:
    return (await _checksum(database, metadata.tables["users"]))[0]


async def _there(place: Place, told: Sequence[Any]) -> Findings:
    first, between, last = _databases(place)
    different = [
        table.name
        for table in TABLES
        if not await _checksum(first, table)
        == await _checksum(between, table)
        == await _checksum(last, table)
    ]
    for database in (first, between, last):
        await database.close()
    found = await facts_are_there(Place(Path(last.where).parent), told)
    return replace(found, false=tuple(f"{name} differs" for name in different))
