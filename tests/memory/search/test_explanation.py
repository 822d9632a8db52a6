"""What a search says of what it had before it."""

from datetime import UTC, datetime
from typing import Any

from memory.search.explanation import EXCERPT, Explanation, rows_of
from memory.search.ranking import Candidate

AT = datetime(2026, 11, 21, tzinfo=UTC)


CANDIDATES = {id: Candidate("memory", f"text {id}", "ana", AT) for id in "abcd"}
USUAL: dict[str, Any] = {
    "lanes": {"dense": [("a", 0.91234567), ("gone", 0.9), ("seen", 0.8)], "words": [("b", 7.0)]},
    "candidates": CANDIDATES,
    "ranked": [("a", 1.23456), ("b", 0.5), ("c", 0.4), ("d", 0.0)],
    "limit": 2,
    "shown": frozenset({"seen"}),
}


def considered(**given: Any) -> Any:
    return rows_of(Explanation(**USUAL | given).to_trace())


def test_each_is_told_with_the_reason_why_it_was_left_out() -> None:
    assert {one["id"]: one.get("left_out") for one in considered()} == {
        "a": None,
        "b": None,
        "c": "below the first 2",
        "d": "too far from the question in words and meaning",
        "gone": "gone, expired, or not to be read here",
        "seen": "the model sees it already",
    }


def test_of_what_may_be_read_all_is_told_that_ranks_it_and_of_the_rest_no_more_than_the_id() -> None:
    told = {"id": "a", "kind": "memory", "content": "text a", "author": "ana", "created_at": AT}
    assert considered()[0] == told | {"score": 1.2346, "lanes": {"dense": 0.9123}}
    assert considered()[-2].keys() == {"id", "left_out"}
    assert considered()[2].keys() == {"id", "kind", "score", "left_out"}, "without its text"
    traced = Explanation(**USUAL).to_trace()["columns"]
    assert traced["id"] == ["a", "b", "~c", "~d", "~gone", "~seen"]
    assert traced["content"] == ["text a", "text b"], "and no more of what was left out"


def test_of_long_texts_the_beginning_is_told() -> None:
    long = Candidate("message", "x" * 10_000, "ana", AT)
    [one] = considered(lanes={}, candidates={"a": long}, ranked=[("a", 1.0)])
    assert len(one["content"]) == EXCERPT
    assert (rows_of([{"id": "a"}]), rows_of(None)) == ([{"id": "a"}], []), "rows are left as they are"
