"""What does a turn cost, beside waiting for the model?

    python benchmarks/turn.py [--turns N] [--json]

The same scripted model and the same tools are run one after the other: by the Agents SDK's loop alone, and by
Hachi, with transcript, context, reply and queue around it. The script searches, remembers and answers in
three calls; its answers are scripted, so the figure says nothing of a real model. The ratio that counts is to
the bare loop with the same tools at work on a memory of the same size; beside it stands the ratio to a loop
whose tools answer at once from nothing, which also holds what remembering and searching cost. Then what it
costs to record traces: the same turns with recording on and off, one of each after the other, in processor
time, which includes the threads that write and leaves out what else the machine does. Then how long a person
waits: `hachi --help`, and the first prompt of `hachi chat`.
Bars: a turn at most 2 times the bare loop; recording, all of it, at most 5 % of a turn with what is done
after it; --help at most 0.4 s; the prompt at most 1 s. Exit 1 where missed.
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
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from agents import Agent, FunctionTool, ModelResponse, RunConfig, Runner, Usage
from agents.models.interface import Model
from agents.testing import assistant_message, function_call
from rich.console import Console
from rich.table import Table

from agent import Companion, Settings
from agent.tracing import recorder
from agent.turn.prompt import PromptContext, build_messages_for_model
from agent.wiring.components import utc_now
from memory.audience import PRIVATE
from memory.process.spans import new_id
from memory.records import Message
from tools.context import TurnContext
from tools.registry import TOOLS, Tool

HACHI = [sys.executable, "-m", "agent.surfaces.cli"]
BARS = {"turn": 2.0, "recording": 1.05, "help": 0.4, "prompt": 1.0}
FACTS = 200
WARM_UP = 5
SAME_TOOLS, EMPTY_TOOLS = "bare loop, the same tools", "bare loop, tools that do nothing"
WHOLE_TURN, SETTLED = "hachi", "hachi, with its after-turn work"
LOT = 10
"""Turns whose traces are written together; under load they are more."""


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


Turn = Callable[[str], Awaitable[object]]


def bare_loop(call: Callable[[Tool, str], Awaitable[str]]) -> Turn:
    """The SDK's loop with the five tools, each answered by `call`, and nothing else."""

    def tool(one: Tool) -> FunctionTool:
        async def invoke(_context: Any, written: str) -> str:
            return await call(one, written)

        return FunctionTool(one.name, one.description, one.schema, invoke, strict_json_schema=False)

    tools: list[Any] = [tool(one) for one in TOOLS]
    config = RunConfig(model=Script(), tracing_disabled=True)

    async def turn(text: str) -> None:
        system, *rest = build_messages_for_model(PromptContext(utc_now(), "ana", PRIVATE, (), text))
        agent = Agent[None](name="bare", instructions=system["content"], tools=tools)
        await Runner.run(agent, rest, max_turns=5, run_config=config)  # type: ignore[arg-type]

    return turn


async def answer_nothing(_tool: Tool, _written: str) -> str:
    return '{"memories": []}'


def answer_from(pet: Companion) -> Callable[[Tool, str], Awaitable[str]]:
    """The tools themselves, on the companion's own memory."""

    async def call(tool: Tool, written: str) -> str:
        async def accept(*_: Any) -> None:
            raise RuntimeError("nothing is left for later here")

        turn = TurnContext(
            user="bare",
            place=PRIVATE,
            text="",
            message_id=None,
            shown=frozenset(),
            clock=pet.clock,
            recall=pet.components.recall,
            writer=pet.components.writer,
            accept=accept,
            accept_task=accept,
            tasks=pet.components.tasks,
            knowledge=pet.components.documents,
        )
        return (await tool.call(turn, written)).text

    return call


async def keep_exchange(pet: Companion, user: str, said: str, answered: str) -> None:
    """Store a message and its reply for a person whose turns Hachi does not run, so that the tools search as
    much for both: the messages are most of what a search finds."""
    for role, text in (("user", said), ("assistant", answered)):
        message = Message(new_id(), f"user:{user}", role, user, text, pet.clock())  # type: ignore[arg-type]
        async with pet.components.database.write() as connection:
            await pet.components.transcript.append(
                connection, message, user=user, place=PRIVATE, now=message.sent_at
            )
    await pet.admin.catch_up()


@dataclass
class Costs:
    """Seconds of processor time, one a turn."""

    replies: list[float] = field(default_factory=list)
    """Until the reply."""
    afterwards: list[float] = field(default_factory=list)
    writing: list[float] = field(default_factory=list)

    def typical(self, *, whole: bool) -> float:
        reply, after = statistics.median(self.replies), statistics.median(self.afterwards)
        return reply + after + statistics.median(self.writing or [0.0]) if whole else reply


