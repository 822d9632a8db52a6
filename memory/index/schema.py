"""How a point is laid out in the engine, and a question as conditions: the same for both backends."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from memory.index import KINDS, Point, Question
from memory.index import bm25 as words

if TYPE_CHECKING:
    from qdrant_edge import SparseVector

T = TypeVar("T")

DENSE = ("dense", "window_dense")
SPARSE = ("words", "window_words")
LANES = DENSE + SPARSE

FIELDS: dict[str, Literal["tenant", "keyword", "number"]] = {
    "owners": "tenant",
    "kind": "keyword",
    "subjects": "keyword",
    "group": "keyword",
    "created_at": "number",
    "expires_at": "number",
}
"""What is filtered by, and so indexed."""

NEVER = 253_402_300_800.0
"""The end of the year 9999, for what does not expire: one comparison instead of two."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One thing that a found point must fulfil: any of some values, or a number within bounds."""

    field: str
    any_of: tuple[str, ...] = ()
    above: float | None = None
    at_least: float | None = None
    below: float | None = None


def keyword(key: str) -> str:
    """A key in a form the engine takes, lone surrogates included; two different keys never become one."""
    if key.isascii() and "\\" not in key:
        return key
    return key.replace("\\", "\\\\").encode("utf-8", "backslashreplace").decode()


def payload(point: Point) -> dict[str, Any]:
    return {
        "owners": [keyword(owner) for owner in sorted(point.owners)],
        "kind": point.kind,
        "subjects": [keyword(subject) for subject in point.subjects],
        "group": None if point.group is None else keyword(point.group),
        "created_at": point.created_at.timestamp(),
        "expires_at": NEVER if point.expires_at is None else point.expires_at.timestamp(),
    }


def dense_vectors(point: Point) -> dict[str, list[float]]:
    found = {"dense": point.dense, "window_dense": point.window_dense}
    return {lane: as_list(vector) for lane, vector in found.items() if vector is not None}


def sparse_vectors(point: Point) -> "dict[str, SparseVector]":
    found = {"words": words.document(point.text)}
    if point.window_text is not None:
        found["window_words"] = words.document(point.window_text)
    return {lane: vector for lane, vector in found.items() if vector is not None}


def audience(question: Question) -> Condition:
    return Condition("owners", any_of=_keywords(question.audience))


def conditions(question: Question) -> list[Condition]:
    """All that a point must fulfil, the audience first."""
    wanted = [
        audience(question),
        Condition("expires_at", above=question.now.timestamp()),
    ]
    if question.kinds != KINDS:
        wanted.append(Condition("kind", any_of=_keywords(question.kinds)))
    if question.subjects:
        wanted.append(Condition("subjects", any_of=_keywords(question.subjects)))
    if question.groups:
        wanted.append(Condition("group", any_of=_keywords(question.groups)))
    if question.since or question.until:
        since, until = question.since, question.until
        wanted.append(
            Condition(
                "created_at",
                at_least=since.timestamp() if since else None,
                below=until.timestamp() if until else None,
            )
        )
    return wanted


def lanes(question: Question) -> "dict[str, list[float] | SparseVector]":
    """What is asked in which lane; none at all where nothing may be found."""
    if not question.audience or not question.kinds or question.limit < 1:
        return {}
    asked: dict[str, list[float] | SparseVector] = {}
    if question.dense is not None:
        asked |= dict.fromkeys(DENSE, as_list(question.dense))
    vector = None if question.text is None else words.query(question.text)
    if vector is not None:
        asked |= dict.fromkeys(SPARSE, vector)
    return asked


def as_list(vector: Any) -> list[float]:
    import numpy as np  # takes a while to load, and is needed with the first vector

    as_array: list[float] = np.asarray(vector, dtype=np.float32).tolist()
    return as_array


def slices(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (items[at : at + size] for at in range(0, len(items), size))


def _keywords(keys: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(map(keyword, keys)))
