"""The same promises, kept in this process and by a Qdrant server: the one at QDRANT_URL, or the tests' small
one, whose engine is Qdrant's."""

import os
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from qdrant_server import QdrantServer

from memory.index import CHUNKS, LANES, Point, Question, Rankings
from memory.index.engine import keys_of
from memory.index.entry import Entry
from memory.index.scoring import rank
from memory.index.server.index import ServerIndex
from memory.process.breaker import Breaker

REAL = os.environ.get("QDRANT_URL"), os.environ.get("QDRANT_API_KEY")
"""As they are set outside, before the tests forget them."""

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
ANNA, BEN = "user:anna", "user:ben"
WORDS = "dogs bark cats purr birds sing".split()
WORLD = st.sets(st.sampled_from([ANNA, BEN, "place:a", "place:a/b", "global"]))


def unit(*values: float) -> list[float]:
    vector = np.array([*values, 0, 0, 0, 0][:4], dtype=np.float32)
    return list(vector / np.linalg.norm(vector))


def a_point(text: str = "dogs bark", **changes: Any) -> Point:
    start = Point(str(uuid4()), "memory", frozenset({ANNA}), text, unit(1), NOW - timedelta(days=1))
    return start._replace(**changes)


def a_question(text: str | None = None, **changes: Any) -> Question:
    return replace(Question(frozenset({ANNA}), NOW, unit(1), text), **changes)


def ids(ranking: tuple[Any, ...]) -> list[str]:
    return [ranked.id for ranked in ranking]


class InProcess:
    """The entries of all owner keys, as `Engine` fills them."""

    def __init__(self) -> None:
        self._entries = defaultdict[str, Entry](Entry)
        self._points: dict[str, Point] = {}

    async def put(self, points: Sequence[Point]) -> None:
        await self.remove([point.id for point in points])
        for point in points:
            self._points[point.id] = point
            for owner in point.owners:
                self._entries[owner].put([point])

    async def remove(self, ids: Sequence[str]) -> None:
        for id in ids:
            self._points.pop(id, None)
            for entry in self._entries.values():
                entry.remove([id])

    async def search(self, question: Question) -> Rankings:
        return rank({key: self._entries[key] for key in keys_of(question)}, [question])

    async def present(self, ids: Sequence[str]) -> set[str]:
        return {id for id in ids if any(id in entry for entry in self._entries.values())}

    async def count(self) -> int:
        return len(self._points)


class OnServer:
    def __init__(self, server: ServerIndex) -> None:
        self._server = server

    async def search(self, question: Question) -> Rankings:
        return (await self._server.search(question))[1]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server, name)


Index = InProcess | OnServer


async def identity() -> str:
    return "any"


def server_at(
    url: str, key: str | None, family: str = "hachi", breaker: Breaker | None = None
) -> ServerIndex:
    embedder: Any = SimpleNamespace(name="one", dimension=4)
    database: Any = SimpleNamespace(identity=identity)
    return ServerIndex(url, key, embedder, database, family, breaker)


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[OnServer]:
    monkeypatch.setattr("memory.index.server.index.SEARCH_SECONDS", 30)
    async with AsyncExitStack() as closing:
        family, (url, key) = f"test-{uuid4().hex}", REAL
        url = url or (await closing.enter_async_context(QdrantServer.running())).url
        closing.push_async_callback(remove_collections, url, key, family)
        server = server_at(url, key, family)
        closing.push_async_callback(server.close)
        await server.begin("mark")
        yield OnServer(server)


@pytest.fixture(params=["process", "server"])
def index(request: pytest.FixtureRequest) -> Index:
    return InProcess() if request.param == "process" else request.getfixturevalue("server")


async def remove_collections(url: str, key: str | None, family: str) -> None:
    from qdrant_client import AsyncQdrantClient

    client = AsyncQdrantClient(url=url, api_key=key, check_compatibility=False)
    for found in (await client.get_collections()).collections:
        if found.name.startswith(family):
            await client.delete_collection(found.name)
    await client.close()


