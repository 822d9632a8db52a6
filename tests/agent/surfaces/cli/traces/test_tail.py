import asyncio
import json
import signal
import sys
import time
from datetime import UTC, datetime

from agent.surfaces.cli.traces.tail import followed
from agent.tracing.redact import Redaction
from agent.tracing.serialization import Serializer
from agent.tracing.store import TraceFilter, Traces, this_process
from agent.tracing.trace import Summary
from memory.spans import Recording, Span
from memory.sql.engine import Database


def test_turns_of_another_process_are_followed_until_ctrl_c(hachi, process):
    hachi("chat", "-m", "I broke my shoulder", "--user", "ben")
    following = process("traces", "tail", "--json", "-n", "1", "--user", "ben")
    first = json.loads(following.stdout.readline())
    assert first["said"] == "I broke my shoulder"
    hachi("chat", "-m", "hello from ana", "--user", "ana")
    hachi("chat", "-m", "hello from ben", "--user", "ben")
    status = ""
    while status in ("", "running"):
        new = json.loads(following.stdout.readline())
        status = new["status"]
        assert new["said"] == "hello from ben"
    following.send_signal(signal.SIGINT)
    out, err = following.communicate(timeout=20)
    assert (following.returncode, err) == (0, b"")
    assert out == b""


def test_a_closed_pipe_ends_it(hachi, process):
    following = process("traces", "tail")
    assert following.stdout.readline().startswith(b"ID")
    following.stdout.close()
    end = time.monotonic() + 30
    number = 0
    while following.poll() is None and time.monotonic() < end:
        number += 1
        hachi("chat", "-m", f"hello {number}")
    assert following.returncode == 1
    assert b"Traceback" not in following.stderr.read()


async def test_a_running_turn_is_shown_again_when_it_ends_or_its_process_is_gone(tmp_path):
    gone = await asyncio.create_subprocess_exec(sys.executable, "-c", "")
    await gone.wait()
    database = await Database.open(None, tmp_path)
    traces, now = Traces(database), datetime.now(UTC)

    async def write(number, ended, pid):
        recorded = Recording(f"trace_{number:032x}", Span("turn"))
        recorded.open = not ended
        by = Serializer("full", Redaction(), {}, "cli", pid)
        about = Summary(id=recorded.id, kind="turn", started_at=now, user=None, said=str(number))
        await traces.write([by.serialize(recorded, about)], now)

    here, killed = this_process(), f"{this_process().rpartition(':')[0]}:{gone.pid}-0"
    await write(1, True, here)
    following = followed(traces, TraceFilter(), 1, pause=0.01)
    heard = []
    try:
        async with asyncio.timeout(20):
            for number, ended, pid in (
                (1, True, here),
                (2, False, here),
                (2, True, here),
                (3, False, killed),
            ):
                await write(number, ended, pid)
                heard.append(await anext(following))
    finally:
        await following.aclose()
        await database.close()
    assert [(one.id[-1], one.status) for one in heard] == [
        ("1", "ok"),
        ("2", "running"),
        ("2", "ok"),
        ("3", "killed"),
    ]
