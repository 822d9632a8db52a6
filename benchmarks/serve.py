"""Measure what `hachi serve` adds to a turn, with many people talking at once.

    python benchmarks/serve.py [--users N] [--turns N] [--seconds S] [--facts N] [--processes N] [--json]

The servers are real, on 127.0.0.1, each a process with a scripted model that takes a second for its answer.
Each user asks again as soon as they have the answer, for `--turns` turns in all, and uses the servers in
turn. "Added" is the time of a turn without the model's, seen from the client. CPU time is counted after a
first turn, which loads libraries. Memory is measured after that turn and after each tenth of the turns; with
10,000 turns and more that shows whether it grows with the number of messages. With `--facts`, that many turns
state a fact, which the model asks to remember; at the end each must be stored exactly once. Statements are
those on the main database, including consolidation; with several `--processes` on the PostgreSQL of
DATABASE_URL there should be no more than with one. Exit 1 if a request failed, or a fact is missing or stored
twice.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
from agents import ModelResponse
from agents.testing import assistant_message, function_call
from harness import CONTROL, Scripted, arguments, finish, percentile
from sqlalchemy import event

from agent.surfaces.http.application import app
from agent.surfaces.http.server import address_of, listening, server_of
from hachi import Companion, Settings

KEEP = "Please remember: "
LOOKS = 10
"""How often the servers' memory is measured."""
ANSWER, SUMMARY = {"message": "I see.", "memories": []}, {"summary": "They talked about numbers."}


class Slow(Scripted):
    """A model that waits, asks to remember any text after `KEEP`, and gives a fixed answer."""

    def __init__(self, seconds: float, answer: dict[str, Any]) -> None:
        super().__init__(partial(_said, answer))
        self._seconds = seconds

    async def get_response(self, *args: Any, **rest: Any) -> ModelResponse:
        await asyncio.sleep(self._seconds)
        return await super().get_response(*args, **rest)


def _said(answer: dict[str, Any], _system: str, items: list[Any], _tools: list[Any]) -> Any:
    said = str(items[-1].get("content", ""))
    if KEEP in said and answer is ANSWER:
        fact: dict[str, Any] = {"content": said.rpartition(KEEP)[2], "subjects": [], "replaces": None}
        return function_call("remember", fact, call_id=str(uuid4()))
    return assistant_message(json.dumps(answer))