async def recording_cost(turns: int) -> dict[str, float]:
    """How many times what a turn costs without recording it costs with it: until the reply, and in all."""
    recorder.PAUSE = 3600.0  # here it is said below when traces are written
    async with AsyncExitStack() as closing:
        pets = {}
        for on in (False, True):
            home = closing.enter_context(tempfile.TemporaryDirectory())
            settings = Settings.load(home=Path(home), embedder="bundled", traces=on)
            opened = Companion.open(settings, model=Script(), upkeep=False)
            pets[on] = await closing.enter_async_context(opened)
            await _furnish(pets[on], "ana")
        costs = {on: Costs() for on in pets}
        workers = {on: (await pet.runtime()).worker for on, pet in pets.items()}
        for n in range(WARM_UP + turns):
            if n == WARM_UP:
                costs = {on: Costs() for on in pets}
            for on in (False, True) if n % 2 else (True, False):
                marks = [time.process_time()]
                await pets[on].respond(f"turn {n}", user="ana")
                marks.append(time.process_time())
                await workers[on].settle()
                marks.append(time.process_time())
                costs[on].replies.append(marks[1] - marks[0])
                costs[on].afterwards.append(marks[2] - marks[1])
                if n % LOT == LOT - 1:
                    await pets[on].components.recorder.flush()
                    costs[on].writing.append((time.process_time() - marks[2]) / LOT)
    return {
        "until_the_reply": costs[True].typical(whole=False) / costs[False].typical(whole=False),
        "in_all": costs[True].typical(whole=True) / costs[False].typical(whole=True),
    }


async def _furnish(pet: Companion, user: str) -> None:
    for n in range(FACTS):
        await pet.remember(f"Ana's shelf {n} holds {n + 3} books.", user=user, subjects=["ana"])
    await pet.admin.catch_up()


async def compare(turns: int) -> dict[str, float]:
    """Median seconds of a turn, the three taking turns with each other."""
    times: dict[str, list[float]] = {name: [] for name in (SAME_TOOLS, EMPTY_TOOLS, WHOLE_TURN, SETTLED)}
    with tempfile.TemporaryDirectory() as home:
        settings = Settings.load(home=Path(home), embedder="bundled")
        async with Companion.open(settings, model=Script(), upkeep=False) as pet:
            for user in ("ana", "bare"):
                await _furnish(pet, user)
            empty, same = bare_loop(answer_nothing), bare_loop(answer_from(pet))
            for n in range(turns + WARM_UP):
                marks = [time.perf_counter()]
                for turn in (empty, same, partial(pet.respond, user="ana")):
                    await turn(f"turn {n}")
                    marks.append(time.perf_counter())
                await pet.settle()
                marks.append(time.perf_counter())
                await keep_exchange(pet, "bare", f"turn {n}", f"Number {n}, then.")
                if n >= WARM_UP:
                    times[EMPTY_TOOLS].append(marks[1] - marks[0])
                    times[SAME_TOOLS].append(marks[2] - marks[1])
                    times[WHOLE_TURN].append(marks[3] - marks[2])
                    times[SETTLED].append(marks[4] - marks[2])
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
    recording = asyncio.run(recording_cost(turns))
    with tempfile.TemporaryDirectory() as home:
        until_prompt(home)  # makes the home, and warms the file cache
        help_, prompt = [
            statistics.median(start(home) for _ in range(5)) for start in (until_help, until_prompt)
        ]
    return {
        "milliseconds": {name: 1000 * seconds for name, seconds in times.items()},
        "ratio": times[WHOLE_TURN] / times[SAME_TOOLS],
        "ratio_to_empty_tools": times[WHOLE_TURN] / times[EMPTY_TOOLS],
        "recording": recording,
        "help_seconds": help_,
        "prompt_seconds": prompt,
    }


def show(result: dict[str, Any]) -> None:
    table = Table("a turn", "median")
    for name, milliseconds in result["milliseconds"].items():
        table.add_row(name, f"{milliseconds:.1f} ms")
    console = Console()
    console.print(table)
    console.print(f"hachi to the same tools: {result['ratio']:.2f} × (bar {BARS['turn']:g} ×)")
    console.print(f"hachi to tools that do nothing: {result['ratio_to_empty_tools']:.2f} ×")
    recording = result["recording"]
    console.print(
        f"recorded to not recorded: {recording['until_the_reply']:.3f} × until the reply, "
        f"{recording['in_all']:.3f} × in all (bar {BARS['recording']:g} ×)"
    )
    console.print(f"hachi --help: {result['help_seconds']:.2f} s (bar {BARS['help']} s)")
    console.print(f"first prompt of hachi chat: {result['prompt_seconds']:.2f} s (bar {BARS['prompt']} s)")


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
        result["ratio"] <= BARS["turn"]
        and result["recording"]["in_all"] <= BARS["recording"]
        and result["help_seconds"] <= BARS["help"]
        and result["prompt_seconds"] <= BARS["prompt"]
    )
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
