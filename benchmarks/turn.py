"""Measure what a turn costs besides waiting for the model.

    python benchmarks/turn.py [--turns N] [--bar NAME=NUMBER ...] [--json]

The same scripted model and the same tools are run alternately by the Agents SDK's loop alone, and by Hachi,
which adds transcript, context, reply and queue. The script searches, remembers and answers in three calls;
the figures say nothing about a real model. The main ratio is to the bare loop with the same tools on a memory
of the same size. A second comparison runs the same turns with and without the recording of traces. All of
this is CPU time, which includes the threads that write and excludes other programs.

It also counts the SQL statements, writing transactions and round trips of each step of a turn. It does so on
SQLite, and on PostgreSQL if DATABASE_URL names a migrated and empty database. Traces, which are written in
batches, are not counted; the consolidation of the conversation after the reply is. Exit 1 if one of `BARS`,
or of `--bar`, is missed.
"""

import asyncio
import json
import os
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from typing import Any

from agents import Agent, FunctionTool, RunConfig, Runner
from agents.testing import assistant_message, function_call
from greenlet import getcurrent
from harness import CONTROL, Scripted, arguments, bars_of, finish, new_companion, over, tool_turn
from sqlalchemy import event

from agent.tracing import recorder
from agent.turn.context.prompt import PromptContext, build_messages_for_model
from hachi import Companion
from memory.audience import PRIVATE
from memory.process.breaker import utc_now
from tools.registry import TOOLS, Tool

BARS = {
    "ratio": 1.3,
    "recording": 1.05,
    "statements_reply": 12,
    "statements_after": 15,
    "transactions_reply": 3,
    "transactions_after": 4,
    "round_trips": 40,
}
COUNTED = ("statements", "transactions", "round_trips")
STEPS = ("receive", "build_context", "store")
"""Functions of a turn that query the database."""
TOOLS_STEP, AFTER = "tools, and what runs beside them", "after"
FACTS = 200
WARM_UP = 5
SAME_TOOLS, WHOLE_TURN = "bare loop, the same tools", "hachi"
SETTLED = "hachi, with its after-turn work"
LOT = 10
"""Turns whose traces are written together; under load there are more."""


def script() -> Scripted:
    """Return a model that searches, remembers and answers in a cycle, with ids of its own."""
    calls = count()

    def answer(*_: Any) -> Any:
        n, step = divmod(next(calls), 3)
        if step == 0:
            return function_call("search_memories", {"query": f"what about number {n}?"}, call_id=f"s{n}")
        if step == 1:
            fact = {"content": f"Ana counted to {n}.", "subjects": ["ana"], "ttl": "7d"}
            return function_call("remember", fact, call_id=f"r{n}")
        return assistant_message(json.dumps({"message": f"Number {n}, then.", "memories": []}))

    return Scripted(answer)


@asynccontextmanager
async def furnished(*users: str, **settings: Any) -> AsyncIterator[Companion]:
    """Yield a companion with facts of these people."""
    async with new_companion(settings, model=script()) as pet:
        for user in users:
            for n in range(FACTS):
                await pet.remember(f"Ana's shelf {n} holds {n + 3} books.", user=user, subjects=["ana"])
        await pet.admin.catch_up()
        yield pet


def bare_loop(pet: Companion) -> Callable[[str], Awaitable[None]]:
    """Return the SDK's loop with the five tools on the companion's memory, and nothing else."""

    def tool(one: Tool) -> FunctionTool:
        async def invoke(_context: Any, written: str) -> str:
            return (await one.call(tool_turn(pet, "bare"), written)).text

        return FunctionTool(one.name, one.description, one.schema, invoke, strict_json_schema=False)

    tools: list[Any] = [tool(one) for one in TOOLS]
    config = RunConfig(model=script(), tracing_disabled=True)

    async def turn(text: str) -> None:
        system, *rest = build_messages_for_model(PromptContext(utc_now(), "ana", PRIVATE, (), text))
        agent = Agent[None](name="bare", instructions=system["content"], tools=tools)
        await Runner.run(agent, rest, max_turns=5, run_config=config)  # type: ignore[arg-type]

    return turn


async def keep_exchange(pet: Companion, user: str, said: str, answered: str) -> None:
    """Store a message and its reply for a person whose turns Hachi does not run. Messages are most of what a
    search reads, so this makes the tools search as much in both loops."""
    lines = {"user": (user, said), "assistant": ("hachi", answered)}
    told = [
        {"role": role, "author": author, "text": text, "sent_at": pet.clock()}
        for role, (author, text) in lines.items()
    ]
    await pet.conversations.import_messages(told, user=user)
    await pet.admin.catch_up()


