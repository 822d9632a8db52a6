"""Over stdin and stdout, in this process: pipes stand for both."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from agent.surfaces.mcp import stdio
from agent.surfaces.mcp.tools import Identity
from hachi import Companion


class Program:
    """Who started the server, and speaks with it a line at a time."""

    def __init__(self, pet: Companion, user: str, patch: pytest.MonkeyPatch) -> None:
        heard, self._to = os.pipe()
        self._from, said = os.pipe()
        self._files = [os.fdopen(heard, "r"), os.fdopen(said, "w")]
        patch.setattr(sys, "stdin", self._files[0])
        patch.setattr(sys, "stdout", self._files[1])
        self.serving = asyncio.create_task(stdio.serve_stdio(pet, Identity(user)))

    def write(self, data: bytes) -> None:
        os.write(self._to, data)

    def send(self, method: str, id: int | None = None, **params: Any) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params} | ({"id": id} if id else {})
        self.write(json.dumps(message, ensure_ascii=False).encode() + b"\n")

    def hello(self) -> None:
        client = {"name": "test", "version": "1"}
        self.send("initialize", 1, protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
        self.send("notifications/initialized")

    def stop_writing(self) -> None:
        if self._to >= 0:
            os.close(self._to)
            self._to = -1

    async def ended(self) -> list[Any]:
        """Everything that was answered by the time the server has ended."""
        async with asyncio.timeout(60):
            await self.serving
        self._files[1].flush()
        return [json.loads(line) for line in os.read(self._from, 1_000_000).splitlines()]

    def close(self) -> None:
        self.stop_writing()
        for file in self._files:
            file.close()
        os.close(self._from)


@pytest_asyncio.fixture(loop_scope="session")
async def program(shared: Companion, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Program]:
    started = Program(shared, "ana", monkeypatch)
    yield started
    started.close()


async def test_what_was_asked_is_answered_though_stdin_ends(program: Program) -> None:
    program.hello()
    program.send("tools/call", 2, name="remember", arguments={"content": "Ana has a red boat"})
    program.stop_writing()
    hello, kept = await program.ended()
    assert hello["result"]["serverInfo"]["name"] == "hachi"
    assert kept["result"]["structuredContent"]["action"] == "add"


async def test_a_line_that_is_no_message_ends_nothing(program: Program) -> None:
    program.hello()
    program.write(b"hello?\n\n\xff\xfe\n[]\n")
    program.send("tools/call", 2, name="list_tasks", arguments={})
    program.stop_writing()
    answers = await program.ended()
    assert answers[-1]["result"]["structuredContent"] == {"tasks": []}


async def test_a_signal_ends_it_though_nobody_closes_stdin(program: Program) -> None:
    program.hello()
    assert b'"hachi"' in await asyncio.to_thread(os.read, program._from, 100_000)
    os.kill(os.getpid(), signal.SIGTERM)
    async with asyncio.timeout(60):
        await program.serving


async def test_an_answer_that_takes_too_long_is_not_waited_for(program, monkeypatch) -> None:
    monkeypatch.setattr(stdio, "GRACE", 0.2)
    monkeypatch.setattr("memory.people.tasks.Tasks.list", lambda *_, **__: asyncio.sleep(60))
    program.hello()
    program.send("tools/call", 2, name="list_tasks", arguments={})
    program.stop_writing()
    answers = await program.ended()
    assert answers[-1]["error"]["message"] == "Connection closed"
