"""Each server away, dead or hung, for a dozen turns: people are answered, and nothing accepted is lost."""

import asyncio
import hashlib
import json
import signal
import socket
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from agent.errors import HachiError
from hachi import Companion, Settings
from memory.errors import MemoryFault
from tests.campaign.postgresql import Server, revive, strike
from tests.campaign.trials import Findings, Outcome, Place, Tell, checked, prepared
from tests.campaign.world import boat, facts_are_there, look_for, opened
from tests.doubles.scripted_server import Asked, Call, Fail, Hang, Raw, ScriptedServer, Step, answer, fact

TURNS = 12
LONGEST = 5.0
"""Seconds that a turn and the exit may take with a part away that a turn can do without."""
MOST_CALLS = 8
"""Calls of a dead model or embedder in those turns: a circuit that is open asks it no more."""
DIMENSION = 1536


class AwayServer(ScriptedServer):
    """The model, the model of consolidation and the embedder, each of which can be away."""

    def __init__(self) -> None:
        super().__init__()
        self.away: str | None = None
        self.manner: Step = Fail(503)
        self.calls = 0
        """Of what is away."""

    def _step(self, asked: Asked) -> Step:
        kind = "consolidation" if asked.consolidates else "model"
        kind = "embedder" if asked.path.endswith("/embeddings") else kind
        if kind == self.away:
            self.calls += 1
            return self.manner
        if kind == "embedder":
            return Raw(json.dumps(_vectors(asked.json["input"])).encode(), "application/json")
        if kind == "consolidation":
            return answer("{}")
        told = asked.conversation[-1][1].partition("keep: ")[2].strip()
        if told and told[-1] in "13579" and not asked.results:
            return Call("remember", {**fact(told), "replaces": None})
        return answer("I see.", *([{"content": told}] if told else []))


def _vectors(texts: Any) -> dict[str, Any]:
    texts = [texts] if isinstance(texts, str) else texts
    data = [{"object": "embedding", "index": n, "embedding": _vector(text)} for n, text in enumerate(texts)]
    return {
        "object": "list",
        "data": data,
        "model": "local",
        "usage": {"prompt_tokens": 1, "total_tokens": 1},
    }


def _vector(text: str) -> list[float]:
    vector = [0.0] * DIMENSION
    for word in text.casefold().split():
        vector[int.from_bytes(hashlib.sha256(word.encode()).digest()[:2]) % DIMENSION] += 1.0
    return vector


def closed_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@dataclass(frozen=True)
class Away:
    """A server that is away while people talk, and back afterwards."""

    part: str
    setting: str | None = None
    """What names its address, where it is no part of the model's server."""
    written: str = "http://{}"
    answers: bool = True
    """Whether people are answered meanwhile."""

    def run(self, name: str, seed: int, place: Place) -> Outcome:
        begun, told = time.monotonic(), list[Any]()
        found = prepared(partial(_talk, self, hung=bool(seed % 2)), place, told)
        notes = [one[2] for one in told if one[0] == "note"]
        false = tuple(one[2] for one in told if one[0] == "false")
        if found.crash is None:
            facts = [one for one in told if one[0] == "ana"]
            found = checked(partial(_back, self), place, facts)
        return Outcome(
            name, seed, TURNS, replace(found, false=false, error=", ".join(notes)), time.monotonic() - begun
        )


@asynccontextmanager
async def _companion(
    away: Away, place: Place, server: ScriptedServer, **settings: Any
) -> AsyncIterator[Companion]:
    given = {
        "home": place.home,
        "embedder": "openai:text-embedding-3-small" if away.part == "embedder" else "bundled",
        "openai_api_key": "sk-local",
        "openai_base_url": server.url,
        "model": "tiny",
        "api": "chat",
        "model_timeout": 1.0,
        "model_retries": 1,
        **settings,
    }
    async with Companion.open(Settings.load(**given), periodic_jobs=False) as pet:
        yield pet


