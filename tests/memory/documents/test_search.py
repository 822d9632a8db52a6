"""Searching documents: relevant chunks, each text once, best first, and not five copies of one."""

from typing import Any

from memory.audience import Audience
from memory.documents.search import NEAR_COPY, Candidate, diverse, match_scores
from memory.records import Chunk

ANNA = Audience.of("anna")
GUIDE = """# Kitchen guide

## Tea

Sencha is steeped for two minutes at seventy degrees.

## Knives

A blunt knife is drawn over the whetstone at a shallow angle.

## Bread

The dough rests overnight in the refrigerator before it is baked.
"""


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


def candidate(
    id: str,
    text: str = "",
    document: str | None = None,
    heading: str = "",
    match: float = 0.0,
    **lanes: float,
) -> Candidate:
    chunk = Chunk(id, text, f"/{document or id}.md", 0, "", heading)
    return Candidate(chunk, document or id, lanes, match)


def order(query: str, *candidates: Candidate) -> list[str]:
    scores = match_scores(query, candidates)
    return sorted(scores, key=lambda id: -scores[id])


def test_lanes_headings_and_the_rest_of_the_document_count_together() -> None:
    both = candidate("both", dense=0.5, words=9.0)
    near, said = candidate("near", dense=0.6, words=1.0), candidate("said", dense=0.1, words=10.0)
    assert order("tea", near, said, both)[0] == "both"

    named = candidate("named", heading="Brewing tea", dense=0.4, words=5.0)
    other = candidate("other", heading="Notes", dense=0.4, words=5.0)
    assert order("how is tea brewed", other, named) == ["named", "other"]

    much = [candidate(f"much{n}", document="much", dense=0.5, words=5.0 - n / 10) for n in range(3)]
    alone = candidate("alone", dense=0.5, words=5.0)
    assert order("tea", alone, *much)[-1] == "alone"

    assert match_scores("tea", [candidate("a", dense=-0.2), candidate("b", words=3.0)])["a"] == 0.0
    assert match_scores("???", [candidate("a", dense=0.2)])["a"] > 0.0
    assert match_scores("tea", []) == {}


def test_more_of_one_document_and_near_copies_step_back_but_are_not_lost() -> None:
    same = [candidate(f"s{n}", f"Sencha number {n} " * n, "same", match=0.9 - n / 100) for n in range(3)]
    other = candidate("o", "Something else entirely, on whetstones.", match=0.8)
    assert [id for id, _ in diverse([*same, other], 4)] == ["s0", "o", "s1", "s2"]
    assert [id for id, _ in diverse([*same, other], 2)] == ["s0", "o"]

    text = "Sencha is steeped for two minutes at seventy degrees, as everybody knows."
    copies = [candidate(f"c{n}", text + "!" * n, match=0.9) for n in range(3)]
    other = candidate("o", "A blunt knife is drawn over the whetstone.", match=0.6)
    ranked = diverse([*copies, other], 4)
    assert [id for id, _ in ranked] == ["c0", "o", "c1", "c2"]
    assert ranked[2][1] == 0.9 * NEAR_COPY
