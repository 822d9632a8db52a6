"""Three `hachi serve` and two `hachi worker` on one PostgreSQL, with one Qdrant or without: some of these
end every few seconds.

Fifty people tell facts and forget some, each time at another of the servers. Meanwhile processes are killed
and started again, PostgreSQL is killed, and Qdrant is away, hangs or is emptied. Qdrant is the small server
of the tests, the model is scripted.
"""

import asyncio
import itertools
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import httpx2 as httpx

from tests.campaign.kills import as_told
from tests.campaign.postgresql import Server, revive, strike
from tests.campaign.servers import AwayServer, closed_port
from tests.campaign.trials import Findings, Outcome, Place, checked, processes
from tests.campaign.world import boat, opened
from tests.doubles.qdrant_server import QdrantServer

PEOPLE = 50
THINKS = (2.0, 10.0)
"""Seconds until a person says something again."""
SECONDS = 90.0
PAUSES = (2.0, 8.0)
"""Seconds between one thing that ends and the next."""
AWAY = 2.0
"""Seconds until it is there again."""
LONGEST = 30.0
"""Seconds within which a person is answered, or told that it failed, whatever has ended."""
LATEST = 200.0
"""Seconds until work that was interrupted again and again has been done."""
ENDED = (0, -signal.SIGTERM)
"""Exit codes of what is stopped; the signal's is that of a process that has just begun to start."""
FORGETS = 3
"""Every third fact is forgotten again."""


@dataclass
class Replica:
    """A process of `hachi`, as its users start it."""

    command: tuple[str, ...]
    settings: dict[str, str]
    folder: Path

    def start(self) -> None:
        home = {"HACHI_HOME": str(self.folder / "home")}
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "output.txt").open("ab") as output:
            self.running = subprocess.Popen(
                [sys.executable, "-m", "hachi", *self.command],
                env=os.environ | self.settings | home,
                stdout=output,
                stderr=output,
            )

    def kill(self) -> None:
        self.running.kill()
        self.running.wait()

    def stop(self) -> int:
        """Its exit code, after the signal with which a machine shuts down."""
        self.running.send_signal(signal.SIGTERM)
        try:
            return self.running.wait(LONGEST)
        except subprocess.TimeoutExpired:
            self.kill()
            return -signal.SIGKILL


class Talk:
    """What fifty people do until `ending`, and what they were told."""

    def __init__(self, urls: list[str], client: httpx.AsyncClient, chance: random.Random) -> None:
        self.told: list[tuple[str, str | None, str]] = []
        self.false: list[str] = []
        self.longest = 0.0
        self.failed = 0
        self.ending = False
        self._urls = itertools.cycle(urls)
        self._all = urls
        self._client = client
        self._chance = chance

    async def person(self, user: str) -> None:
        for number in itertools.count(100):
            await asyncio.sleep(self._chance.uniform(*THINKS))
            if self.ending:
                return
            fact = boat(user, number)
            if not await self._tell(user, fact):
                continue
            self.told.append((user, None, fact))
            if number % FORGETS == 0 and (id := await self._id_of(user, fact)):
                await self._forget(user, fact, id)

    async def _tell(self, user: str, fact: str) -> bool:
        body = {"model": "hachi", "messages": [{"role": "user", "content": f"keep: {fact}"}]}
        return await self._ask("POST", "/v1/chat/completions", user, json=body) is not None

    async def _id_of(self, user: str, fact: str) -> str | None:
        listed = await self._ask("GET", f"/api/users/{user}/memories", user)
        return next((one["id"] for one in listed or () if one["content"] == fact), None)

    async def _forget(self, user: str, fact: str, id: str) -> None:
        """Once that is acknowledged, no server finds the fact any more."""
        self.told.append(("forgetting", user, fact))
        if await self._ask("POST", f"/api/users/{user}/memories/{id}/forget", user) is None:
            return
        self.told.append(("forgotten", user, fact))
        for url in self._all:
            found = await self._ask("GET", f"/api/users/{user}/memories/search?query={fact}", user, url=url)
            self.false += [f"{fact!r} is found" for one in found or () if one["content"].endswith(fact)]

    async def _ask(self, method: str, path: str, user: str, url: str | None = None, **given: Any) -> Any:
        """The answer; None where the server is away, or says that it cannot."""
        begun = time.monotonic()
        try:
            answer = await self._client.request(
                method, (url or next(self._urls)) + path, headers={"x-openwebui-user-id": user}, **given
            )
        except httpx.TimeoutException:
            self.false.append(f"no answer in {LONGEST:.0f} s to {method} {path}")
            return None
        except httpx.HTTPError:  # its process was killed
            self.failed += 1
            await asyncio.sleep(0.5)
            return None
        self.longest = max(self.longest, time.monotonic() - begun)
        if answer.is_success:
            return answer.json()
        self.failed += 1
        if answer.status_code < 500:
            self.false.append(f"{answer.status_code} to {method} {path}: {answer.text[:200]}")
        return None