async def _talk(away: Away, place: Place, tell: Tell, _: int, *, hung: bool) -> None:
    async with AwayServer.running() as server, _hung_server() as silent:
        async with _companion(away, place, server) as pet:
            await pet.respond(f"keep: {boat('ana', 2)}", user="ana", settle=True)
            tell(("ana", None, boat("ana", 2)))
        server.away, server.manner = away.part, Hang() if hung else Fail(503)
        address = silent if hung else f"127.0.0.1:{closed_port()}"
        begun, longest, refused = time.monotonic(), 0.0, 0
        async with _companion(
            away, place, server, **({away.setting: away.written.format(address)} if away.setting else {})
        ) as pet:
            for number in range(101, 101 + TURNS):
                asked = time.monotonic()
                try:
                    await pet.respond(f"keep: {boat('ana', number)}", user="ana")
                    tell(("ana", None, boat("ana", number)))
                except (HachiError, MemoryFault):
                    refused += 1
                longest = max(longest, time.monotonic() - asked)
            await asyncio.sleep(1)
            left = time.monotonic()
        longest = max(longest, time.monotonic() - left)
        tell(("note", None, f"{time.monotonic() - begun:.0f} s, {server.calls} calls, {refused} refused"))
        if away.answers and refused:
            tell(("false", None, f"{refused} turns refused with the {away.part} away"))
        if longest > LONGEST:
            tell(("false", None, f"{longest:.1f} s with the {away.part} away"))
        if server.calls > MOST_CALLS:
            tell(("false", None, f"{server.calls} calls of the {away.part} that is away"))


@asynccontextmanager
async def _hung_server() -> AsyncIterator[str]:
    """An address that accepts and never answers."""

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(1024):
            pass
        writer.close()

    listening = await asyncio.start_server(silent, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    finally:
        listening.close()


async def _back(away: Away, place: Place, told: Sequence[Any]) -> Findings:
    async with AwayServer.running() as server, _companion(away, place, server) as pet:
        return await look_for(pet, told)


def _postgresql(name: str, seed: int, place: Place) -> Outcome:
    """PostgreSQL is killed, or stopped for a while, in the middle of turns."""
    begun, told = time.monotonic(), list[Any]()
    with tempfile.TemporaryDirectory(prefix="hachi-campaign-") as folder:
        Path(folder).chmod(0o755)
        server = Server(Path(folder) / "data")
        try:
            where = replace(place, url=server.new("trial"))
            found = prepared(partial(_struck, server.folder, hung=bool(seed % 2)), where, told)
            if found.crash is None:
                found = checked(facts_are_there, where, told)
        finally:
            server.stop()
    return Outcome(name, seed, TURNS, found, time.monotonic() - begun)


async def _struck(folder: Path, place: Place, tell: Tell, _: int, *, hung: bool) -> None:
    async with opened(place) as pet:
        for number in range(101, 101 + 4 * TURNS):
            if number == 101 + TURNS:
                strike(folder, signal.SIGSTOP if hung else signal.SIGQUIT)
            if number == 101 + 2 * TURNS:
                revive(folder)
            try:
                async with asyncio.timeout(60):
                    await pet.respond(f"keep: {boat('ana', number)}", user="ana")
            except (HachiError, MemoryFault, TimeoutError):  # a frozen server is waited for longer
                await asyncio.sleep(0.1)
                continue
            tell(("ana", None, boat("ana", number)))


AWAY: dict[str, Callable[[str, int, Place], Outcome]] = {
    "chat model": Away("model", answers=False).run,
    "consolidation model": Away("consolidation").run,
    "embedder": Away("embedder").run,
    "Qdrant": Away("index", "qdrant_url").run,
    "collector": Away("collector", "otlp_endpoint").run,
    "PostgreSQL": _postgresql,
}
"""What is away → how a trial is run."""
