"""Transports to an MCP server, with a limit on what it may send: a server that floods is cut off.

The library's own transport over stdin and stdout buffers an endless line, and logs each line that is no
message.
"""

import os
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

import anyio
import httpx2
from anyio.abc import ObjectReceiveStream, ObjectSendStream, Process
from anyio.lowlevel import checkpoint
from anyio.streams.buffered import BufferedByteReceiveStream
from mcp.client.stdio import get_default_environment
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest, jsonrpc_message_adapter
from pydantic import ValidationError

from agent.turn.mcp_servers.file import McpServer

TransportStreams = tuple[Any, Any]
"""The streams from which the library reads messages, and to which it writes them."""
MOST_BYTES = 8_000_000
"""The most that a server may send after each request to it, and in one response over HTTP."""
FOR_A_MESSAGE = 4_000
"""Bytes added to the size of each message, since reading one takes time."""
ENDS_WITHIN = 2.0
"""Seconds for a process to end once its stdin is closed; then it is killed."""
_CLOSED = (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError)


def transport_of(server: McpServer) -> AbstractAsyncContextManager[TransportStreams]:
    """Return the transport to the server."""
    return _over_http(server) if server.url else _over_stdio(server)


class _Quota:
    """How many bytes a server may still send before the next request to it."""

    def __init__(self) -> None:
        self.left = MOST_BYTES


@asynccontextmanager
async def _over_stdio(server: McpServer) -> AsyncIterator[TransportStreams]:
    process = await anyio.open_process(
        [server.command, *server.args],
        env=get_default_environment() | server.env,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    to_us, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    sent, from_us = anyio.create_memory_object_stream[SessionMessage](0)
    quota = _Quota()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_read, process, to_us, quota)
        tasks.start_soon(_write, process, from_us, quota)
        try:
            yield received, sent
        finally:
            tasks.cancel_scope.cancel()
            with anyio.CancelScope(shield=True):
                await _end(process)


async def _read(process: Process, to_us: ObjectSendStream[SessionMessage | Exception], quota: _Quota) -> None:
    """Pass on each line that is a message, until the server ends or has sent too much."""
    assert process.stdout
    lines = BufferedByteReceiveStream(process.stdout)
    ends = (anyio.EndOfStream, anyio.IncompleteRead, anyio.DelimiterNotFound, *_CLOSED)
    async with to_us:
        with suppress(*ends):
            while quota.left > 0:
                line = await lines.receive_until(b"\n", MOST_BYTES)
                quota.left -= len(line) + FOR_A_MESSAGE
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValidationError:
                    await checkpoint()  # skip what is no message
                    continue
                await to_us.send(SessionMessage(message))


async def _write(process: Process, from_us: ObjectReceiveStream[SessionMessage], quota: _Quota) -> None:
    assert process.stdin
    with suppress(*_CLOSED):
        async with from_us:
            async for one in from_us:
                if isinstance(one.message, JSONRPCRequest):  # only a request of ours refills the quota
                    quota.left = MOST_BYTES
                text = one.message.model_dump_json(by_alias=True, exclude_unset=True)
                await process.stdin.send(f"{text}\n".encode())


async def _end(process: Process) -> None:
    """Close its stdin, and kill it with its children if it does not end."""
    assert process.stdin
    with suppress(*_CLOSED):
        await process.stdin.aclose()
    with anyio.move_on_after(ENDS_WITHIN):
        await process.wait()
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    with anyio.move_on_after(ENDS_WITHIN):
        await process.aclose()


@asynccontextmanager
async def _over_http(server: McpServer) -> AsyncIterator[TransportStreams]:
    async with (
        httpx2.AsyncClient(
            headers={**server.headers, "Accept-Encoding": "identity"},
            timeout=httpx2.Timeout(30, read=300),
            event_hooks={"response": [_bound]},
        ) as client,
        streamable_http_client(server.url, http_client=client) as streams,
    ):
        yield streams


async def _bound(response: httpx2.Response) -> None:
    if response.headers.get("content-encoding", "identity") != "identity":
        raise httpx2.StreamError("it sends compressed data, which it was not asked for")
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    response.stream = _Bounded(response.stream)


class _Bounded(httpx2.AsyncByteStream):
    """The body of a response up to `MOST_BYTES`."""

    def __init__(self, body: httpx2.AsyncByteStream) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = MOST_BYTES
        async for piece in self._body:
            left -= len(piece) + FOR_A_MESSAGE * piece.count(b"\ndata:")
            if left < 0:
                raise httpx2.StreamError("it sends too much")
            yield piece

    async def aclose(self) -> None:
        await self._body.aclose()
