"""The embedder inside the package."""

import asyncio
import sys
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
import wordllama
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.errors import EmbedderUnavailable
from memory.index.embedders.bundled import BundledEmbedder

EMBEDDER = BundledEmbedder()


async def test_similar_texts_are_near_and_others_far() -> None:
    a, b, c = await EMBEDDER.embed(["the dog barks", "a dog is barking", "quarterly tax report"])
    assert a @ b > 0.5 > a @ c
    assert (a.dtype, len(a), EMBEDDER.dimension) == (np.float32, 256, 256)
    assert await EMBEDDER.embed([]) == []


@settings(max_examples=20)
@given(texts=st.lists(st.text(alphabet=st.characters(exclude_characters="\0"), max_size=40), max_size=5))
async def test_every_text_has_a_unit_vector_and_a_blank_one_zeros(texts: list[str]) -> None:
    for text, vector in zip(texts, await EMBEDDER.embed(texts), strict=True):
        expected = 1.0 if text.strip() else 0.0
        assert np.linalg.norm(vector) == pytest.approx(expected, abs=1e-5)


async def test_a_text_has_the_same_vector_alone_and_among_others() -> None:
    texts = ["short", "a rather longer line " * 300, "", "שלום", "🐶"]
    for text, vector in zip(texts, await EMBEDDER.embed(texts), strict=True):
        assert np.array_equal((await EMBEDDER.embed([text]))[0], vector)


async def test_a_text_of_several_lines_has_the_mean_of_its_tokens() -> None:
    texts = ["Ana: hello\n\nBen: שלום 🐶\n  x\n", "one line", "Ben: שלום 🐶\nAna: hello"]
    made, model = await EMBEDDER.embed(texts), EMBEDDER._model
    for text, vector in zip(texts, made, strict=True):
        mean = model.embedding[model.tokenizer.encode(text, add_special_tokens=False).ids].mean(axis=0)
        assert np.allclose(vector, mean / np.linalg.norm(mean), atol=1e-6)


async def test_a_cleared_embedder_has_none_of_the_words() -> None:
    await EMBEDDER.embed(["zagavok"])
    assert "zagavok" in str(vars(EMBEDDER))
    EMBEDDER.clear()
    assert "zagavok" not in str(vars(EMBEDDER))


async def test_concurrent_first_calls_load_the_weights_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loads = []
    real = wordllama.WordLlama.load

    def counting(**options: object) -> object:
        loads.append(options)
        return real(**options)

    monkeypatch.setattr(wordllama.WordLlama, "load", counting)
    embedder = BundledEmbedder()
    await asyncio.gather(*(embedder.embed(["x"]) for _ in range(5)))
    assert [options["disable_download"] for options in loads] == [True]
    await embedder.close()
    await embedder.embed(["x"])
    assert len(loads) == 2
    monkeypatch.setattr(wordllama.WordLlama, "load", Mock(side_effect=FileNotFoundError("no tokenizer")))
    with pytest.raises(EmbedderUnavailable, match="files are missing"):
        await BundledEmbedder().embed(["x"])


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_the_words_that_people_say_are_not_kept_in_memory() -> None:
    embedder = BundledEmbedder()
    for _ in range(20):  # which makes room for the numbers of as many texts
        await embedder.embed([f"hi{n} and {n}" for n in range(500)])

    def resident() -> int:
        [line] = [one for one in Path("/proc/self/status").read_text().splitlines() if "RssAnon" in one]
        return int(line.split()[1])

    before = resident()
    for start in range(0, 20_000, 500):
        await embedder.embed([f"hello{n} and {n}" for n in range(start, start + 500)])
    assert resident() - before < 6_000, "kB; the tokenizer would keep some 17,000"
