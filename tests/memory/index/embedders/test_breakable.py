"""Recent texts are not embedded again."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from memory.errors import EmbedderUnavailable, IndexUnavailable
from memory.index.embedders import CAUTIOUS, breakable
from memory.index.embedders.breakable import BreakableEmbedder
from memory.process.breaker import FIRST_PAUSE, Breaker


class Paid:
    """Two dimensions, and a bill."""

    name = "paid"
    dimension = 2
    thresholds = CAUTIOUS

    def __init__(self) -> None:
        self.bill: list[list[str]] = []
        self.closed = False

    async def embed(self, texts: Sequence[str]) -> "list[np.typing.NDArray[np.float32]]":
        self.bill.append(list(texts))
        return [np.array([len(text), 1], dtype=np.float32) for text in texts]

    async def close(self) -> None:
        self.closed = True


def opened_with_its_first_text(paid: Paid) -> BreakableEmbedder:
    async def opened() -> Paid:
        return paid

    return BreakableEmbedder("paid", CAUTIOUS, opened, Breaker("embedder"))


async def test_a_text_is_paid_for_once_within_a_batch_and_after() -> None:
    paid = Paid()
    embedder = opened_with_its_first_text(paid)
    first = await embedder.embed(["a", "bb", "a"])
    second = await embedder.embed(["bb", "ccc", "\ud800"])
    assert paid.bill == [["a", "bb"], ["ccc", "\ud800"]]
    assert [v[0] for v in first + second] == [1, 2, 1, 2, 3, 1]
    assert await embedder.embed([]) == []
    assert paid.bill[2:] == []
    assert (embedder.name, embedder.dimension, embedder.thresholds) == ("paid", 2, CAUTIOUS)
    with pytest.raises(ValueError, match="read-only"):
        first[0][0] = 9


async def test_the_longest_unused_goes_first_and_all_when_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(breakable, "MAX_BYTES", 2 * 4 * 2)
    paid = Paid()
    embedder = opened_with_its_first_text(paid)
    for text in ("a", "b", "a", "c", "a", "b"):
        await embedder.embed([text])
    assert paid.bill == [["a"], ["b"], ["c"], ["b"]]
    embedder.clear()
    await embedder.embed(["b"])
    await embedder.close()
    await embedder.embed(["b"])
    assert paid.bill[4:] == [["b"], ["b"]]
    assert paid.closed


class Refused(Exception):
    status_code = 400


async def test_one_that_is_away_is_tried_when_it_is_needed_and_then_left_alone(clock: Any) -> None:
    paid, faults = Paid(), list[Exception]([EmbedderUnavailable("does not answer")])

    async def opened() -> Paid:
        if faults:
            raise faults[0]
        return paid

    embedder = BreakableEmbedder("paid", CAUTIOUS, opened, Breaker("embedder", clock, failures=1))
    with pytest.raises(IndexUnavailable, match="how long its vectors are"):
        _ = embedder.dimension
    for told in ("does not answer", "not tried again before", "not tried again before"):
        with pytest.raises(EmbedderUnavailable, match=told):
            await embedder.embed(["dog"])
    faults.clear()
    clock.now += FIRST_PAUSE
    assert await embedder.embed([]) == []
    assert embedder.dimension == 2
    assert len(await embedder.embed(["dog"])) == 1


async def test_a_text_that_the_server_refuses_does_not_close_it_to_others() -> None:
    class Picky(Paid):
        async def embed(self, texts: Any) -> Any:
            raise EmbedderUnavailable("no") from Refused()

    async def picky() -> Picky:
        return Picky()

    breaker = Breaker("embedder", failures=1)
    with pytest.raises(EmbedderUnavailable):
        await BreakableEmbedder("picky", CAUTIOUS, picky, breaker).embed(["x"])
    assert breaker.state == "closed"
