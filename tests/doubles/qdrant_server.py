"""A small Qdrant server on 127.0.0.1: what Hachi asks of its HTTP API, over the client's in-process engine.

    async with QdrantServer.running() as qdrant:
        ...                                       # with QDRANT_URL=qdrant.url
        await qdrant.kill()                       # connections are reset, and no new one is accepted
        await qdrant.start()                      # at the same address, with what it held
        qdrant.hang()                             # it accepts and does not answer …
        qdrant.go_on()                            # … until now
        qdrant.empty()                            # all its collections are gone

It runs in a thread of its own, since the engine blocks it. Figures that are measured with it say nothing of
a real server's speed.
"""

import asyncio
import json
import re
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, cast
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray
from qdrant_client import QdrantClient, models
from qdrant_client.local import local_collection

Answer = tuple[int, Any]


class QdrantServer:
    """Start it with `running`."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        """Method and path of each request."""
        self.version = "1.19.0"
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._answering = asyncio.Event()
        self._listening: asyncio.Server | None = None
        self._open: dict[asyncio.StreamWriter, asyncio.Task[None]] = {}
        self.empty()

    @classmethod
    @asynccontextmanager
    async def running(cls) -> "AsyncIterator[QdrantServer]":
        here = cls()
        here._thread.start()
        here.go_on()
        try:
            await here.start()
            yield here
        finally:
            await here.kill()
            here._loop.call_soon_threadsafe(here._loop.stop)
            here._thread.join()
            here._loop.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def collections(self) -> list[str]:
        return sorted(found.name for found in self._engine.get_collections().collections)

    async def start(self) -> None:
        await self._there(self._start())

    async def kill(self) -> None:
        await self._there(self._kill())

    def hang(self) -> None:
        self._loop.call_soon_threadsafe(self._answering.clear)

    def go_on(self) -> None:
        self._loop.call_soon_threadsafe(self._answering.set)

    def empty(self) -> None:
        self._engine = QdrantClient(":memory:")
        self._fields: dict[str, dict[str, Any]] = {}

    async def _there(self, what: Any) -> None:
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(what, self._loop))

    async def _start(self) -> None:
        self._listening = await asyncio.start_server(self._serve, "127.0.0.1", self.port, backlog=512)
        self.port = self._listening.sockets[0].getsockname()[1]

    async def _kill(self) -> None:
        if self._listening is not None:
            self._listening.close()
            self._listening = None
        serving = list(self._open.items())
        for writer, _ in serving:
            writer.transport.abort()
        self._answering.set()
        await asyncio.gather(*(task for _, task in serving), return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open[writer] = cast("asyncio.Task[None]", asyncio.current_task())
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                while line := await reader.readline():
                    method, path, _ = line.decode().split()
                    headers = dict(_header(row) for row in iter(await _rows(reader)))
                    body = await reader.readexactly(int(headers.get("content-length", 0)))
                    self.asked.append(f"{method} {path}")
                    await self._answering.wait()
                    if writer.transport.is_closing():
                        return
                    status, result = self._answer(method, path.partition("?")[0], json.loads(body or b"{}"))
                    writer.write(_written(status, result))
                    await writer.drain()
        finally:
            del self._open[writer]
            writer.close()

    def _answer(self, method: str, path: str, given: dict[str, Any]) -> Answer:
        for (wanted, pattern), handle in _ROUTES.items():
            if wanted == method and (found := re.fullmatch(pattern, path)):
                name = [unquote(part) for part in found.groups()]
                try:
                    return 200, handle(self, *name, given)
                except ValueError as error:
                    return (404 if "not found" in str(error) else 400), str(error)
        return 404, f"the small server does not know {method} {path}"

    def _named(self, _: Any) -> Any:
        return {"title": "the small server of the tests", "version": self.version}

    def _collections(self, _: Any) -> Any:
        return self._engine.get_collections()

    def _exists(self, name: str, _: Any) -> Any:
        return {"exists": self._engine.collection_exists(name)}

    def _described(self, name: str, _: Any) -> Any:
        info = json.loads(self._engine.get_collection(name).model_dump_json())
        return info | {"payload_schema": self._fields.setdefault(name, {})}

    def _create(self, name: str, given: dict[str, Any]) -> bool:
        if self._engine.collection_exists(name):
            raise ValueError(f"Collection `{name}` already exists!")
        made = models.CreateCollection.model_validate(given)
        return self._engine.create_collection(
            name,
            vectors_config=made.vectors,
            sparse_vectors_config=made.sparse_vectors,
            hnsw_config=made.hnsw_config,
            metadata=made.metadata,
        )

    def _delete(self, name: str, _: Any) -> bool:
        self._fields.pop(name, None)
        return self._engine.delete_collection(name)

    def _index_field(self, name: str, given: dict[str, Any]) -> Any:
        self._described(name, given)  # it exists
        kind = given["field_schema"]
        data_type = kind["type"] if isinstance(kind, dict) else kind
        self._fields[name][given["field_name"]] = {"data_type": data_type, "points": 0}
        return _DONE

    def _put(self, name: str, given: dict[str, Any]) -> Any:
        points = models.PointsList.model_validate(given).points
        self._engine.upsert(name, points)
        return _DONE

    def _remove(self, name: str, given: dict[str, Any]) -> Any:
        self._engine.delete(name, models.PointIdsList.model_validate(given))
        return _DONE

    def _query(self, name: str, given: dict[str, Any]) -> Any:
        return self._engine.query_batch_points(name, models.QueryRequestBatch.model_validate(given).searches)

    def _count(self, name: str, given: dict[str, Any]) -> Any:
        wanted = models.CountRequest.model_validate(given)
        return self._engine.count(name, count_filter=wanted.filter, exact=bool(wanted.exact))

    def _retrieve(self, name: str, given: dict[str, Any]) -> Any:
        asked = models.PointRequest.model_validate(given)
        return self._engine.retrieve(
            name, asked.ids, with_payload=asked.with_payload or False, with_vectors=asked.with_vector or False
        )

    def _scroll(self, name: str, given: dict[str, Any]) -> Any:
        asked = models.ScrollRequest.model_validate(given)
        points, after = self._engine.scroll(
            name,
            scroll_filter=asked.filter,
            limit=asked.limit or 10,
            offset=asked.offset,
            with_payload=asked.with_payload or False,
            with_vectors=asked.with_vector or False,
        )
        return {"points": points, "next_page_offset": after}


_DONE = {"operation_id": 1, "status": "completed"}
_OF_ONE = "/collections/([^/]+)"
_ROUTES: dict[tuple[str, str], Callable[..., Any]] = {
    ("GET", "/"): QdrantServer._named,
    ("GET", "/collections"): QdrantServer._collections,
    ("GET", f"{_OF_ONE}/exists"): QdrantServer._exists,
    ("GET", _OF_ONE): QdrantServer._described,
    ("PUT", _OF_ONE): QdrantServer._create,
    ("DELETE", _OF_ONE): QdrantServer._delete,
    ("PUT", f"{_OF_ONE}/index"): QdrantServer._index_field,
    ("PUT", f"{_OF_ONE}/points"): QdrantServer._put,
    ("POST", _OF_ONE + "/points/delete"): QdrantServer._remove,
    ("POST", _OF_ONE + "/points/query/batch"): QdrantServer._query,
    ("POST", _OF_ONE + "/points/count"): QdrantServer._count,
    ("POST", _OF_ONE + "/points/scroll"): QdrantServer._scroll,
    ("POST", f"{_OF_ONE}/points"): QdrantServer._retrieve,
}


def _accepted(payloads: list[dict[str, Any]], payload_filter: Any, **_: Any) -> "NDArray[np.bool_]":
    """Which payloads meet the filter, whose conditions are all on fields at the top. The client's own
    function reads the names of fields anew for each payload: nine tenths of the time of a search."""
    found = np.ones(len(payloads), dtype=bool)
    for condition in payload_filter.must if payload_filter else ():
        meeting = (_meets(condition, payload.get(condition.key)) for payload in payloads)
        found &= np.fromiter(meeting, dtype=bool, count=len(payloads))
    return found


def _meets(condition: models.FieldCondition, value: Any) -> bool:
    if isinstance(condition.match, models.MatchAny):
        return not {*condition.match.any}.isdisjoint(value if isinstance(value, list) else [value])
    bounds = condition.range
    assert isinstance(bounds, models.Range), condition
    return (
        (bounds.gt is None or value > bounds.gt)
        and (bounds.gte is None or value >= bounds.gte)
        and (bounds.lt is None or value < bounds.lt)
    )


local_collection.calculate_payload_mask = _accepted


async def _rows(reader: asyncio.StreamReader) -> list[bytes]:
    rows = []
    while (row := await reader.readline()).strip():
        rows.append(row)
    return rows


def _header(row: bytes) -> tuple[str, str]:
    name, _, value = row.decode().partition(":")
    return name.strip().lower(), value.strip()


def _written(status: int, result: Any) -> bytes:
    said: dict[str, Any] = {"time": 0.0}
    said |= {"result": result, "status": "ok"} if status == 200 else {"status": {"error": result}}
    said |= result if isinstance(result, dict) and "version" in result else {}  # which Qdrant does not wrap
    body = json.dumps(said, default=lambda one: json.loads(one.model_dump_json(exclude_none=True))).encode()
    head = f"HTTP/1.1 {status} OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body
