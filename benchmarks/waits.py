"""Measure how long one person's request holds up everybody else.

    python benchmarks/waits.py [--scale 0.1] [--only WORD] [--json] [--bar NAME=NUMBER]

Each act runs in its own data folder, next to a task that ticks every two milliseconds. `waits` is the longest
time between two ticks in milliseconds. `busy` is the most CPU time of the event loop between two ticks, which
other programs do not change. The bar of `busy` is 40: work yields every 20, and a single statement may
follow. Exit 1 if a bar is missed.
"""

import asyncio
import gc
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import urlencode

import httpx
from harness import Scripted, arguments, bars_of, finish, new_companion, over
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from agent.services.transfer.read_import import parse_import
from agent.surfaces.http.application import app
from agent.surfaces.web.application import app as console
from agent.surfaces.web.application import beside
from agent.types.client import ClientTurn, MessageItem
from hachi import Companion

BAR, TICK = 40.0, 0.002
WHEN = "2026-03-01T09:00:00+00:00"
Act = Callable[[], Awaitable[Any]]
Prepare = Callable[[Companion, int], Awaitable[Act]]
"""Prepares the data for an act of this size, and returns the act."""
ACTS: dict[str, tuple[int, Prepare]] = {}


def act(name: str, size: int) -> Callable[[Prepare], Prepare]:
    def add(prepare: Prepare) -> Prepare:
        ACTS[name] = size, prepare
        return prepare

    return add


def answered(text: str) -> ResponseOutputMessage:
    part = ResponseOutputText(type="output_text", text=text, annotations=[])
    return ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[part])


def lines(count: int, **more: Any) -> Iterator[dict[str, Any]]:
    for n in range(count):
        yield {"author": "ana", "text": f"line {n} about the river", "sent_at": WHEN} | more


async def said(pet: Companion, messages: Sequence[Mapping[str, Any]], **more: Any) -> None:
    await pet.conversations.import_(parse_import(messages, user="ana"), user="ana", **more)


def asked(pet: Companion) -> httpx.AsyncClient:
    """Return a client of the HTTP API and the console, in this process."""
    served = beside(
        app(pet, pet.settings, loopback=True, console=True), console(pet, person="ana", loopback=True)
    )
    return httpx.AsyncClient(transport=httpx.ASGITransport(served), base_url="http://127.0.0.1")


async def learned(pet: Companion, count: int) -> None:
    facts = [{"content": f"Ana saw the bird number {n}"} for n in range(count)]
    await pet.memories.remember_many(facts, user="ana")
    await pet.admin.catch_up()


@act("forget, beside a long reply without a blank", 60_000)
async def _(pet: Companion, size: int) -> Act:
    fact = await pet.remember("Ana's boat is called Otter", user="ana")
    replies = [
        {"author": "ana", "text": "how are you?", "sent_at": WHEN},
        {"author": "hachi", "role": "assistant", "text": "a" * size, "sent_at": WHEN},
    ]
    await said(pet, replies)
    return lambda: pet.memories.forget(str(fact.id), user="ana")


@act("an answer that goes on in blanks", 30_000)
async def _(pet: Companion, size: int) -> Act:
    return lambda: pet.respond("hello", user="ana")


@act("erase, 1 fact and 2 messages each", 10_000)
async def _(pet: Companion, size: int) -> Act:
    await learned(pet, size)
    await said(pet, [*lines(2 * size)])
    return lambda: pet.people.erase(user="ana")


@act("search a place of many speakers", 1_100)
async def _(pet: Companion, size: int) -> Act:
    rows = [line | {"author": f"Speaker{n} Name{n}", "user": f"u{n}"} for n, line in enumerate(lines(size))]
    await said(pet, rows, place="acme/hall", for_others=True)
    await pet.admin.catch_up()
    return lambda: pet.search_memories("what did Speaker7 say of the river?", user="ana", place="acme/hall")


@act("a client's history of equal messages", 1_000)
async def _(pet: Companion, size: int) -> Act:
    same = [{"author": "ana", "text": "again", "sent_at": WHEN, "conversation": "c"} for _ in range(size)]
    await said(pet, same, place="acme/hall")
    client = ClientTurn(history=tuple(MessageItem("user", "again") for _ in range(size)))
    where = {"user": "ana", "place": "acme/hall", "conversation": "c"}
    return lambda: pet.respond("again", client=client, **where)


@act("import", 20_000)
async def _(pet: Companion, size: int) -> Act:
    return partial(said, pet, [*lines(size)])


@act("export over HTTP", 20_000)
async def _(pet: Companion, size: int) -> Act:
    await said(pet, [*lines(size)])
    return partial(asked(pet).get, "/api/users/ana/export")


@act("list over HTTP", 10_000)
async def _(pet: Companion, size: int) -> Act:
    await learned(pet, size)
    return partial(asked(pet).get, "/api/users/ana/memories?limit=10000")


@act("a form of many fields", 240_000)
async def _(pet: Companion, size: int) -> Act:
    form = urlencode({f"f{n}": "" for n in range(size)}).encode()
    kind = {"content-type": "application/x-www-form-urlencoded", "origin": "http://127.0.0.1"}
    return partial(asked(pet).post, "/memories", content=form, headers=kind)


async def longest_wait(run: Act) -> dict[str, float]:
    """Return milliseconds: the longest time between two ticks while the act runs, the most CPU time between
    two, and how long the act takes."""
    waits = busy = 0.0

    async def tick() -> None:
        nonlocal waits, busy
        while True:
            began, worked = time.perf_counter(), time.thread_time()
            await asyncio.sleep(TICK)
            waits = max(waits, time.perf_counter() - began - TICK)
            busy = max(busy, time.thread_time() - worked)

    gc.collect()
    ticking = asyncio.create_task(tick())
    await asyncio.sleep(5 * TICK)
    began = time.perf_counter()
    answer = await run()
    if getattr(answer, "status_code", 200) not in (200, 303, 400, 413):
        raise RuntimeError(answer.text)
    took = time.perf_counter() - began
    await asyncio.sleep(2 * TICK)
    ticking.cancel()
    return {"waits": 1e3 * waits, "busy": 1e3 * busy, "takes": 1e3 * took}


async def measure(name: str, scale: float) -> dict[str, float]:
    size, prepare = ACTS[name]
    blanks = '{"message": "' + " " * size if name == "an answer that goes on in blanks" else "Hello."
    model = Scripted(lambda *_: answered(blanks))
    async with new_companion({"trace_content": "off"}, model=model) as pet:
        await pet.respond("hello", user="warm")
        return await longest_wait(await prepare(pet, max(1, int(size * scale))))


def main() -> int:
    parser = arguments(__doc__, bars=True)
    parser.add_argument("--scale", type=float, default=1.0, help="of the sizes")
    parser.add_argument("--only", default="", help="acts whose name has this")
    options = parser.parse_args()
    found = {name: asyncio.run(measure(name, options.scale)) for name in ACTS if options.only in name}
    busy = {name: figures["busy"] for name, figures in found.items()}
    return finish(options, found, over(bars_of(options, dict.fromkeys(busy, BAR)), busy))


if __name__ == "__main__":
    sys.exit(main())
