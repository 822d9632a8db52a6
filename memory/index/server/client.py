"""Make Qdrant's client, and convert points, questions and errors to and from its types."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memory.errors import IndexUnavailable
from memory.index import DENSE, KINDS, SPARSE, Point, Question, Ranked, Rankings, bm25
from memory.index.engine import keys_of
from memory.index.scoring import best

if TYPE_CHECKING:
    from qdrant_client import AsyncQdrantClient, models

TIMEOUT = 10
"""Seconds that one request may take."""
ANSWERED = frozenset({400, 404, 409, 413, 422})
"""HTTP statuses of errors that a working server sends."""
FIELDS = {
    "owners": "tenant",
    "kind": "keyword",
    "subjects": "keyword",
    "created_at": "number",
    "expires_at": "number",
}
"""The payload fields with an index, because filters use them."""
NEVER = 253_402_300_800.0
"""`expires_at` of a point that never expires: the end of the year 9999. This saves a second condition."""
MARK = "00000000-0000-4000-8000-000000000000"
"""The id of the point with the mark."""


def connect(url: str, api_key: str | None) -> "AsyncQdrantClient":
    from httpx import Limits
    from qdrant_client import AsyncQdrantClient

    class Client(AsyncQdrantClient):
        def _resolve_query_batch_request(self, requests: Any) -> Any:
            """Return the requests unchanged, because the client's own method copies them number by number."""
            return requests

    try:
        return Client(
            url=url,
            api_key=api_key,
            timeout=TIMEOUT,
            check_compatibility=False,  # the check would block until the server answers
            cloud_inference=True,  # otherwise it searches requests for texts to embed
            limits=Limits(),  # otherwise it opens a connection for each request to this machine
        )
    except ValueError as error:
        raise IndexUnavailable(f"QDRANT_URL {url!r} cannot be read as an address: {error}") from error


def faults() -> tuple[type[Exception], ...]:
    """Return the exceptions of the client for a server that is unreachable or refuses a request."""
    from qdrant_client.common.client_exceptions import QdrantException
    from qdrant_client.http.exceptions import ApiException

    return (ApiException, QdrantException, OSError)


def status(error: BaseException) -> int | None:
    return getattr(error, "status_code", None)


def reason(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    text = str(getattr(error, "source", error))
    return (text.strip().splitlines() or [type(error).__name__])[0]


def is_at_least(version: str, wanted: tuple[int, int]) -> bool:
    """Return whether a version such as ``1.19.2`` is at least `wanted`."""
    return tuple(int(part) for part in version.split(".")[:2] if part.isdigit()) >= wanted


def point_struct(point: Point) -> "models.PointStruct":
    from qdrant_client import models

    dense = {"dense": point.dense, "window_dense": point.window_dense}
    vectors: dict[str, Any] = {lane: as_list(vector) for lane, vector in dense.items() if vector is not None}
    vectors = {lane: vector for lane, vector in vectors.items() if any(vector)}
    words = {"words": bm25.document(point.text)}
    if point.window_text is not None:
        words["window_words"] = bm25.document(point.window_text, bm25.AVERAGE_WINDOW)
    vectors |= {lane: _sparse(weights) for lane, weights in words.items() if weights}
    payload = {
        "owners": keywords(point.owners),
        "kind": point.kind,
        "subjects": keywords(point.subjects),
        "created_at": point.created_at.timestamp(),
        "expires_at": NEVER if point.expires_at is None else point.expires_at.timestamp(),
    }
    return models.PointStruct(id=point.id, vector=vectors, payload=payload)


def requests(questions: Sequence[Question]) -> "list[tuple[str, models.QueryRequest]]":
    """Return the lanes to search, each with its request."""
    from qdrant_client import models

    found = []
    for one in questions:
        lanes: dict[str, Any] = {}
        if one.dense is not None and any(vector := as_list(one.dense)):
            lanes |= dict.fromkeys(DENSE, vector)
        if one.text is not None and (words := bm25.query(one.text)):
            lanes |= dict.fromkeys(SPARSE, _sparse(dict.fromkeys(sorted(words), 1.0)))
        owners = _any("owners", keys_of(one))
        # Rarity is counted among the reader's own points, so that a score reveals no others' words.
        corpus = models.IdfCorpusParams(corpus=models.Filter(must=[owners]))
        for lane, vector in lanes.items() if one.kinds and one.limit > 0 else ():
            if lane.startswith("window") and "message" not in one.kinds:
                continue  # nothing else has a window
            request = models.QueryRequest(
                query=models.NearestQuery(nearest=vector),
                using=lane,
                filter=models.Filter(must=[owners, *_conditions(one)]),
                params=models.SearchParams(idf=corpus) if lane in SPARSE else None,
                limit=one.limit,
                with_payload=["kind"],
            )
            found.append((lane, request))
    return found


def mark_request() -> "models.QueryRequest":
    from qdrant_client import models

    return models.QueryRequest(
        filter=models.Filter(must=[_any("kind", ["mark"])]), limit=1, with_payload=["mark"]
    )


def mark_struct(mark: str) -> "models.PointStruct":
    from qdrant_client import models

    return models.PointStruct(id=MARK, vector={}, payload={"kind": "mark", "mark": mark})


def rankings(lanes: Iterable[str], answers: Iterable[Any]) -> Rankings:
    """Return the hits of each lane, merged from all answers."""
    found: dict[str, list[Ranked]] = {}
    for lane, answer in zip(lanes, answers, strict=True):
        hits = [Ranked(str(point.id), point.score, point.payload["kind"]) for point in answer.points]
        found.setdefault(lane, []).extend(hits)
    return Rankings(**{lane: best(hits) for lane, hits in found.items()})  # type: ignore[arg-type]


def keywords(keys: Iterable[str]) -> list[str]:
    """Return the keys without lone surrogates, which Qdrant refuses. Different keys stay different."""
    plain = (key.isascii() and "\\" not in key for key in keys)
    return sorted(
        key if is_plain else key.replace("\\", "\\\\").encode("utf-8", "backslashreplace").decode()
        for key, is_plain in zip(keys, plain, strict=True)
    )


def as_list(vector: Any) -> list[float]:
    import numpy as np  # slow to import, and needed with the first vector

    values: list[float] = np.asarray(vector, dtype=np.float32).tolist()
    return values


def _conditions(question: Question) -> "list[models.FieldCondition]":
    wanted = [_within("expires_at", gt=question.now)]
    if len(question.kinds) < len(KINDS):
        wanted.append(_any("kind", question.kinds))
    if question.subjects:
        wanted.append(_any("subjects", question.subjects))
    if question.since or question.until:
        wanted.append(_within("created_at", gte=question.since, lt=question.until))
    return wanted


def _any(field: str, keys: Iterable[str]) -> "models.FieldCondition":
    from qdrant_client import models

    return models.FieldCondition(key=field, match=models.MatchAny(any=keywords([*keys])))


def _within(field: str, **bounds: datetime | None) -> "models.FieldCondition":
    from qdrant_client import models

    seconds = {name: at.timestamp() for name, at in bounds.items() if at}
    return models.FieldCondition(key=field, range=models.Range(**seconds))


def _sparse(weights: Mapping[int, float]) -> "models.SparseVector":
    from qdrant_client import models

    return models.SparseVector(indices=list(weights), values=list(weights.values()))


def field_index(use: str) -> Any:
    from qdrant_client import models

    if use == "number":
        return models.PayloadSchemaType.FLOAT
    return models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=use == "tenant")
