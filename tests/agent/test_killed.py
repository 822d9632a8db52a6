"""What is left when the process is killed in the middle of turns."""

import asyncio
import json
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from scripted_server import Call, Hang, ScriptedServer, answer

from agent.tracing.render.trace import SCREEN, trace_lines
from hachi import Companion, Settings, TraceFilter

TALKATIVE = Path(__file__).parent.parent / "doubles" / "talkative.py"
NAMES = ["Iris", "Noor", "Otto", "Pia", "Quin", "Rosa", "Sven", "Tara", "Udo", "Vera"]

Rows = Callable[..., list[dict[str, Any]]]
Act = Callable[[], object]


def told(number: int) -> str:
    return f"Ana's friend {NAMES[number % 10]} lives at number {number}"


@asynccontextmanager
async def talking(home: Path, url: str, manner: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Killed (SIGKILL) at the end of the block."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(TALKATIVE), str(home), url, manner, stdout=asyncio.subprocess.PIPE
    )
    try:
        yield process
    finally:
        process.kill()
        await process.communicate()


async def _acknowledged(process: asyncio.subprocess.Process, how_many: int) -> list[str]:
    """The ids of the replies that got out."""
    assert process.stdout is not None
    async with asyncio.timeout(60):
        return [(await process.stdout.readline()).split()[1].decode() for _ in range(how_many)]


async def _check(home: Path, ids: list[str], memories: set[str]) -> None:
    """All that was acknowledged is there, once."""
    async with Companion.open(Settings(home=home, embedder="bundled"), periodic_jobs=False) as pet:
        await pet.settle()
        listed = Counter(memory.content for memory in await pet.memories.list(user="ana"))
        assert memories <= listed.keys()
        assert set(listed.values()) <= {1}
        for content in memories:
            hits = [hit.content for hit in await pet.search_memories(content, user="ana", limit=30)]
            assert hits.count(content) == 1
        assert await pet.components.queue.counts() == (0, 0)
        async with pet.components.database.read() as connection:
            rows = await connection.exec_driver_sql("SELECT id FROM messages WHERE role = 'assistant'")
            written = Counter(row[0] for row in rows)
        assert set(ids) <= written.keys()


async def test_killed_in_the_middle_of_many_turns(
    home: Path, server: ScriptedServer, rows: Rows, end_claims: Act
) -> None:
    server.script(*[answer(f"Reply {number}", {"content": told(number)}) for number in range(500)])

    async with talking(home, server.url, "go on") as process:
        ids = await _acknowledged(process, 12)

    assert len(ids) == len(set(ids)) == 12
    end_claims()
    await _check(home, ids, {told(number) for number in range(12)})


async def test_killed_between_the_reply_and_what_comes_after_it(
    home: Path, server: ScriptedServer, rows: Rows, end_claims: Act
) -> None:
    server.script(answer("Reply", {"content": told(0)}, {"content": told(1)}))

    async with talking(home, server.url, "freeze") as process:
        ids = await _acknowledged(process, 1)
        work, _consolidate = rows("SELECT payload FROM work ORDER BY seq")
        assert [draft["content"] for draft in json.loads(work["payload"])["drafts"]] == [told(0), told(1)]
        assert rows("SELECT * FROM memories") == []

    end_claims()
    await _check(home, ids, {told(0), told(1)})
    await _check(home, ids, {told(0), told(1)})


async def test_killed_while_the_model_thinks(
    home: Path, server: ScriptedServer, rows: Rows, end_claims: Act
) -> None:
    server.script(answer("Reply 0", {"content": told(0)}), Hang())

    async with talking(home, server.url, "go on") as process:
        ids = await _acknowledged(process, 1)
        async with asyncio.timeout(30):
            while len(server.asked) < 2:  # noqa: ASYNC110
                await asyncio.sleep(0.02)

    assert [row["text"] for row in rows("SELECT text FROM messages ORDER BY seq")] == [
        "Story 0",
        "Reply 0",
        "Story 1",
    ], "what was heard is there, unanswered"
    end_claims()
    await _check(home, ids, {told(0)})


async def test_a_trace_says_where_its_turn_stood_when_it_was_killed(
    home: Path, server: ScriptedServer
) -> None:
    server.script(Call("search_memories", {"query": "story"}), Hang())
    async with Companion.open(Settings(home=home, embedder="bundled"), periodic_jobs=False) as pet:
        async with asyncio.timeout(60), talking(home, server.url, "go on"):
            while not await _waits_again(pet):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        [summary] = await pet.traces.list(TraceFilter(failed=True), pet.clock())
        assert (summary.status, summary.said) == ("killed", "Story 0")
        lines = list(map(str, trace_lines(await pet.traces.get("last", pet.clock()))))

    assert len(lines) <= SCREEN
    text = "\n".join(lines)
    assert 'search_memories(query="story")' in text
    assert "call 2  tiny  not ended" in text
    assert lines[-1] == "✗ unfinished: its process was killed while waiting for the model (call 2)"


async def _waits_again(pet: Companion) -> bool:
    """Whether the stored trace shows that the second call has begun."""
    running = await pet.traces.list(TraceFilter(), pet.clock())
    return bool(running and running[0].status == "running" and running[0].calls == 2)
