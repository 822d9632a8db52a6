"""Searching documents: relevant chunks, each text once, best first."""

from typing import Any

from memory.audience import Audience

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
