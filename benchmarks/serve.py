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
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
from agents import ModelResponse, Usage
from agents.models.interface import Model
from agents.testing import assistant_message, function_call
from rich.console import Console
from rich.table import Table

from agent import Companion, Settings
from agent.surfaces.http.application import app
from agent.surfaces.http.server import address_of, listening, server_of

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


@dataclass
class Measured:
    took: list[float] = field(default_factory=list)
    """Seconds of each turn, in the order of their ends."""
    errors: list[str] = field(default_factory=list)
    cpu: float = 0.0
    """Seconds of processor time that the server's process took, its work after the replies included."""
    held: list[int] = field(default_factory=list)
    """Bytes of resident memory, after each tenth of the turns, and when all work is done."""
    missing: list[str] = field(default_factory=list)
    double: list[str] = field(default_factory=list)
    """Facts that are not there, and those that are there more than once."""


async def measure(users: int, turns: int, seconds: float, facts: int = 0) -> Measured:
    """The client runs in a process of its own, so that its work is not taken for the server's."""
    with tempfile.TemporaryDirectory() as home, listening("127.0.0.1", 0) as listener:
        settings = Settings.load(home=Path(home), embedder="bundled", http_rate=0)
        async with Companion.open(settings, model=Slow(seconds), upkeep=False) as pet:
            server = server_of(app(pet, settings, loopback=True))
            running = asyncio.create_task(server.serve(sockets=[listener]))
            command = [sys.executable, __file__, "--client", address_of(listener)]
            command += ["--users", str(users), "--turns", str(turns), "--facts", str(facts)]
            begun = time.process_time()
            client = await asyncio.create_subprocess_exec(
                *command, stdout=asyncio.subprocess.PIPE, limit=LONGEST_LINE
            )
            found = Measured()
            assert client.stdout is not None
            async for line in client.stdout:
                told = json.loads(line)
                found.took += told.get("took", [])
                found.errors += told.get("errors", [])
                if "look" in told:
                    found.held.append(resident())
            await client.wait()
            await pet.settle()
            found.held.append(resident())
            found.cpu = time.process_time() - begun
            kept = Counter(
                [m.content for user in range(users) for m in await pet.memories.list(user=f"user-{user}")]
            )
            told = [fact_of(n) for n in range(turns) if tells(n, turns, facts)]
            found.missing = [fact for fact in told if not kept[fact]]
            found.double = [fact for fact, times in kept.items() if times > 1]
            server.should_exit = True
            await running
    return found


def tells(turn: int, turns: int, facts: int) -> bool:
    """Whether this turn tells a fact: `facts` of them do, evenly."""
    return (turn + 1) * facts // turns > turn * facts // turns


def fact_of(turn: int) -> str:
    return f"The boat in berth {turn} is called Pollux {turn}"


async def talk(url: str, users: int, turns: int, facts: int) -> None:
    """The client: prints what it found, in lines of JSON."""
    took: list[float] = []
    errors: list[str] = []
    left = iter(range(turns))
    limits = httpx2.Limits(max_connections=users, max_keepalive_connections=users)
    async with httpx2.AsyncClient(base_url=url, timeout=60, limits=limits, trust_env=False) as client:

        async def one(user: int) -> None:
            headers = {"x-openwebui-user-id": f"user-{user}"}
            for n in left:
                said = KEEP + fact_of(n) if tells(n, turns, facts) else f"What about number {n}?"
                body = {"messages": [{"role": "user", "content": said}]}
                began = time.perf_counter()
                try:
                    answer = await client.post("/v1/chat/completions", json=body, headers=headers)
                    if answer.status_code != 200:
                        errors.append(f"{answer.status_code} {answer.text[:200]}")
                except httpx2.HTTPError as error:
                    errors.append(repr(error))
                took.append(time.perf_counter() - began)
                if len(took) % max(1, turns // LOOKS) == 0:
                    print(json.dumps({"look": True}), flush=True)

        began = {"x-openwebui-user-id": "nobody"}  # the model's library is loaded at the first turn
        await client.post(
            "/v1/chat/completions", json={"messages": [{"role": "user", "content": "Hello"}]}, headers=began
        )
        await asyncio.gather(*(one(user) for user in range(users)))
    print(json.dumps({"took": took, "errors": errors}), flush=True)


def resident() -> int:
    """Bytes of this process in memory; 0 where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


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
    began = time.perf_counter()
    found = asyncio.run(measure(options.users, options.turns, options.seconds, options.facts))
    added = [1000 * (took - options.seconds) for took in found.took]
    result = {
        "users": options.users,
        "turns": len(found.took),
        "errors": len(found.errors),
        "facts": {"told": options.facts, "missing": len(found.missing), "double": len(found.double)},
        "added_ms": {f"p{percent}": round(quantile(added, percent / 100), 1) for percent in (50, 95, 99)},
        "turns_a_second": round(len(found.took) / (time.perf_counter() - began), 1),
        "cpu_ms_a_turn": round(1000 * found.cpu / len(found.took), 1),
        "resident_mb": [round(held / 1e6, 1) for held in found.held],
    }
    print(json.dumps(result, indent=2)) if options.json else show(result, found.errors)
    return 1 if found.errors or found.missing or found.double else 0


def show(result: dict[str, Any], errors: list[str]) -> None:
    table = Table("what", "found")
    table.add_row("users at once, turns in all", f"{result['users']}, {result['turns']}")
    table.add_row("errors", f"{result['errors']} {errors[:1] or ''}")
    if result["facts"]["told"]:
        table.add_row("facts told, missing, double", ", ".join(map(str, result["facts"].values())))
    for name, milliseconds in result["added_ms"].items():
        table.add_row(f"added to the model's time, {name}", f"{milliseconds:.0f} ms")
    table.add_row("processor time a turn", f"{result['cpu_ms_a_turn']:.0f} ms")
    table.add_row("turns a second", f"{result['turns_a_second']:.1f}")
    table.add_row(
        "held after each tenth, and at the end",
        ", ".join(f"{mb:.0f}" for mb in result["resident_mb"]) + " MB",
    )
    Console().print(table)


if __name__ == "__main__":
    sys.exit(main())
