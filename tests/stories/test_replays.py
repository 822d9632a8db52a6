"""Turns of five people in private and in two channels: each replays the same, whatever happened since, and so
does the work after it. What shows something forgotten has nothing to replay, and is counted apart.

`make test-replay` takes a thousand turns on each database; without it there are fewer.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from scripted_server import Call, Drop, Fail, Hang, Say, ScriptedServer, Step, answer

from agent.errors import HachiError
from agent.replay.replay import ReplayResult, replay_each
from agent.tracing.store.filters import TraceFilter
from agent.types.client import ClientTool, ClientTurn
from hachi import Companion
from tests.campaign.postgresql import running

TURNS = int(os.environ.get("REPLAYED_TURNS", "120"))
PEOPLE, PLACES = ("ana", "ben", "cleo", "dora", "eli"), (None, "acme/general", None, "acme/random")
TOPICS = ("garden", "sister", "piano", "boat", "school", "dog", "knee", "Lisbon")
WEATHER = ClientTurn(tools=(ClientTool("weather", "What it is like there.", {"type": "object"}),))


def topic(n: int) -> str:
    return TOPICS[n % len(TOPICS)]


def calls(n: int, now: datetime) -> list[list[Call]]:
    """The tool calls of turn number n."""
    fact = {"content": f"Ana's {topic(n)} was visited {n} times", "subjects": ["ana", topic(n).lower()]}
    task = {"id": None, "description": f"water the {topic(n)} {n}", "status": "open"}
    search = Call("search_memories", {"query": f"what about the {topic(n)}?"})
    return [
        [[search]],
        [[Call("remember", fact | {"ttl": None})]],
        [[search, Call("get_recent_memories", {"limit": 4})]],
        [[Call("update_task", task | {"due": (now + timedelta(days=1)).isoformat()})]],
        [[search], [Call("remember", fact | {"ttl": "7d"}), Call("remember", fact | {"importance": 0.1})]],
        [[Call("search_knowledge", {"query": f"how deep is the {topic(n)}"})]],
        [],
        [[Call("search_memories", {"query": ""})]],
        [[Call("make_coffee", {}), Call("search_memories", "no arguments")]],
    ][n % 9]


def last(n: int) -> Step:
    """The answer of turn number n."""
    if n % 11 == 10:
        return Say(f"Number {n}, in plain words.")
    kept = {"content": f"Ana told of the {topic(n)}, {n}", "importance": 0.2 + (n % 7) / 10}
    return answer(f"Number {n} it is.", *([kept] if n % 5 == 0 else []))


def findings(n: int) -> Step:
    """What a consolidation is answered."""
    new = {"text": f"Ben likes the {topic(n)} {n}", "messages": [1], "importance": "medium", "tags": ["ben"]}
    return (
        Say("no JSON at all")
        if n % 7 == 6
        else Say(f'{{"summary": "They spoke of number {n}.", "new_facts": [{_json(new)}]}}')
    )


def _json(value: dict[str, Any]) -> str:
    return str(value | {"ttl": "null"}).replace("'", '"')


class World:
    """Five people who talk, and what happens to them in between."""

    def __init__(self, pet: Companion, server: ScriptedServer, clock: Any) -> None:
        self.pet, self.server, self.clock = pet, server, clock
        self.failed = self.cancelled = self.turns = 0

    async def turn(self, n: int) -> None:
        """One of the kinds of turns: usual, retried, failed, timed out, cancelled, with a client's tool."""
        called = calls(n, self.clock())
        kind, more, steps = n % 23, dict[str, Any](), list[Step]([*called, last(n)])
        if kind == 3:
            steps.insert(0, Fail(500, "for a moment"))
        elif kind == 7:
            steps = [Fail(400, "no such thing")]
        elif kind == 11:
            steps[-1] = Hang() if n % 2 else Drop()
            steps += [Drop(), Drop()]
        elif kind == 15:
            more, steps = {"client": WEATHER}, [*called, [Call("weather", {"at": topic(n)})]]
        self.server.clear()
        self.server.script(*steps)
        told = self.pet.respond(f"tell me of the {topic(n)}, number {n}?", **self.who(n), **more)
        await self.cancelled_turn(told) if kind == 19 else await self.taken(told)

    def who(self, n: int) -> dict[str, Any]:
        return {"user": PEOPLE[n % 5], "place": PLACES[n % 4]}

    async def taken(self, told: Awaitable[Any]) -> None:
        self.turns += 1
        try:
            await told
        except HachiError:
            self.failed += 1

    async def cancelled_turn(self, told: Awaitable[Any]) -> None:
        self.server.clear()
        self.server.script(Call("search_memories", {"query": "dog"}), Hang())
        turn = asyncio.ensure_future(told)
        while len(self.server.asked) < 2 and not turn.done():  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        turn.cancel()
        with suppress(asyncio.CancelledError, HachiError):  # on a busy machine its first call may time out
            await turn
        self.turns, self.cancelled = self.turns + 1, self.cancelled + turn.cancelled()

    async def two_at_once(self, n: int) -> None:
        """Two people speak in one channel at the same time."""
        self.server.clear()
        self.server.script(answer("Both of you."), answer("Both of you."))
        both = [self.pet.respond(f"at once, {n}", user=one, place=PLACES[1]) for one in PEOPLE[:2]]
        await asyncio.gather(*map(self.taken, both))

    async def meanwhile(self, n: int) -> None:
        """Documents, consolidations, reminders, forgettings and purges."""
        self.clock.advance(minutes=7)
        if n % 20 == 10:
            await self.pet.documents.add(f"{n}.md", f"The {topic(n)} is {n} metres deep.", user=None)
        if n % 25 == 24:
            self.server.script_consolidations(findings(n // 25))
            await self.pet.settle()
            for memory in await self.pet.memories.list(user="dora", limit=1):
                await self.pet.memories.forget(memory.id, user="dora")
        if n % 50 == 49:
            self.clock.advance(days=2)
            await self.pet.reminders.run()
            await self.pet.admin.purge()


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    if request.param == "sqlite":
        yield {}
        return
    with running() as postgresql:
        yield {"database_url": postgresql.new("replays")}


async def test_every_turn_is_the_same_again(
    open_pet: Callable[..., Awaitable[Companion]],
    server: ScriptedServer,
    clock: Any,
    tmp_path: Path,
    database: dict[str, str],
) -> None:
    asks = {"openai_base_url": server.url, "model": "tiny", "api": "chat", "model_timeout": 3}
    pet = await open_pet(**asks, **database, consolidate_per_day=10_000)
    sent = list[str]()

    async def send(*reminder: Any) -> bool:
        sent.append(str(reminder[-1]))
        return True

    pet.reminders.register("", send)
    world = World(pet, server, clock)
    for n in range(TURNS):
        await world.turn(n)
        if n % 40 == 39:
            await world.two_at_once(n)
        await world.meanwhile(n)
    await pet.settle()

    found = await pet.traces.list(TraceFilter(), clock(), 2 * TURNS)
    replays = [one async for one in replay_each(pet, [one.id for one in found])]
    done = [one for one in replays if isinstance(one, ReplayResult)]
    skipped = [one for one in replays if not isinstance(one, ReplayResult)]
    changed = {one.before.trace.summary.said: one.differences[0] for one in done if not one.same}
    work = [job for one in done for job in one.before.jobs]
    kept = sum(bool(list(job.spans("exchange"))) for job in work)
    print(
        f"{len(found)} turns, {world.failed} failed, {world.cancelled} cancelled, {len(sent)} reminders; "
        f"{len(done)} replayed with {len(work)} jobs, {kept} of them consolidations; "
        f"{len(skipped)} have no content any more; {len(changed)} changed"
    )
    assert changed == {}
    assert len(found) == world.turns
    assert (world.failed, world.cancelled) >= (TURNS // 23, TURNS // 23)
    assert {one.why.partition(" is ")[2] for one in skipped} <= {
        "forgotten: it showed what a person had forgotten",
        "forgotten for now: it showed what a person had forgotten",
    }
    assert len(done) > 0.7 * len(found)
    assert kept
    assert sent