def run(name: str, seed: int, place: Place, *, with_qdrant: bool) -> Outcome:
    begun = time.monotonic()
    with ExitStack() as ending:
        folder = ending.enter_context(tempfile.TemporaryDirectory(prefix="hachi-campaign-"))
        Path(folder).chmod(0o755)
        server = Server(Path(folder) / "data")
        ending.callback(server.stop)
        where = replace(place, url=server.new("replicas"))
        ended, found = asyncio.run(_trial(random.Random(seed), where, server, with_qdrant))
    return Outcome(name, seed, ended, found, time.monotonic() - begun)


async def _trial(
    chance: random.Random, place: Place, server: Server, with_qdrant: bool
) -> tuple[int, Findings]:
    """How many things ended, and what was found at the end."""
    async with AsyncExitStack() as ending:
        model = await ending.enter_async_context(AwayServer.running())
        qdrant = await ending.enter_async_context(QdrantServer.running())
        index = {"qdrant_url": qdrant.url} if with_qdrant else {}
        settings = {
            "DATABASE_URL": place.url or "",
            **{name.upper(): url for name, url in index.items()},
            "OPENAI_API_KEY": "sk-local",
            "OPENAI_BASE_URL": model.url,
            "HACHI_MODEL": "tiny",
            "HACHI_API": "chat",
            "HACHI_EMBEDDER": "bundled",
            "HACHI_HTTP_RATE": "0",
        }
        ports = [closed_port() for _ in range(3)]
        commands = [*(("serve", "--port", str(port)) for port in ports), ("worker",), ("worker",)]
        replicas = [
            Replica(command, settings, place.home.parent / f"process-{number}")
            for number, command in enumerate(commands)
        ]
        for replica in replicas:
            replica.start()
            ending.callback(replica.kill)
        urls = [f"http://127.0.0.1:{port}" for port in ports]
        limits = httpx.Limits(max_connections=2 * PEOPLE)
        client = httpx.AsyncClient(timeout=LONGEST, limits=limits, trust_env=False)
        talk = Talk(urls, await ending.enter_async_context(client), chance)
        await _until_all_answer(urls, client)
        async with asyncio.TaskGroup() as people:
            for number in range(PEOPLE):
                people.create_task(talk.person(f"user{number:02}"))
            supervising = people.create_task(_supervise(replicas))
            ended = await _end_things(chance, replicas, server, qdrant if with_qdrant else None)
            supervising.cancel()
            talk.ending = True
        codes = await asyncio.gather(*(asyncio.to_thread(replica.stop) for replica in replicas))
        talk.false += [
            f"hachi {' '.join(replica.command)} ended with {code}"
            for replica, code in zip(replicas, codes, strict=True)
            if code not in ENDED
        ]
        found = await asyncio.to_thread(checked, partial(_as_told, index), place, talk.told)
    asked = f"{len(talk.told)} told, {talk.failed} failed, the longest {talk.longest:.1f} s"
    return ended, replace(found, false=(*found.false, *talk.false), error=asked)


async def _until_all_answer(urls: list[str], client: httpx.AsyncClient) -> None:
    async with asyncio.timeout(2 * LONGEST):
        for url in urls:
            while True:
                try:
                    if (await client.get(f"{url}/healthz")).is_success:
                        break
                except httpx.HTTPError:
                    await asyncio.sleep(0.1)


async def _supervise(replicas: list[Replica]) -> None:
    """Start again what has ended, as the services of a machine do."""
    while True:
        await asyncio.sleep(AWAY / 2)
        for replica in replicas:
            if replica.running.poll() is not None:
                replica.start()


def _revived(folder: Path) -> None:
    """In another process: this one takes the server for running, since it has started it."""
    reviving = processes.Process(target=revive, args=(folder,))
    reviving.start()
    reviving.join()


async def _end_things(
    chance: random.Random, replicas: list[Replica], server: Server, qdrant: QdrantServer | None
) -> int:
    """End one thing after the other. Returns how many."""

    async def process() -> None:
        chance.choice(replicas).kill()

    async def postgresql() -> None:
        strike(server.folder, signal.SIGQUIT)
        await asyncio.sleep(AWAY)
        await asyncio.to_thread(_revived, server.folder)

    async def away(qdrant: QdrantServer) -> None:
        await qdrant.kill()
        await asyncio.sleep(AWAY)
        await qdrant.start()

    async def hung(qdrant: QdrantServer) -> None:
        qdrant.hang()
        await asyncio.sleep(AWAY)
        qdrant.go_on()

    async def emptied(qdrant: QdrantServer) -> None:
        qdrant.empty()

    endings: list[Callable[[], Awaitable[None]]] = [process, process, process, postgresql]
    if qdrant:
        endings += [partial(end, qdrant) for end in (away, hung, emptied)]
    until, ended = time.monotonic() + SECONDS, 0
    while time.monotonic() < until:
        await chance.choice(endings)()
        ended += 1
        await asyncio.sleep(chance.uniform(*PAUSES))
    return ended


async def _as_told(index: dict[str, str], place: Place, told: Any) -> Findings:
    """Once all work is done. What was running in crashes waits for minutes, and is told to be tried now."""
    async with opened(place, **index) as pet:
        async with asyncio.timeout(LATEST):
            while any(await pet.components.queue.counts()):
                jobs, now = pet.components.queue, pet.clock()
                await jobs.retry([job.id for job in await jobs.listed()], now)
                await pet.settle()
                await asyncio.sleep(1)
        return await as_told(pet, told)