async def compare(turns: int) -> dict[str, float]:
    """Return the median seconds of a turn for both loops, which take turns with each other."""
    times: dict[str, list[float]] = defaultdict(list)
    async with furnished("ana", "bare") as pet:
        bare = bare_loop(pet)
        for n in range(WARM_UP + turns):
            spent = []
            for step in (bare(f"turn {n}"), pet.respond(f"turn {n}", user="ana"), pet.settle()):
                began = time.process_time()
                await step
                spent.append(time.process_time() - began)
                await pet.admin.catch_up()  # so that neither loop indexes what the other stored
            await keep_exchange(pet, "bare", f"turn {n}", f"Number {n}, then.")
            if n >= WARM_UP:
                times[SAME_TOOLS].append(spent[0])
                times[WHOLE_TURN].append(spent[1])
                times[SETTLED].append(spent[1] + spent[2])
    return {name: statistics.median(found) for name, found in times.items()}


async def recording_cost(turns: int) -> float:
    """Return the cost of a turn with recording and writing its trace, relative to one without."""
    recorder.PAUSE = 3600.0  # traces are written when the code below says so
    async with AsyncExitStack() as closing:
        contents = {False: "off", True: "redacted"}
        pets = {
            on: await closing.enter_async_context(furnished("ana", trace_content=content))
            for on, content in contents.items()
        }
        spent = {False: 0.0, True: 0.0}
        for n in range(LOT + turns):
            for on in (False, True) if n % 2 else (True, False):
                began = time.process_time()
                await pets[on].respond(f"turn {n}", user="ana")
                await (await pets[on].runtime()).worker.settle()
                if n % LOT == LOT - 1:  # the first time includes the setup's traces, not counted
                    await pets[on].components.recorder.flush()
                spent[on] += (time.process_time() - began) * (n >= LOT)
    return spent[True] / spent[False]


async def statements(turns: int, url: str | None = None) -> dict[str, dict[str, float]]:
    """Return the median number of statements, writing transactions and round trips of each step of a turn. On
    PostgreSQL the begin and end of a transaction are round trips too."""
    counted: dict[str, list[Counter[str]]] = defaultdict(list)
    other = TOOLS_STEP

    def executed(connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if not statement.startswith(CONTROL):
            counted[step_here() or other][-1].update(statements=1, round_trips=1)

    def committed(connection: Any) -> None:
        if connection.get_execution_options().get("hachi_write"):
            counted[step_here() or other][-1].update(transactions=1, round_trips=2 if url else 0)

    async with furnished("ana", trace_content="off", database_url=url) as pet:
        engine = pet.components.database.engine.sync_engine
        event.listen(engine, "before_cursor_execute", executed)
        event.listen(engine, "commit", committed)
        for n in range(WARM_UP + turns):
            for step in (*STEPS, TOOLS_STEP, AFTER):
                counted[step].append(Counter())
            other = TOOLS_STEP
            await pet.respond(f"turn {n}", user="ana")
            other = AFTER
            await pet.settle()
    return {
        step: {name: statistics.median(turn[name] for turn in all[WARM_UP:]) for name in COUNTED}
        for step, all in counted.items()
    }


def step_here() -> str:
    """Return the step of the turn that runs this statement; empty outside of the steps."""
    frame = getattr(getcurrent().parent, "gr_frame", None) or sys._getframe()
    step = ""
    while frame:
        name = frame.f_code.co_name
        if name in STEPS and "/agent/turn/" in frame.f_code.co_filename:
            step = name
        frame = frame.f_back
    return step


def measure(turns: int) -> dict[str, Any]:
    """Return all figures. A bar applies to the figure of the same name."""
    times, recording = asyncio.run(compare(turns)), asyncio.run(recording_cost(turns))
    databases = {"sqlite": None, "postgresql": os.environ.get("DATABASE_URL")}
    found = {
        name: asyncio.run(statements(min(turns, 5), url))
        for name, url in databases.items()
        if url or name == "sqlite"
    }
    most = {
        f"{name}_{part}": max(sum(steps[step][name] for step in of) for steps in found.values())
        for name in COUNTED
        for part, of in {"reply": (*STEPS, TOOLS_STEP), AFTER: (AFTER,)}.items()
    }
    return {
        "milliseconds": {name: 1000 * seconds for name, seconds in times.items()},
        "ratio": times[WHOLE_TURN] / times[SAME_TOOLS],
        "recording": recording,
        "statements": found,
        "round_trips": most["round_trips_reply"] + most["round_trips_after"],
        **most,
    }


def main() -> int:
    parser = arguments(__doc__, bars=True)
    parser.add_argument("--turns", type=int, default=100)
    options = parser.parse_args()
    bars, result = bars_of(options, BARS), measure(options.turns)
    return finish(options, result, over(bars, result))


if __name__ == "__main__":
    sys.exit(main())
