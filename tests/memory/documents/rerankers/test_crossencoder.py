"""Cross-encoders run here: with a small model in place of one that would be downloaded."""

import sys
from collections.abc import Iterable, Iterator
from types import SimpleNamespace

import pytest

from memory.documents.rerankers import Candidate
from memory.documents.rerankers.crossencoder import CrossEncoderReranker
from memory.errors import EmbedderUnavailable

MODULE = "fastembed.rerank.cross_encoder"


class SharedWords:
    """Scores by how many words the two texts share."""

    made: list[str]

    def __init__(self, name: str) -> None:
        if name == "unknown":
            raise ValueError("Model unknown is not supported\nin TextCrossEncoder")
        self.made.append(name)

    def rerank(self, query: str, documents: Iterable[str]) -> Iterator[float]:
        for text in documents:
            text.encode()
            shared = len(set(query.split()) & set(text.split()))
            yield float("nan") if "nan" in text else shared - 1.0


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """fastembed as if it were installed; the names of the models it was asked for."""
    SharedWords.made = []
    for name in ("fastembed", "fastembed.rerank"):
        monkeypatch.setitem(sys.modules, name, SimpleNamespace())
    monkeypatch.setitem(sys.modules, MODULE, SimpleNamespace(TextCrossEncoder=SharedWords))
    return SharedWords.made


def candidate(id: str, text: str, heading: str = "") -> Candidate:
    return Candidate(id, id, 0, "", heading, text, f"/{id}.md", {})


async def test_chunks_are_put_in_the_models_order(made: list[str]) -> None:
    reranker = CrossEncoderReranker("small")
    found = [
        candidate("a", "sharp knives"),
        candidate("b", "green tea"),
        candidate("c", "leaves", "green tea in"),
    ]
    ranked = await reranker("green tea in cups", found, 2)
    assert [id for id, _ in ranked] == ["c", "b"]
    assert ranked[0][1] > ranked[1][1] > 0.5
    await reranker("tea", found, 2)
    assert made == ["small"], "loaded once, when it is first needed"


async def test_a_missing_model_or_package_is_told(made: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    tea = candidate("a", "tea")
    refused = r"unknown cannot be loaded \(Model unknown is not supported\)"
    with pytest.raises(EmbedderUnavailable, match=refused):
        await CrossEncoderReranker("unknown")("tea", [tea], 1)
    for name in (MODULE, "fastembed"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(EmbedderUnavailable, match=r"pip install -e '\.\[fastembed\]' in the clone"):
        await CrossEncoderReranker("small")("tea", [tea], 1)
