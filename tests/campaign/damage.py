"""What a damaged database does: it says what is wrong."""

import random
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from agent.errors import HachiError
from memory.errors import MemoryFault
from tests.campaign.trials import Findings, Outcome, Place, checked, prepared
from tests.campaign.world import facts_are_there, fill

PAGE = 4096


def _halved(data: bytes, _: random.Random) -> bytes:
    return data[: len(data) // 2]


def _emptied(_data: bytes, _: random.Random) -> bytes:
    return b""


def _zeroed(data: bytes, chance: random.Random) -> bytes:
    at = PAGE * chance.randrange(len(data) // PAGE + 1)
    return data[:at] + bytes(min(PAGE, len(data) - at)) + data[at + PAGE :]


def _scribbled(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + chance.randbytes(min(64, len(data) - at)) + data[at + 64 :]


DAMAGES = {
    "halved": _halved,
    "emptied": _emptied,
    "zeroed page": _zeroed,
    "scribbled": _scribbled,
    "gone": None,
}


def run(name: str, seed: int, place: Place) -> Outcome:
    """Damage one file of a filled home, then look for everything that was told."""
    begun, chance, told = time.monotonic(), random.Random(seed), list[Any]()
    found = prepared(fill, place, told)
    if found.crash is None:
        what = _damage(place.home, chance)
        found = checked(_honest, place, told)
        if not Outcome(name, seed, 1, found, 0).survived:
            found = replace(found, error=f"{what}; {found.error or ''}")
    return Outcome(name, seed, 1, found, time.monotonic() - begun)


def _damage(home: Path, chance: random.Random) -> str:
    files = sorted(path for path in home.glob("hachi.db*") if path.is_file())
    file = chance.choice(files)
    kind = chance.choice(sorted(DAMAGES))
    how = DAMAGES[kind]
    if how is None:
        file.unlink()
    else:
        file.write_bytes(how(file.read_bytes(), chance))
    return f"{file.relative_to(home)} {kind}"


async def _honest(place: Place, told: Sequence[Any]) -> Findings:
    """Everything is there, or one line says what is wrong."""
    try:
        return await facts_are_there(place, told)
    except (HachiError, MemoryFault) as fault:
        return Findings(error=str(fault))
