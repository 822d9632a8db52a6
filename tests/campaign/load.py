"""Fifty people at once over HTTP, for thousands of turns: every fact that was acknowledged is there, once."""

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2 as httpx

from agent.surfaces.http.application import app
from agent.surfaces.http.server import address_of, listening, server_of
from tests.campaign.trials import Findings, Outcome, Place, Tell, checked, prepared
from tests.campaign.world import SHARED, opened

USERS = 50
TELLS = 4
"""Every fourth turn tells a fact."""
LOOKS = (0.1, 0.25, 0.5, 0.75, 1.0)
"""Parts of the turns after which the memory of the process is read."""


def run(turns: int) -> Any:
    def loaded(name: str, seed: int, place: Place) -> Outcome:
        begun, told = time.monotonic(), list[Any]()
        found = prepared(_Load(turns), place, told)
        if found.crash is None:
            found = checked(_all_kept, place, [one for one in told if one[0] != "held"])
        held = [f"{one[2]} after {one[1]:,}" for one in told if one[0] == "held"]
        found = replace(found, error=", ".join(held))
        return Outcome(name, seed, turns, found, time.monotonic() - begun)

    return loaded


class _Load:
    def __init__(self, turns: int) -> None:
        self.turns = turns

    async def __call__(self, place: Place, tell: Tell, _: int) -> None:
        with listening("127.0.0.1", 0) as listener:
            async with opened(place, http_rate=0) as pet:
                server = server_of(app(pet, pet.settings, loopback=True))
                running = asyncio.create_task(server.serve(sockets=[listener]))
                await self._talk(address_of(listener), tell)
                server.should_exit = True
                await running
                await pet.settle()

    async def _talk(self, url: str, tell: Tell) -> None:
        numbers, done = itertools.count(), itertools.count(1)
        looks = {int(part * self.turns) for part in LOOKS}
        limits = httpx.Limits(max_connections=USERS)
        async with httpx.AsyncClient(base_url=url, timeout=300, limits=limits) as client:

            async def person(user: str) -> None:
                while (number := next(numbers)) < self.turns:
                    fact = f"{user} owns boat {number}" if number % TELLS == 0 else None
                    body = {
                        "model": "hachi",
                        "messages": [
                            {"role": "user", "content": f"keep: {fact}" if fact else f"hello {number}"}
                        ],
                    }
                    answer = await client.post(
                        "/v1/chat/completions", json=body, headers={"x-openwebui-user-id": user}
                    )
                    answer.raise_for_status()
                    if fact:
                        tell((user, None, fact))
                    if (finished := next(done)) in looks:
                        tell(("held", finished, _resident()))

            await asyncio.gather(*(person(f"user{n:02}") for n in range(USERS)))


def _resident() -> str:
    """What this process holds in memory: its own, and mapped files, which the system can drop."""
    lines = Path("/proc/self/status").read_text().splitlines()
    kilobytes = {
        name: int(line.split()[1]) for line in lines if (name := line.partition(":")[0])[:3] == "Rss"
    }
    own = kilobytes.pop("RssAnon")
    return f"{own / 1024:.0f} MB and {sum(kilobytes.values()) / 1024:.0f} MB of files"


async def _all_kept(place: Place, told: Sequence[Any]) -> Findings:
    lost, double, missed, kept = list[str](), list[str](), list[str](), 0
    async with opened(place) as pet:
        await pet.settle()
        for user in {one[0] for one in told}:
            listed = Counter(memory.content for memory in await pet.memories.list(user=user))
            wanted = [fact for who, _, fact in told if who == user]
            kept += len(listed)
            lost += [fact for fact in wanted if fact not in listed]
            double += [fact for fact, times in listed.items() if times > 1]
            hits = await pet.search_memories(wanted[-1], user=user, limit=20)
            missed += [] if wanted[-1] in {hit.content for hit in hits} else [wanted[-1]]
            others = await pet.search_memories(wanted[-1], user="nobody", place=SHARED, limit=20)
            missed += [f"{user} leaked" for hit in others if hit.content in wanted]
    return Findings(kept, tuple(lost), tuple(double), tuple(missed))
