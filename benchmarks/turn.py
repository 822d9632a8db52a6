"""What does a turn cost, beside waiting for the model?

    python benchmarks/turn.py [--turns N] [--json]

The same scripted model and the same tools are run twice in turns, one after the other: by the Agents SDK's
loop alone, where tools answer at once from nothing, and by Hachi, with transcript, memory and index. The
script searches, remembers and answers in three calls; its answers are scripted, so the figure says nothing
of a real model. Then how long a person waits: `hachi --help`, and the first prompt of `hachi chat`.
Bars: a turn at most 2 times the bare loop; --help at most 0.4 s; the prompt at most 1 s. Exit 1 where missed.
"""

import argparse
import asyncio
import json
import os
import pty
import select
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from agents import Agent, FunctionTool, ModelResponse, RunConfig, Runner, Usage
from agents.models.interface import Model
from agents.testing import assistant_message, function_call
from rich.console import Console
from rich.table import Table

from agent import Companion, Settings
from agent.context import Scene, build_messages_for_model
from memory.audience import PRIVATE
from tools.registry import TOOLS

HACHI = [sys.executable, "-m", "agent.surfaces.cli"]
BARS = {"turn": 2.0, "help": 0.4, "prompt": 1.0}
FACTS = 200


class Script(Model):
    """Searches, remembers, answers; over and over, with ids of its own."""

    def __init__(self) -> None:
        self.calls = 0

    async def get_response(self, *args: Any, **request: Any) -> ModelResponse:
        self.calls += 1
        n, step = divmod(self.calls - 1, 3)
        if step == 0:
            item = function_call("search_memories", {"query": f"what about number {n}?"}, call_id=f"s{n}")
        elif step == 1:
            fact = {"content": f"Ana counted to {n}.", "subjects": ["ana"], "ttl": "7d"}
            item = function_call("remember", fact, call_id=f"r{n}")
        else:
            item = assistant_message(json.dumps({"message": f"Number {n}, then.", "memories": []}))
        return ModelResponse(output=[item], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **request: Any) -> Any:
        raise NotImplementedError


def bare_loop() -> Callable[[str, Any], Awaitable[None]]:
    async def nothing(_context: Any, _arguments: str) -> str:
        return '{"memories": []}'

    tools: list[Any] = [
        FunctionTool(tool.name, tool.description, tool.schema, nothing, strict_json_schema=False)
        for tool in TOOLS
    ]
    config = RunConfig(model=Script(), tracing_disabled=True)

    async def turn(text: str, now: Any) -> None:
        system, *rest = build_messages_for_model(Scene(now, "ana", PRIVATE, (), text))
        agent = Agent[None](name="bare", instructions=system["content"], tools=tools)
        await Runner.run(agent, rest, max_turns=5, run_config=config)  # type: ignore[arg-type]

    return turn


async def compare(turns: int) -> dict[str, float]:
    bare = bare_loop()
    times: dict[str, list[float]] = {"bare": [], "hachi": [], "hachi, settled": []}
    with tempfile.TemporaryDirectory() as home:
        settings = Settings.load(home=Path(home), embedder="bundled")
        async with Companion.open(settings, model=Script(), upkeep=False) as pet:
            for n in range(FACTS):
                await pet.remember(f"Ana's shelf {n} holds {n + 3} books.", user="ana", subjects=["ana"])
            await pet.catch_up()
            for n in range(turns + 5):
                started = time.perf_counter()
                await bare(f"turn {n}", pet.clock())
                between = time.perf_counter()
                await pet.respond(f"turn {n}", user="ana")
                replied = time.perf_counter()
                await pet.settle()
                settled = time.perf_counter()
                if n >= 5:  # the first ones warm up
                    times["bare"].append(between - started)
                    times["hachi"].append(replied - between)
                    times["hachi, settled"].append(settled - between)
    return {name: statistics.median(found) for name, found in times.items()}


def until_help(home: str) -> float:
    started = time.perf_counter()
    subprocess.run([*HACHI, "--help"], check=True, stdout=subprocess.DEVNULL, env=_environment(home))
    return time.perf_counter() - started


def until_prompt(home: str) -> float:
    """From the start of the process to the first prompt on a terminal."""
    ours, theirs = pty.openpty()
    started = time.perf_counter()
    with subprocess.Popen(
        [*HACHI, "chat", "--user", "ana"], stdin=theirs, stdout=theirs, stderr=theirs, env=_environment(home)
    ) as process:
        os.close(theirs)
        shown = ""
        while "ana" not in shown.split("\n")[-1] and time.perf_counter() - started < 20:
            if select.select([ours], [], [], 0.1)[0]:
                shown += os.read(ours, 4096).decode(errors="replace")
        took = time.perf_counter() - started
        process.terminate()
    os.close(ours)
    return took


def _environment(home: str) -> dict[str, str]:
    keep = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "HACHI_"))}
    return keep | {"HACHI_HOME": home, "TERM": "xterm"}


def measure(turns: int) -> dict[str, Any]:
    times = asyncio.run(compare(turns))
    with tempfile.TemporaryDirectory() as home:
        until_prompt(home)  # makes the home, and warms the file cache
        help_, prompt = [
            statistics.median(start(home) for _ in range(5)) for start in (until_help, until_prompt)
        ]
    return {
        "milliseconds": {name: 1000 * seconds for name, seconds in times.items()},
        "ratios": {name: seconds / times["bare"] for name, seconds in times.items() if name != "bare"},
        "help_seconds": help_,
        "prompt_seconds": prompt,
    }


def show(result: dict[str, Any]) -> None:
    table = Table("", "median", "ratio or bar")
    for name, milliseconds in result["milliseconds"].items():
        ratio = result["ratios"].get(name)
        table.add_row(f"turn, {name}", f"{milliseconds:.1f} ms", f"{ratio:.2f} ×" if ratio else "1")
    table.add_row("hachi --help", f"{result['help_seconds']:.2f} s", f"bar {BARS['help']} s")
    table.add_row(
        "first prompt of hachi chat", f"{result['prompt_seconds']:.2f} s", f"bar {BARS['prompt']} s"
    )
    Console().print(table)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=100)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    result = measure(options.turns)
    print(json.dumps(result, indent=2)) if options.json else show(result)
    reached = (
        result["ratios"]["hachi"] <= BARS["turn"]
        and result["help_seconds"] <= BARS["help"]
        and result["prompt_seconds"] <= BARS["prompt"]
    )
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
