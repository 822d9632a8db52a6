"""How the engine stores a point, and how a question becomes filter conditions: the same for both backends."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from memory.index import CHUNKS, KINDS, Point, Question, Ranked, Rankings, bm25

if TYPE_CHECKING:
    from qdrant_edge import SparseVector

T = TypeVar("T")

DENSE = ("dense", "window_dense")
SPARSE = ("words", "window_words")
LANES = DENSE + SPARSE
WINDOWS = ("window_dense", "window_words")

FIELDS: dict[str, Literal["tenant", "keyword", "number"]] = {
    "owners": "tenant",
    "kind": "keyword",
    "subjects": "keyword",
    "created_at": "number",
    "expires_at": "number",
}
"""The payload fields that filters use, and that are therefore indexed."""

SHOWN = ["id", "kind"]
"""The payload fields of a hit. Edge makes a `UUID` of the id of a point, which takes longer."""

NEVER = 253_402_300_800.0
"""`expires_at` of a point that never expires: the end of the year 9999. It saves a second condition."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A field must contain any of some values, or a number within bounds."""

    field: str
    any_of: tuple[str, ...] = ()
    above: float | None = None
    at_least: float | None = None
    below: float | None = None


def keyword(key: str) -> str:
    """The key without lone surrogates, as the engine requires; different keys stay different."""
    if key.isascii() and "\\" not in key:
        return key
    return key.replace("\\", "\\\\").encode("utf-8", "backslashreplace").decode()


def payload(point: Point) -> dict[str, Any]:
    return {
        "id": point.id,
        "owners": _owner_keys(point.owners, point.kind == "chunk"),
        "kind": point.kind,
        "subjects": [keyword(subject) for subject in point.subjects],
        "created_at": point.created_at.timestamp(),
        "expires_at": NEVER if point.expires_at is None else point.expires_at.timestamp(),
    }


def dense_vectors(point: Point) -> dict[str, list[float]]:
    found = {"dense": point.dense, "window_dense": point.window_dense}
    # A vector of zeros, as of a blank text, is near to nothing. It is left out, so that zeros mean damage.
    listed = {lane: as_list(vector) for lane, vector in found.items() if vector is not None}
    return {lane: vector for lane, vector in listed.items() if any(vector)}


def sparse_vectors(point: Point) -> "dict[str, SparseVector]":
    found = {"words": bm25.document(point.text)}
    if point.window_text is not None:
        found["window_words"] = bm25.document(point.window_text, bm25.AVERAGE_WINDOW)
    return {lane: vector for lane, vector in found.items() if vector is not None}


def audience(question: Question) -> Condition:
    return Condition("owners", any_of=tuple(_owner_keys(question.audience, question.kinds == CHUNKS)))


def conditions(question: Question) -> list[Condition]:
    """The conditions that a point must meet, the audience first."""
    wanted = [audience(question), Condition("expires_at", above=question.now.timestamp())]
    if question.kinds not in (KINDS, CHUNKS):
        wanted.append(Condition("kind", any_of=tuple(_keywords(question.kinds))))
    if question.subjects:
        wanted.append(Condition("subjects", any_of=tuple(_keywords(question.subjects))))
    if question.since or question.until:
        since, until = (at.timestamp() if at else None for at in (question.since, question.until))
        wanted.append(Condition("created_at", at_least=since, below=until))
    return wanted


def searches(questions: "Iterable[Question]") -> "list[tuple[Question, str, list[float] | SparseVector]]":
    """Each lane to search, with its question and the vector."""
    return [(question, lane, vector) for question in questions for lane, vector in lanes(question).items()]


def lanes(question: Question) -> "dict[str, list[float] | SparseVector]":
    """The vector to search each lane with; empty if the question cannot match anything."""
    if not question.audience or not question.kinds or question.limit < 1:
        return {}
    vectors: dict[str, list[float] | SparseVector] = {}
    if question.dense is not None:
        vectors |= dict.fromkeys(DENSE, as_list(question.dense))
    sparse = None if question.text is None else bm25.query(question.text)
    if sparse is not None:
        vectors |= dict.fromkeys(SPARSE, sparse)
    if "message" not in question.kinds:  # nothing else has a window
        vectors = {lane: vector for lane, vector in vectors.items() if lane not in WINDOWS}
    return vectors


def rankings(lanes: Iterable[str], answers: Iterable[Iterable[Any]]) -> Rankings:
    """The hits of each lane, from the engine's points: those of several answers in one list."""
    found: dict[str, list[Ranked]] = {}
    for lane, points in zip(lanes, answers, strict=True):
        hits = [Ranked(p["id"], point.score, p["kind"]) for point in points for p in [point.payload]]
        found.setdefault(lane, []).extend(hits)
    return Rankings(**{lane: best(hits) for lane, hits in found.items()})  # type: ignore[arg-type]


def best(hits: Iterable[Ranked]) -> tuple[Ranked, ...]:
    """The hits, each once, best first."""
    return tuple(sorted({hit.id: hit for hit in hits}.values(), key=lambda hit: -hit.score))


def as_list(vector: Any) -> list[float]:
    import numpy as np  # slow to import, and needed with the first vector

    as_array: list[float] = np.asarray(vector, dtype=np.float32).tolist()
    return as_array


def slices(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (items[at : at + size] for at in range(0, len(items), size))


def _owner_keys(owners: Iterable[str], of_documents: bool) -> list[str]:
    """Chunks of documents have keys of their own, so that a search of memory needs no condition to leave them
    out, and they do not count where it counts how rare a word is."""
    return _keywords(f"documents of {owner}" if of_documents else owner for owner in owners)


def _keywords(keys: Iterable[str]) -> list[str]:
    return sorted(map(keyword, keys))
