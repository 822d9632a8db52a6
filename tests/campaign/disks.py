"""A disk that fills up while people talk, and has room again later. It is a small file system in memory."""

import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from agent.errors import HachiError
from memory.errors import MemoryFault
from tests.campaign.trials import Findings, Outcome, Place, Tell, checked, prepared
from tests.campaign.world import boat, fill, look_for, opened

SIZE = 192 << 20
"""Bytes of the disk."""
LEFT = (0, 64 << 10, 2 << 20, 24 << 20)
"""Bytes that are left on it, by the trial's number."""


def run(name: str, seed: int, place: Place) -> Outcome:
    begun, told = time.monotonic(), list[Any]()
    place.home.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(place.home)]
    if sys.platform != "linux" or subprocess.run(mount, capture_output=True, check=False).returncode:
        return Outcome(name, seed, 0, Findings(error="skipped: no file system can be mounted here"), 0)
    try:
        found = prepared(fill, place, told)
        ballast = place.home / "ballast"
        if found.crash is None:
            _fill_up(ballast, LEFT[seed % len(LEFT)])
            found = prepared(_talk_on, place, told)
        ballast.unlink(missing_ok=True)
        if found.crash is None:
            found = checked(_recovered, place, told)
    finally:
        subprocess.run(["umount", str(place.home)], check=True)
    return Outcome(name, seed, 1, found, time.monotonic() - begun)


def _fill_up(ballast: Path, left: int) -> None:
    free = shutil.disk_usage(ballast.parent).free
    with ballast.open("wb") as file:
        for _ in range(max(free - left, 0) // 4096):
            file.write(bytes(4096))


async def _talk_on(place: Place, tell: Tell, _: int) -> None:
    """What cannot be stored is refused with an error; only what was acknowledged counts."""
    try:
        async with opened(place) as pet:
            for number in range(2001, 2060):
                try:
                    await pet.respond(f"keep: {boat('ana', number)}", user="ana")
                except (HachiError, MemoryFault):
                    continue
                tell(("ana", None, boat("ana", number)))
    except (HachiError, MemoryFault):
        return


async def _recovered(place: Place, told: Sequence[Any]) -> Findings:
    async with opened(place) as pet:
        return replace(await look_for(pet, told), error=f"{len(told)} acknowledged")
