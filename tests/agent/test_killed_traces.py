"""What a turn leaves behind whose process is killed in the middle of it."""

import asyncio
import sys
from pathlib import Path

import pytest
from scripted_server import Call, Hang, ScriptedServer

from agent.tracing.filters import TraceFilter
from agent.tracing.render.trace import SCREEN, overview_lines
from hachi import Companion, Settings

TALKATIVE = Path(__file__).parent.parent / "doubles" / "talkative.py"


@pytest.mark.slow
async def test_killed_while_the_model_thinks(home: Path, server: ScriptedServer) -> None:
    """What was done until then is there, and where it stood."""
    server.script(Call("search_memories", {"query": "story"}), Hang())
    settings = Settings(home=home, embedder="bundled")
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(TALKATIVE), str(home), server.url, "go on", stdout=asyncio.subprocess.PIPE
    )
    async with Companion.open(settings, upkeep=False) as pet, asyncio.timeout(60):
        try:
            while not await _waits_again(pet):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        finally:
            process.kill()
            await process.communicate()
        [summary] = await pet.traces.list(TraceFilter(failed=True), pet.clock())
        assert (summary.status, summary.said) == ("killed", "Story 0")
        trace = await pet.traces.get("last", pet.clock())
        lines = list(map(str, overview_lines(trace)))

    assert len(lines) <= SCREEN
    text = "\n".join(lines)
    assert 'search_memories(query="story")' in text
    assert "call 2  tiny  not ended" in text
    assert lines[-1] == "✗ unfinished: its process was killed while waiting for the model (call 2)"


async def _waits_again(pet: Companion) -> bool:
    """Whether the stored trace shows that the second call has begun."""
    running = await pet.traces.list(TraceFilter(), pet.clock())
    return bool(running and running[0].status == "running" and running[0].calls == 2)
