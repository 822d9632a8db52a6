"""Searching documents: what bears on the question, each thing once, in the order of the reranker."""

from collections.abc import Sequence
from typing import Any

import pytest

from memory.audience import Audience
from memory.documents import Candidate
from memory.documents.search import CANDIDATES

ANNA = Audience.of("anna")
GUIDE = """# Kitchen guide

## Tea

Sencha is steeped for two minutes at seventy degrees.

## Knives

A blunt knife is drawn over the whetstone at a shallow angle.

## Bread

The dough rests overnight in the refrigerator before it is baked.
"""


async def test_a_chunk_says_where_it_comes_from(library: Any) -> None:
    path = library.write("guide.md", GUIDE)
    await library.add()
    chunk, *_ = await library.knowledge.search("how do I sharpen a knife", ANNA)
    assert chunk.text == "A blunt knife is drawn over the whetstone at a shallow angle."
    assert (chunk.source, chunk.chunk_index, chunk.title) == (str(path), 1, "Kitchen guide")
    assert chunk.heading == "Kitchen guide > Knives"
    assert 0.0 < chunk.score <= 1.0


async def test_scores_fall_and_the_limit_holds(library: Any) -> None:
    library.write("guide.md", GUIDE)
    await library.add()
    found = await library.knowledge.search("kitchen guide tea knives bread", ANNA, 2)
    assert len(found) == 2
    assert found[0].score >= found[1].score
    assert await library.knowledge.search("tea", ANNA, 0) == []
    assert await library.knowledge.search("  ", ANNA) == []


async def test_what_has_nothing_to_do_with_the_question_is_not_brought(library: Any) -> None:
    library.write("guide.md", GUIDE)
    await library.add()
    assert await library.found("who won the elections in Mongolia") == []


async def test_the_same_text_for_several_owners_is_brought_once(library: Any) -> None:
    library.write("guide.md", GUIDE)
    await library.add()
    await library.add(owner="user:anna")
    assert len(await library.found("how long is sencha steeped")) == len(
        set(await library.found("sencha steeped"))
    )


class Reversed:
    """Puts the last first, and remembers what it was given."""

    def __init__(self) -> None:
        self.given: list[Candidate] = []

    async def __call__(
        self, query: str, candidates: Sequence[Candidate], limit: int
    ) -> list[tuple[str, float]]:
        self.given = list(candidates)
        return [(c.id, 1.0 - c.match) for c in reversed(candidates)][:limit]


async def test_a_reranker_sees_fifty_candidates_and_says_the_order(library: Any) -> None:
    library.reranker = Reversed()
    library.knowledge = library.opened()
    for number in range(CANDIDATES + 20):
        library.write(f"{number}.md", f"# Tea {number}\n\nSencha is steeped for {number} minutes.")
    await library.add()
    found = await library.knowledge.search("how long is sencha steeped", ANNA, 5)
    given = library.reranker.given
    assert len(given) == CANDIDATES
    assert [chunk.id for chunk in found] == [candidate.id for candidate in given[:-6:-1]]
    assert [c.match for c in given] == sorted((c.match for c in given), reverse=True)
    assert all(c.source.endswith(".md") and c.heading.startswith("Tea") and c.scores for c in given)


class Failing:
    async def __call__(self, *_: Any) -> list[tuple[str, float]]:
        raise RuntimeError("the judge is ill")


async def test_where_the_reranker_fails_the_fused_order_is_taken(
    library: Any, caplog: pytest.LogCaptureFixture
) -> None:
    library.write("guide.md", GUIDE)
    await library.add()
    expected = await library.found("how long is sencha steeped")
    library.reranker = Failing()
    library.knowledge = library.opened()
    assert await library.found("how long is sencha steeped") == expected
    assert "the judge is ill" in caplog.text


class Careless:
    """Makes ids up, says one twice, and gives scores out of bounds."""

    async def __call__(
        self, query: str, candidates: Sequence[Candidate], limit: int
    ) -> list[tuple[str, float]]:
        return [("made up", 0.9), (candidates[0].id, 7.0), (candidates[0].id, 0.1)]


async def test_what_a_careless_reranker_makes_up_is_left_out(library: Any) -> None:
    library.write("guide.md", GUIDE)
    await library.add()
    library.reranker = Careless()
    library.knowledge = library.opened()
    [chunk] = await library.knowledge.search("how long is sencha steeped", ANNA)
    assert chunk.score == 1.0


async def test_a_question_without_words_is_no_error(library: Any) -> None:
    library.write("guide.md", GUIDE)
    await library.add()
    assert await library.found("???") == []
