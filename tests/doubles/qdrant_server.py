"""A small Qdrant server on 127.0.0.1: what Hachi asks of its HTTP API, answered by Qdrant's engine (Edge).

    async with QdrantServer.running() as qdrant:
        ...                                       # with QDRANT_URL=qdrant.url
        await qdrant.kill()                       # connections are reset, and no new one is accepted
        await qdrant.start()                      # at the same address, with what it held
        qdrant.hang()                             # it accepts and does not answer …
        qdrant.go_on()                            # … until now
        qdrant.empty()                            # all its collections are gone

It runs in its own thread, which the engine blocks. Measurements with it say nothing about a real server's
speed.
"""

import asyncio
import json
import re
import tempfile
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, cast
from urllib.parse import unquote

from qdrant_edge import (
    CountRequest,
    Distance,
    EdgeConfig,
    EdgeShard,
    EdgeSparseVectorParams,
    EdgeVectorParams,
    FieldCondition,
    Filter,
    FloatIndexParams,
    IdfParams,
    KeywordIndexParams,
    MatchAny,
    Modifier,
    Point,
    Query,
    QueryBatchRequest,
    QueryRequest,
    RangeFloat,
    SearchParams,
    SparseVector,
    UpdateOperation,
    VectorStorageDatatype,
)

Answer = tuple[int, Any]


class QdrantServer:
    """Qdrant's HTTP API. Start it with `running`."""

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
        self._folder = tempfile.TemporaryDirectory(prefix="qdrant-")
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
            here._folder.cleanup()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def collections(self) -> list[str]:
        return sorted(self._shards)

    async def start(self) -> None:
        await self._there(self._start())

    async def kill(self) -> None:
        await self._there(self._kill())

    def hang(self) -> None:
        self._loop.call_soon_threadsafe(self._answering.clear)

    def go_on(self) -> None:
        self._loop.call_soon_threadsafe(self._answering.set)

    def empty(self) -> None:
        self._shards: dict[str, EdgeShard] = {}
        self.made: dict[str, Any] = {}
        """Collection → the parameters that created it, and its indexed fields."""
        self.fields: dict[str, dict[str, Any]] = {}

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
                except KeyError as error:
                    return 404, f"Collection {error} not found"
                except ValueError as error:
                    return 400, str(error)
        return 404, f"the small server does not know {method} {path}"

    def _named(self, _: Any) -> Any:
        return {"title": "the small server of the tests", "version": self.version}

    def _collections(self, _: Any) -> Any:
        return {"collections": [{"name": name} for name in self.collections]}

    def _exists(self, name: str, _: Any) -> Any:
        return {"exists": name in self._shards}

    def _described(self, name: str, _: Any) -> Any:
        points = self._shards[name].count(CountRequest(exact=True))
        vectors = {"dense": {"size": 4, "distance": "Cosine"}}
        config = {"params": {"vectors": vectors}, "hnsw_config": _HNSW, "optimizer_config": _OPTIMIZER}
        found = {"status": "green", "optimizer_status": "ok", "segments_count": 1, "points_count": points}
        return found | {"config": config, "payload_schema": self.fields[name]}

    def _create(self, name: str, given: dict[str, Any]) -> bool:
        if name in self._shards:
            raise ValueError(f"Collection `{name}` already exists!")
        dense = {
            lane: EdgeVectorParams(one["size"], Distance.Cosine, datatype=VectorStorageDatatype.Float16)
            for lane, one in given["vectors"].items()
        }
        sparse = {lane: EdgeSparseVectorParams(modifier=Modifier.Idf) for lane in given["sparse_vectors"]}
        folder = tempfile.mkdtemp(dir=self._folder.name)
        config = EdgeConfig(vectors=dense, sparse_vectors=sparse, max_search_threads=1, wal_enabled=False)
        self._shards[name] = EdgeShard.create(folder, config)
        self.made[name], self.fields[name] = given, {}
        return True

    def _delete(self, name: str, _: Any) -> bool:
        self.fields.pop(name, None)
        return bool(self._shards.pop(name, None))

    def _index_field(self, name: str, given: dict[str, Any]) -> Any:
        kind, field = given["field_schema"], given["field_name"]
        data_type = kind["type"] if isinstance(kind, dict) else kind
        params = KeywordIndexParams() if data_type == "keyword" else FloatIndexParams()
        self._shards[name].update(UpdateOperation.create_field_index(field, params))
        tenant = bool(isinstance(kind, dict) and kind.get("is_tenant"))
        self.fields[name][field] = {"data_type": data_type, "points": 0, "is_tenant": tenant}
        return _DONE

    def _put(self, name: str, given: dict[str, Any]) -> Any:
        points = [
            Point(one["id"], {lane: _vector(value) for lane, value in one["vector"].items()}, one["payload"])
            for one in given["points"]
        ]
        self._shards[name].update(UpdateOperation.upsert_points(points))
        return _DONE

    def _remove(self, name: str, given: dict[str, Any]) -> Any:
        self._shards[name].update(UpdateOperation.delete_points(given["points"]))
        return _DONE

    def _query(self, name: str, given: dict[str, Any]) -> Any:
        asked = QueryBatchRequest([_query_request(one) for one in given["searches"]])
        return [
            {"points": [_hit(point) for point in found]} for found in self._shards[name].query_batch(asked)
        ]

    def _count(self, name: str, given: dict[str, Any]) -> Any:
        return {"count": self._shards[name].count(CountRequest(exact=True))}

    def _retrieve(self, name: str, given: dict[str, Any]) -> Any:
        found = self._shards[name].retrieve(given["ids"], False, False)
        return [{"id": str(record.id)} for record in found]


_HNSW = {"m": 0, "ef_construct": 100, "full_scan_threshold": 10_000}
_OPTIMIZER = {
    "deleted_threshold": 0.2,
    "vacuum_min_vector_number": 1000,
    "default_segment_number": 0,
    "flush_interval_sec": 5,
}


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
    ("POST", f"{_OF_ONE}/points"): QdrantServer._retrieve,
}


def _vector(value: Any) -> Any:
    return SparseVector(value["indices"], value["values"]) if isinstance(value, dict) else value


def _query_request(asked: dict[str, Any]) -> QueryRequest:
    idf = (asked.get("params") or {}).get("idf")
    nearest = (asked.get("query") or {}).get("nearest")
    return QueryRequest(
        asked["limit"],
        query=nearest and Query.Nearest(_vector(nearest), using=asked["using"]),
        filter=_filter(asked["filter"]),
        params=idf and SearchParams(idf=IdfParams(corpus=_filter(idf["corpus"]))),
        with_payload=asked["with_payload"],
    )


def _filter(given: dict[str, Any]) -> Filter:
    return Filter(
        must=[
            FieldCondition(one["key"], match=MatchAny(one["match"]["any"]))
            if one.get("match")
            else FieldCondition(
                one["key"], range=RangeFloat(**{name: one["range"].get(name) for name in ("gt", "gte", "lt")})
            )
            for one in given["must"]
        ]
    )


def _hit(point: Any) -> dict[str, Any]:
    return {"id": str(point.id), "version": 0, "score": point.score, "payload": point.payload}


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
    said |= (
        result if isinstance(result, dict) and "version" in result else {}
    )  # Qdrant does not wrap this result
    body = json.dumps(said, default=lambda one: json.loads(one.model_dump_json(exclude_none=True))).encode()
    head = f"HTTP/1.1 {status} OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body
