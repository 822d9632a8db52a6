"""What does `hachi serve` add to a turn, with many people talking at once?

    python benchmarks/serve.py [--users N] [--turns N] [--seconds S] [--facts N] [--json]

A real server on 127.0.0.1 with a scripted model that takes a second for its answer; each user asks again as
soon as they are answered, for `--turns` turns in all. Added is what a turn takes beyond the model's time,
seen from the client. What the server's process holds is looked at after each tenth of the turns; with
10,000 and more that says whether it grows with what was said. With `--facts`, so many of the turns tell a
fact, which the model asks to remember; at the end each is to be there once.
Exit 1 where a request failed, or a fact is missing or there twice.
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
from agents import ModelResponse, Usage
from agents.models.interface import Model
from agents.testing import assistant_message, function_call
from rich.console import Console

from agent.surfaces.http.application import app
from agent.surfaces.http.server import address_of, listening, server_of
from hachi import Companion, Settings

LONGEST_LINE = 1 << 24
"""Bytes of what the client says at once."""
KEEP = "Please remember: "
LOOKS = 10
"""How often it is looked at what the server holds."""


class Slow(Model):
    """Takes its time, asks to remember what begins with `KEEP`, and says the same."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    async def get_response(self, system: str | None, input: Any, *args: Any, **request: Any) -> ModelResponse:
        await asyncio.sleep(self._seconds)
        said = str(input[-1].get("content", ""))
        if KEEP in said:
            arguments = {"content": said.partition(KEEP)[2], "subjects": [], "replaces": None}
            item = function_call("remember", arguments, call_id=str(uuid4()))
        else:
            item = assistant_message(json.dumps({"message": "I see.", "memories": []}))
        return ModelResponse(output=[item], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **request: Any) -> Any:
        raise NotImplementedError


async def measure(users: int, turns: int, seconds: float, facts: int = 0) -> tuple[dict[str, Any], list[str]]:
    """The figures, and what went wrong. The client runs in a process of its own, so that its work is not
    taken for the server's."""
    with tempfile.TemporaryDirectory() as home, listening("127.0.0.1", 0) as listener:
        settings = Settings.load(home=Path(home), embedder="bundled", http_rate=0)
        async with Companion.open(settings, model=Slow(seconds), upkeep=False) as pet:
            server = server_of(app(pet, settings, loopback=True))
            running = asyncio.create_task(server.serve(sockets=[listener]))
            command = [sys.executable, __file__, "--client", address_of(listener)]
            command += ["--users", str(users), "--turns", str(turns), "--facts", str(facts)]
            began, begun = time.perf_counter(), time.process_time()
            client = await asyncio.create_subprocess_exec(
                *command, stdout=asyncio.subprocess.PIPE, limit=LONGEST_LINE
            )
            assert client.stdout is not None
            held, told = [], {}
            async for line in client.stdout:
                told = json.loads(line)
                held.append(resident())
            await client.wait()
            took = time.perf_counter() - began
            await pet.settle()
            cpu = time.process_time() - begun
            kept: Counter[str] = Counter()
            for user in range(users):
                kept.update(memory.content for memory in await pet.memories.list(user=f"user-{user}"))
            server.should_exit = True
            await running
    missing = {fact_of(n) for n in range(turns) if tells(n, turns, facts)} - kept.keys()
    added = [1000 * (each - seconds) for each in told["took"]]
    percents = dict(enumerate(statistics.quantiles(added, n=100, method="inclusive"), 1))
    return {
        "users": users,
        "turns": len(added),
        "errors": len(told["errors"]),
        "facts": {
            "told": facts,
            "missing": len(missing),
            "double": sum(times > 1 for times in kept.values()),
        },
        "added_ms": {f"p{percent}": round(percents[percent], 1) for percent in (50, 95, 99)},
        "turns_a_second": round(turns / took, 1),
        "cpu_ms_a_turn": round(1000 * cpu / turns, 1),
        "resident_mb": [round(bytes / 1e6, 1) for bytes in (*held, resident())],
    }, told["errors"]


def tells(turn: int, turns: int, facts: int) -> bool:
    """Whether this turn tells a fact: `facts` of them do, evenly."""
    return (turn + 1) * facts // turns > turn * facts // turns


def fact_of(turn: int) -> str:
    return f"The boat in berth {turn} is called Pollux {turn}"


async def talk(url: str, users: int, turns: int, facts: int) -> None:
    """The client: prints a line after each tenth of the turns, the last with all that it found."""
    took: list[float] = []
    errors: list[str] = []
    left = iter(range(turns))
    limits = httpx2.Limits(max_connections=users, max_keepalive_connections=users)
    async with httpx2.AsyncClient(base_url=url, timeout=60, limits=limits, trust_env=False) as client:

        async def ask(user: str, text: str) -> None:
            body = {"messages": [{"role": "user", "content": text}]}
            try:
                answer = await client.post(
                    "/v1/chat/completions", json=body, headers={"x-openwebui-user-id": user}
                )
                if answer.status_code != 200:
                    errors.append(f"{answer.status_code} {answer.text[:200]}")
            except httpx2.HTTPError as error:
                errors.append(repr(error))

        async def one(user: int) -> None:
            for n in left:
                began = time.perf_counter()
                said = KEEP + fact_of(n) if tells(n, turns, facts) else f"What about number {n}?"
                await ask(f"user-{user}", said)
                took.append(time.perf_counter() - began)
                if len(took) % max(1, turns // LOOKS) == 0 and len(took) < turns:
                    print(json.dumps({}), flush=True)

        await ask("nobody", "Hello")  # the model's library is loaded at the first turn
        await asyncio.gather(*map(one, range(users)))
    print(json.dumps({"took": took, "errors": errors}), flush=True)


def resident() -> int:
    """Bytes of this process in memory; 0 where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--users", type=int, default=100, help="at once")
    parser.add_argument("--turns", type=int, default=500, help="in all")
    parser.add_argument("--seconds", type=float, default=1.0, help="that the model takes")
    parser.add_argument("--facts", type=int, default=0, help="how many of the turns tell one")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--client", metavar="URL", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        asyncio.run(talk(options.client, options.users, options.turns, options.facts))
        return 0
    result, errors = asyncio.run(measure(options.users, options.turns, options.seconds, options.facts))
    if options.json:
        print(json.dumps(result, indent=2))
    else:
        for name, found in result.items():
            Console().print(name, found, *(errors[:1] if name == "errors" else ()))
    return 1 if errors or result["facts"]["missing"] or result["facts"]["double"] else 0


if __name__ == "__main__":
    sys.exit(main())