async def serve(home: Path, seconds: float) -> None:
    """Run one server. It prints its address, its memory for each line it reads, and finally its
    statistics."""
    settings = Settings.load(home=home, embedder="bundled", http_rate=0)
    statements = 0

    def executed(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        nonlocal statements
        statements += not statement.startswith(CONTROL)

    with listening("127.0.0.1", 0) as listener:
        models = Slow(seconds, ANSWER), Slow(seconds, SUMMARY)
        async with Companion.open(settings, model=models[0], consolidation_model=models[1]) as pet:
            event.listen(pet.components.database.engine.sync_engine, "before_cursor_execute", executed)
            server = server_of(app(pet, settings, loopback=True))
            running = asyncio.create_task(server.serve(sockets=[listener]))
            begun = 0.0
            print(json.dumps(address_of(listener)), flush=True)
            while (await asyncio.to_thread(sys.stdin.readline)).strip():
                begun = begun or time.process_time()  # after the first turn, which loads libraries
                print(resident(), flush=True)
            await pet.settle()
            cpu = time.process_time() - begun
            server.should_exit = True
            await running
    print(json.dumps({"cpu": cpu, "consolidations": models[1].calls, "statements": statements}), flush=True)


class Server:
    """A process that runs `serve`."""

    def __init__(self, home: str, seconds: float) -> None:
        command = [sys.executable, __file__, "--home", home, "--seconds", str(seconds)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def read(self) -> Any:
        """Return the next line that the process prints."""
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def ask(self, line: str = "look") -> Any:
        """Return the answer to a line; to an empty line it is the statistics."""
        print(line, file=self._process.stdin, flush=True)
        return self.read()

    def end(self) -> Any:
        """End the process, and return its statistics."""
        with self._process:
            return self.ask("")


async def measure(
    users: int, turns: int, seconds: float, facts: int = 0, processes: int = 1
) -> tuple[dict[str, Any], list[str]]:
    """Return the figures and the errors. The client runs in this process, so that its CPU time is not counted
    as the servers'."""
    with tempfile.TemporaryDirectory() as home:
        servers = [Server(home, seconds) for _ in range(processes)]
        urls = [server.read() for server in servers]
        held = list[int]()
        began = time.perf_counter()
        times, errors = await talk(
            urls, users, turns, facts, lambda: held.append(sum(server.ask() for server in servers))
        )
        took = time.perf_counter() - began
        held.append(sum(server.ask() for server in servers))
        done = [server.end() for server in servers]
        kept: Counter[str] = Counter()
        settings = Settings.load(home=Path(home), embedder="bundled")
        async with Companion.open(settings, periodic_jobs=False) as pet:
            for user in range(users):
                kept.update(memory.content for memory in await pet.memories.list(user=f"user-{user}"))
    missing = {fact_of(n) for n in range(turns) if tells(n, turns, facts)} - kept.keys()
    added = [1000 * (each - seconds * calls) for each, calls in times]
    return {
        "users": users,
        "turns": len(added),
        "processes": processes,
        "errors": len(errors),
        "facts": {
            "told": facts,
            "missing": len(missing),
            "double": sum(times > 1 for times in kept.values()),
        },
        "added_ms": {f"p{share}": round(percentile(added, share), 1) for share in (50, 95, 99)},
        "turns_a_second": round(turns / took, 1),
        "cpu_ms_a_turn": round(1000 * sum(each["cpu"] for each in done) / turns, 1),
        "statements_a_turn": round(sum(each["statements"] for each in done) / turns, 2),
        "consolidations_a_turn": round(sum(each["consolidations"] for each in done) / turns, 3),
        "resident_mb": [round(bytes / 1e6, 1) for bytes in held],
    }, errors


def tells(turn: int, turns: int, facts: int) -> bool:
    """Return whether this turn states a fact; `facts` of the turns do, evenly spread."""
    return (turn + 1) * facts // turns > turn * facts // turns


def fact_of(turn: int) -> str:
    return f"The boat in berth {turn} is called Pollux {turn}"


async def talk(
    urls: Sequence[str], users: int, turns: int, facts: int, look: Callable[[], None]
) -> tuple[list[tuple[float, int]], list[str]]:
    """Return how long each turn took with the number of its model calls, and the errors. `look` is called
    after the first turn of each server, and after each tenth of the others."""
    took: list[tuple[float, int]] = []
    errors: list[str] = []
    left = iter(range(turns))
    limits = httpx2.Limits(max_connections=users, max_keepalive_connections=users)
    async with httpx2.AsyncClient(timeout=60, limits=limits, trust_env=False) as client:

        async def ask(url: str, user: str, text: str) -> None:
            body = {"messages": [{"role": "user", "content": text}]}
            try:
                answer = await client.post(
                    f"{url}/v1/chat/completions", json=body, headers={"x-openwebui-user-id": user}
                )
                if answer.status_code != 200:
                    errors.append(f"{answer.status_code} {answer.text[:200]}")
            except httpx2.HTTPError as error:
                errors.append(repr(error))

        async def one(user: int) -> None:
            for n in left:
                began, fact = time.perf_counter(), tells(n, turns, facts)
                said = KEEP + fact_of(n) if fact else f"What about number {n}?"
                await ask(urls[n % len(urls)], f"user-{user}", said)
                took.append((time.perf_counter() - began, 1 + fact))
                if len(took) % max(1, turns // LOOKS) == 0 and len(took) < turns:
                    look()

        for url in urls:
            await ask(url, "nobody", "Hello")  # the model's library is loaded in the first turn
        look()
        await asyncio.gather(*map(one, range(users)))
    return took, errors


def resident() -> int:
    """Return the bytes of this process in memory; 0 if the system does not report them."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--users", type=int, default=100, help="at once")
    parser.add_argument("--turns", type=int, default=500, help="in all")
    parser.add_argument("--seconds", type=float, default=1.0, help="that the model takes")
    parser.add_argument("--facts", type=int, default=0, help="how many of the turns tell one")
    parser.add_argument("--processes", type=int, default=1, help="of the server")
    parser.add_argument("--home", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.home:
        asyncio.run(serve(options.home, options.seconds))
        return 0
    result, errors = asyncio.run(
        measure(options.users, options.turns, options.seconds, options.facts, options.processes)
    )
    wrong = [f"{result['facts'][name]} facts are {name}" for name in ("missing", "double")]
    return finish(options, result, [*errors[:1], *(one for one in wrong if not one.startswith("0 "))])


if __name__ == "__main__":
    sys.exit(main())
