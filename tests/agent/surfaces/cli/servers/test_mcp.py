"""`hachi mcp`, as a process of its own, and the SDK's client with it."""

import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

Hachi = Callable[..., Any]
Process = Callable[..., "subprocess.Popen[bytes]"]


def started(home: Path, *args: str) -> StdioServerParameters:
    """As a desktop program is told to start it."""
    command = ["-m", "agent.surfaces.cli", "mcp", *args]
    settings = {"HACHI_HOME": str(home), "HACHI_EMBEDDER": "bundled"}
    return StdioServerParameters(command=sys.executable, args=command, env=settings)


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return result.structured_content


async def test_a_program_that_starts_it_has_the_memory_of_one_person(home: Path) -> None:
    async with Client(started(home, "--user", "ana")) as ana:
        tools = {tool.name for tool in (await ana.list_tools()).tools}
        kept = await call(ana, "remember", content="Ana has a red boat")
        found = await call(ana, "search_memories", query="red boat")
        assert [hit["id"] for hit in found["memories"]] == [kept["id"]]
        await call(ana, "update_task", description="paint the boat")
        assert len((await call(ana, "list_tasks"))["tasks"]) == 1
        assert (await call(ana, "search_knowledge", query="boats")) == {"passages": []}
        assert (await ana.read_resource("hachi://context")).contents
        with pytest.raises(MCPError, match="there is no tool"):
            await ana.call_tool("nonsense", {})
        async with Client(started(home, "--user", "ana", "--place", "acme/general"), mode="legacy") as there:
            assert (await call(there, "get_recent_memories")) == {"memories": []}
        await call(ana, "forget", id=kept["id"])
        assert (await call(ana, "get_recent_memories")) == {"memories": []}
    assert {"search_memories", "remember", "update_task", "forget"} <= tools
    assert "Traceback" not in (home / "hachi.log").read_text()


def test_nothing_but_the_protocol_is_on_stdout(process: Process, home: Path) -> None:
    running = process("--verbose", "mcp", "--user", "ana")
    out, err = running.communicate(
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",'
        b'"capabilities":{},"clientInfo":{"name":"test","version":"1"}}}\n'
        b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
        b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"remember",'
        b'"arguments":{"content":"Ana has a red boat"}}}\n',
        timeout=30,
    )
    assert running.returncode == 0
    assert [line[:15] for line in out.splitlines()] == [b'{"jsonrpc":"2.0'] * 2
    assert b"memory_decision" in err


@pytest.fixture
def keys(hachi: Hachi) -> list[Any]:
    return [hachi("keys", "create", user, "--user", user, "--json").json for user in ("ana", "ben")]


async def test_over_http_a_key_says_whose_memory_it_is(process: Process, keys: list[Any]) -> None:
    running = process("mcp", "--http", "0", "--allow-host", "hachi.example")
    assert running.stderr is not None
    listening = re.search(rb"listening on (http://\S+/mcp);", running.stderr.readline())
    assert listening is not None
    url = listening[1].decode()
    known = []
    for key in keys:
        headers = {"authorization": f"Bearer {key['key']}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=20, trust_env=False) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            await call(client, "remember", content=f"{key['user'].title()} has a red boat")
            found = (await call(client, "get_recent_memories"))["memories"]
            known.append([memory["content"] for memory in found])
            proxied = await http.post(url, headers={"host": "hachi.example"}, json={})
            assert proxied.status_code == 400  # and not 421
    assert known == [["Ana has a red boat"], ["Ben has a red boat"]]

    running.send_signal(signal.SIGTERM)
    assert running.wait(20) == 0
    assert running.stderr.read() == b"hachi: stopped\n"