async def test_finds_by_meaning_and_by_words_with_raw_scores(index: Index) -> None:
    near, far = a_point("dogs bark"), a_point("cats purr", dense=unit(1, 2), kind="message")
    await index.put([near, far])
    found = await index.search(a_question("a dog"))
    assert ids(found.dense) == [near.id, far.id]
    assert [r.score for r in found.dense] == pytest.approx([1.0, 1 / 5**0.5], abs=1e-4)
    assert [r.kind for r in found.dense] == ["memory", "message"]
    assert ids(found.words) == [near.id]
    assert found.words[0].score > 0
    assert found.window_dense == found.window_words == ()


async def test_windows_are_documents_of_their_own_and_put_replaces_them_too(index: Index) -> None:
    alone = a_point("yes", dense=unit(0, 1))
    window = {"window_text": "shall we ski? yes", "window_dense": unit(1)}
    framed = a_point("yes", dense=unit(0, 1), kind="message", **window)
    await index.put([alone, framed])
    found = await index.search(a_question("skiing"))
    assert ids(found.window_words) == ids(found.window_dense) == [framed.id]
    assert found.words == ()
    await index.put([framed._replace(text="cats purr", window_text=None, window_dense=None)])
    found = await index.search(a_question("skiing"))
    assert found.window_words == found.window_dense == ()
    assert ids((await index.search(a_question("cats"))).words) == [framed.id]
    assert await index.count() == 2


async def test_what_has_expired_is_not_found(index: Index) -> None:
    at_this_moment = a_point(expires_at=NOW)
    later = a_point(expires_at=NOW + timedelta(microseconds=1))
    never = a_point()
    await index.put([at_this_moment, later, never, a_point(expires_at=NOW - timedelta(days=1))])
    found = await index.search(a_question("dogs"))
    assert set(ids(found.dense)) == set(ids(found.words)) == {later.id, never.id}


async def test_filters_by_subject_and_kind(index: Index) -> None:
    ski = a_point(subjects=("ski", "alps"))
    dog = a_point(subjects=("dog",), kind="message")
    none = a_point(kind="summary")
    await index.put([ski, dog, none])

    async def found(**wanted: frozenset[str]) -> set[str]:
        return set(ids((await index.search(a_question("dogs", **wanted))).words))

    assert await found() == {ski.id, dog.id, none.id}
    assert await found(subjects=frozenset({"alps"})) == {ski.id}
    assert await found(subjects=frozenset({"alps", "dog"})) == {ski.id, dog.id}
    assert await found(subjects=frozenset({"cat"})) == set()
    assert await found(kinds=frozenset({"message", "summary"})) == {dog.id, none.id}
    assert await found(kinds=frozenset()) == set()


async def test_filters_by_when_it_was_created(index: Index) -> None:
    days = [a_point(created_at=NOW - timedelta(days=age)) for age in (0, 1, 2)]
    await index.put(days)
    for since, until, left in ((1, None, days[:2]), (None, 1, days[2:]), (1, 0, days[1:2])):
        span = {"since": since, "until": until}
        asked = {name: days[at].created_at for name, at in span.items() if at is not None}
        found = await index.search(a_question(**asked))
        assert set(ids(found.dense)) == {point.id for point in left}


