"""Searching documents: relevant chunks, each text once, in the reranker's order."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from memory.audience import Audience
from memory.documents.reranking import Candidate
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
Ranked = list[tuple[str, float]]


async def test_relevant_chunks_are_found_best_first_with_their_source(library: Any) -> None:
    path = library.write("guide.md", GUIDE)
    await library.add()
    await library.add(owner="user:anna")
    chunk, *_ = await library.knowledge.search("how do I sharpen a knife", ANNA)
    assert chunk.text == "A blunt knife is drawn over the whetstone at a shallow angle."
    assert (chunk.source, chunk.chunk_index, chunk.title) == (str(path), 1, "Kitchen guide")
    assert chunk.heading == "Kitchen guide > Knives"
    assert 0.0 < chunk.score <= 1.0

    found = await library.knowledge.search("kitchen guide tea knives bread", ANNA, 2)
    assert len(found) == 2
    assert found[0].score >= found[1].score
    texts = await library.found("how long is sencha steeped")
    assert len(texts) == len(set(texts)), "a text of several owners comes once"
    for query in ("who won the elections in Mongolia", "???", "  "):
        assert await library.found(query) == []
    assert await library.knowledge.search("tea", ANNA, 0) == []


def rerank_with(library: Any, order: Callable[[Sequence[Candidate], int], Ranked]) -> None:
    async def reranker(query: str, candidates: Sequence[Candidate], limit: int) -> Ranked:
        return order(candidates, limit)

    library.reranker = reranker
    library.knowledge = library.opened()


async def test_a_reranker_gets_fifty_candidates_and_decides_the_order(library: Any) -> None:
    given: list[Candidate] = []

    def backwards(candidates: Sequence[Candidate], limit: int) -> Ranked:
        given.extend(candidates)
        return [(c.id, 1.0 - c.match) for c in reversed(candidates)][:limit]

    for number in range(CANDIDATES + 20):
        library.write(f"{number}.md", f"# Tea {number}\n\nSencha is steeped for {number} minutes.")
    await library.add()
    rerank_with(library, backwards)
    found = await library.knowledge.search("how long is sencha steeped", ANNA, 5)
    assert len(given) == CANDIDATES
    assert [chunk.id for chunk in found] == [candidate.id for candidate in given[:-6:-1]]
    assert [c.match for c in given] == sorted((c.match for c in given), reverse=True)
    assert all(
        c.chunk.source.endswith(".md") and c.chunk.heading.startswith("Tea") and c.scores for c in given
    )


async def test_a_reranker_that_fails_costs_no_answer(library: Any, caplog: pytest.LogCaptureFixture) -> None:
    def fail(candidates: Sequence[Candidate], limit: int) -> Ranked:
        raise RuntimeError("the judge is ill")

    library.write("guide.md", GUIDE)
    await library.add()
    expected = await library.found("how long is sencha steeped")
    rerank_with(library, fail)
    assert await library.found("how long is sencha steeped") == expected
    assert "the judge is ill" in caplog.text

    rerank_with(library, lambda found, _: [("made up", 0.9), (found[0].id, 7.0), (found[0].id, 0.1)])
    [chunk] = await library.knowledge.search("how long is sencha steeped", ANNA)
    assert chunk.score == 1.0
