"""What does a turn cost, beside waiting for the model?

    python benchmarks/turn.py [--turns N]

The same scripted model and the same tools are run one after the other: by the Agents SDK's loop alone, and by
Hachi, with transcript, context, reply and queue around it. The script searches, remembers and answers in
three calls; its answers are scripted, so the figure says nothing of a real model. The ratio that counts is to
the bare loop with the same tools at work on a memory of the same size; beside it stands the ratio to a loop
whose tools answer at once from nothing. Then the same turns with the recording of traces on and off. All of
this is processor time, which includes the threads that write and leaves out what else the machine does.

Then the SQL statements of a turn, before the reply and in the work after it, each with the function that ran
it, without traces, which are written in batches. Then how long a person waits: `hachi --help`, and the first
prompt of `hachi chat`. Prints JSON. Exit 1 where one of `BARS` is missed.
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
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from agents import Agent, FunctionTool, ModelResponse, RunConfig, Runner, Usage
from agents.models.interface import Model
from agents.testing import assistant_message, function_call
from greenlet import getcurrent
from sqlalchemy import event

from agent.tracing import recorder
from agent.turn.prompt import PromptContext, build_messages_for_model
from agent.wiring.components import utc_now
from hachi import Companion, Settings
from memory.audience import PRIVATE
from memory.process.spans import new_id
from memory.records import Message
from tools.context import TurnContext
from tools.registry import TOOLS, Tool

HACHI = [sys.executable, "-m", "hachi"]
BARS = {"ratio": 1.3, "recording": 1.05, "reply": 15, "after": 24, "help_seconds": 0.4, "prompt_seconds": 1.0}
FACTS = 200
WARM_UP = 5
SAME_TOOLS, EMPTY_TOOLS = "bare loop, the same tools", "bare loop, tools that do nothing"
WHOLE_TURN, SETTLED = "hachi", "hachi, with its after-turn work"
LOT = 10
"""Turns whose traces are written together; under load they are more."""
ROOT = Path(__file__).parent.parent
PASSED_OVER = ("benchmarks", "memory/sql/engine/", "memory/process/spans.py", "tools/registry.py")
"""Frames that say nothing about where a statement comes from."""
CONTROL = ("BEGIN", "COMMIT", "ROLLBACK", "PRAGMA", "SAVEPOINT")


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


@asynccontextmanager
async def furnished(*users: str, traces: bool = True) -> AsyncIterator[Companion]:
    """A companion with facts of these people."""
    with tempfile.TemporaryDirectory() as home:
        settings = Settings.load(home=Path(home), embedder="bundled", traces=traces)
        async with Companion.open(settings, model=Script(), upkeep=False) as pet:
            for user in users:
                for n in range(FACTS):
                    await pet.remember(f"Ana's shelf {n} holds {n + 3} books.", user=user, subjects=["ana"])
            await pet.admin.catch_up()
            yield pet


def bare_loop(call: Callable[[Tool, str], Awaitable[str]]) -> Callable[[str], Awaitable[None]]:
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
    parts = pet.components

    async def not_later(*_: Any) -> None:
        raise RuntimeError("nothing is left for later here")

    async def call(tool: Tool, written: str) -> str:
        turn = TurnContext(
            "bare", PRIVATE, "", None, frozenset(), pet.clock, parts.recall, parts.writer,
            accept=not_later, accept_task=not_later, tasks=parts.tasks, knowledge=parts.documents,
        )  # fmt: skip
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


async def compare(turns: int) -> dict[str, float]:
    """Median seconds of a turn, the three taking turns with each other."""
    times: dict[str, list[float]] = defaultdict(list)
    async with furnished("ana", "bare") as pet:
        empty, same = bare_loop(answer_nothing), bare_loop(answer_from(pet))
        for n in range(WARM_UP + turns):
            marks = [time.process_time()]
            steps = empty(f"turn {n}"), same(f"turn {n}"), pet.respond(f"turn {n}", user="ana"), pet.settle()
            for step in steps:
                await step
                marks.append(time.process_time())
            await keep_exchange(pet, "bare", f"turn {n}", f"Number {n}, then.")
            if n >= WARM_UP:
                for at, name in enumerate((EMPTY_TOOLS, SAME_TOOLS, WHOLE_TURN)):
                    times[name].append(marks[at + 1] - marks[at])
                times[SETTLED].append(marks[4] - marks[2])
    return {name: statistics.median(found) for name, found in times.items()}


async def recording_cost(turns: int) -> dict[str, float]:
    """How many times what a turn costs without recording it costs with it: until the reply, and in all."""
    recorder.PAUSE = 3600.0  # here it is said below when traces are written
    async with AsyncExitStack() as closing:
        pets = {on: await closing.enter_async_context(furnished("ana", traces=on)) for on in (False, True)}
        replies: dict[bool, list[float]] = {False: [], True: []}
        whole: dict[bool, list[float]] = {False: [], True: []}
        for n in range(WARM_UP + turns):
            for on in (False, True) if n % 2 else (True, False):
                began = time.process_time()
                await pets[on].respond(f"turn {n}", user="ana")
                replied = time.process_time()
                await (await pets[on].runtime()).worker.settle()
                if n % LOT == LOT - 1:
                    await pets[on].components.recorder.flush()
                if n >= WARM_UP:
                    replies[on].append(replied - began)
                    whole[on].append(time.process_time() - began)
    return {
        "until_the_reply": statistics.median(replies[True]) / statistics.median(replies[False]),
        "in_all": sum(whole[True]) / sum(whole[False]),
    }


async def statements(turns: int) -> dict[str, Any]:
    """Of the reply and what comes after it: the median number of statements and of writing transactions of a
    turn, and the statements of the last turn by their origin."""
    counted: dict[str, list[tuple[int, int]]] = {"reply": [], "after": []}
    last: dict[str, Counter[str]] = {}
    found: Counter[str] = Counter()

    def executed(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if not statement.startswith(CONTROL):
            found[f"{origin()}: {' '.join(statement.split())[:40]}"] += 1

    async with furnished("ana", traces=False) as pet:
        database = pet.components.database
        event.listen(database.engine.sync_engine, "before_cursor_execute", executed)
        for n in range(WARM_UP + turns):
            for part in counted:
                found, before = Counter(), database.writes
                await (pet.respond(f"turn {n}", user="ana") if part == "reply" else pet.settle())
                if n >= WARM_UP:
                    counted[part].append((found.total(), database.writes - before))
                last[part] = found
    return {
        part: {
            "statements": statistics.median(number for number, _ in numbers),
            "transactions": statistics.median(writes for _, writes in numbers),
            "by_origin": dict(sorted(last[part].items())),
        }
        for part, numbers in counted.items()
    }


def origin() -> str:
    """The two innermost functions of Hachi that are waiting for this statement, the caller first."""
    frame = getattr(getcurrent().parent, "gr_frame", None) or sys._getframe()
    found: list[str] = []
    while frame and len(found) < 2:
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(ROOT) and ".venv" not in path.parts:
            module = str(path.relative_to(ROOT))
            if not module.startswith(PASSED_OVER):
                found.append(f"{module}:{frame.f_code.co_name}")
        frame = frame.f_back
    return " > ".join(reversed(found))


def until_help(home: str) -> float:
    started = time.perf_counter()
    subprocess.run([*HACHI, "--help"], check=True, stdout=subprocess.DEVNULL, env=_environment(home))
    return time.perf_counter() - started


def until_prompt(home: str) -> float:
    """From the start of the process to the first prompt on a terminal."""
    ours, theirs = pty.openpty()
    started = time.perf_counter()
    command = [*HACHI, "chat", "--user", "ana"]
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=_environment(home)
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
    """All figures; `BARS` are held against those of the same name."""
    times, recording = asyncio.run(compare(turns)), asyncio.run(recording_cost(turns))
    counted = asyncio.run(statements(min(turns, 5)))
    with tempfile.TemporaryDirectory() as home:
        until_prompt(home)  # makes the home, and warms the file cache
        starts = [statistics.median(start(home) for _ in range(5)) for start in (until_help, until_prompt)]
    return {
        "milliseconds": {name: 1000 * seconds for name, seconds in times.items()},
        "ratio": times[WHOLE_TURN] / times[SAME_TOOLS],
        "ratio_to_empty_tools": times[WHOLE_TURN] / times[EMPTY_TOOLS],
        "recording_until_the_reply": recording["until_the_reply"],
        "recording": recording["in_all"],
        "statements": counted,
        **{part: found["statements"] for part, found in counted.items()},
        "help_seconds": starts[0],
        "prompt_seconds": starts[1],
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=100)
    result = measure(parser.parse_args().turns)
    print(json.dumps(result, indent=2))
    missed = [
        f"{name} is {result[name]:.3g}, not {bar:g}" for name, bar in BARS.items() if result[name] > bar
    ]
    print("; ".join(missed) or "every bar is reached", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