async def test_removed_points_are_gone_also_of_more_than_go_in_one_request(index: Index) -> None:
    points = [a_point() for _ in range(230)]
    await index.put(points)
    everyone = {point.id for point in points}
    assert await index.present(list(everyone)) == everyone
    await index.remove([*(point.id for point in points[1:]), str(uuid4())])
    assert await index.present(list(everyone)) == {points[0].id}
    assert ids((await index.search(a_question("dogs"))).dense) == [points[0].id]
    assert await index.count() == 1


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(owners=st.lists(WORLD, min_size=1, max_size=8), reader=WORLD)
async def test_who_reads_finds_what_keys_own(index: Index, owners: list[set[str]], reader: set[str]) -> None:
    points = [a_point(owners=frozenset(keys), window_text="dogs", window_dense=unit(1)) for keys in owners]
    await index.put(points)
    found = await index.search(a_question("dogs", audience=frozenset(reader)))
    readable = {point.id for point in points if point.owners & reader}
    for lane in (found.dense, found.words, found.window_dense, found.window_words):
        assert set(ids(lane)) == readable
    await index.remove([point.id for point in points])


async def test_other_peoples_words_do_not_change_a_score(index: Index) -> None:
    await index.put([a_point("dogs bark"), a_point("cats purr"), a_point("birds sing")])
    before = (await index.search(a_question("dogs"))).words
    await index.put([a_point("dogs bark", owners=frozenset({BEN})) for _ in range(20)])
    after = (await index.search(a_question("dogs"))).words
    assert after[0].score == pytest.approx(before[0].score)


@pytest.mark.parametrize("odd", ["user:\ud800", "user:\\ud800", "user:" + "x" * 5000])
async def test_owners_of_any_characters_stay_apart(index: Index, odd: str) -> None:
    mine = a_point(owners=frozenset({odd}), subjects=(odd,))
    await index.put([mine, a_point(owners=frozenset({"user:\ud801"})), a_point(owners=frozenset({"user:?"}))])
    found = await index.search(a_question(audience=frozenset({odd}), subjects=frozenset({odd})))
    assert ids(found.dense) == [mine.id]
    twin = "user:\ud800" if odd == "user:\\ud800" else "user:\\ud800"
    if twin != odd:
        assert ids((await index.search(a_question(audience=frozenset({twin})))).dense) == []


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(alphabet=st.characters(), max_size=60))
async def test_no_text_is_too_odd(index: Index, text: str) -> None:
    odd = a_point(text, window_text=text, window_dense=unit(1))
    await index.put([odd])
    found = await index.search(a_question(text))
    assert ids(found.dense) == [odd.id]
    await index.remove([odd.id])


async def test_chunks_are_found_by_questions_for_them_and_words_without_a_vector(index: Index) -> None:
    of_documents = frozenset({f"documents of {ANNA}"})
    fact, chunk = a_point("dogs bark", dense=None), a_point("dogs bark", kind="chunk", owners=of_documents)
    others = [a_point("birds sing", kind="chunk", owners=of_documents) for _ in range(9)]
    await index.put([fact, chunk, *others])
    facts = await index.search(a_question("dogs"))
    assert (ids(facts.words), facts.dense) == ([fact.id], ())
    found = await index.search(a_question("dogs", kinds=CHUNKS))
    assert ids(found.words) == [chunk.id]
    assert found.words[0].score > facts.words[0].score


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(st.lists(st.sampled_from(WORDS), max_size=6), WORLD, st.floats(0, 1)),
        min_size=2,
        max_size=9,
    )
)
async def test_scores_are_those_of_qdrant(server: OnServer, texts: list[Any]) -> None:
    """With words in texts and windows of different lengths, and readers of several keys."""
    here = InProcess()
    points = [
        a_point(
            " ".join(words),
            owners=frozenset(owners),
            dense=unit(near, 1),
            kind="message",
            window_text=" ".join([*words, "dogs"]),
            window_dense=unit(1, near),
        )
        for words, owners, near in texts
        if owners
    ]
    await here.put(points)
    await server.put(points)
    asked = a_question("dogs purr", audience=frozenset({ANNA, "place:a", "global"}))
    one, other = await here.search(asked), await server.search(asked)
    for lane in LANES:
        scores = {hit.id: hit.score for hit in getattr(one, lane)}
        assert scores == pytest.approx({hit.id: hit.score for hit in getattr(other, lane)}, abs=2e-3)
    await server.remove([point.id for point in points])
