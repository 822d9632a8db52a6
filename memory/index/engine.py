"""Keep the index in this process: an entry for each owner key that readers use, loaded from SQL.

Before each search the log of changes tells which rows of an entry to read again. Expiry is not logged: when
the first row of an entry expires, the rows that may be active again are read too. The most recently used
entries stay, up to a number of bytes.
"""

import asyncio
from collections import OrderedDict, defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from memory.index import CHUNKS, KINDS, Kind, Point, Question, Rankings, stored_vectors
from memory.index.embedders import Embedder
from memory.index.entry import ROW_BYTES, Entry
from memory.index.rows import IndexRow, Rows
from memory.index.scoring import rank
from memory.index.stored_vectors import Texts
from memory.sql import changes
from memory.sql.changes import AROUND, DOCUMENTS, EVERYBODY, Moment, Read
from memory.sql.engine import Database
from memory.sql.messages.lines import anchors_of

AT_A_TIME = 256
"""Rows that are read before other tasks may run: some 5 ms."""
BIG = 10_000
"""An entry with more rows is changed and searched in a thread: some 10 ms."""
MOST_CHANGES = 1_000
"""An entry with more changed rows is loaded anew."""
RECENT = timedelta(minutes=1)
"""How long a search that may miss changes uses an entry without reading the log."""
LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(eq=False)
class Loaded:
    """An entry in memory."""

    entry: Entry = field(default_factory=Entry)
    since: Moment | None = None
    """The state of the database that the entry shows; None before it is loaded."""
    last: int = 0
    """The number of the newest change at that moment."""
    at: datetime = LONG_AGO
    """The time for which expiry was tested."""
    writes: int = -1
    """How many transactions this process had committed when it was read."""
    lacking: dict[str, Kind] = field(default_factory=dict)
    """The rows without vectors so far."""
    whole: bool = True
    """Whether all rows fit into memory."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def watched(self, key: str) -> list[str]:
        """Return the owners whose changes concern the entry, including places where the person wrote."""
        around = sorted(f"{AROUND}{place}" for place in self.entry.heard if place != key)
        return [key, EVERYBODY, *around]


def room_for(memory: int, dimension: int) -> int:
    """Return how many messages with two vectors of this dimension fit into so many bytes."""
    return memory // (2 * 4 * dimension + ROW_BYTES + 1_000)


class Engine:
    def __init__(self, database: Database, embedder: Embedder, memory: int) -> None:
        self.rows = Rows(database)
        self._database = database
        self._embedder = embedder
        self._memory = memory
        """The bytes that all entries may take."""
        self._loaded: OrderedDict[str, Loaded] = OrderedDict()

    async def search(self, *questions: Question, fresh: bool = True) -> Rankings:
        """Return the hits of all questions. They must have the same text and vector, and differ only in their
        conditions. Unless `fresh`, changes by other processes after `Rankings.since` may be missing."""
        keys = keys_of(questions[0])
        if not keys:
            return Rankings()
        async with self._held(keys) as loaded:
            since = None if fresh else self._recent(loaded.values(), questions[0].now)
            since = since or await self._refresh(loaded, questions[0].now)
            entries = {key: one.entry for key, one in loaded.items()}
            found = await _aside(max(map(len, entries.values())), rank, entries, questions)
            partial = any(one.lacking or not one.whole for one in loaded.values())
        lanes = (found.dense, found.words, found.window_dense, found.window_words)
        return Rankings(*lanes, rarity=found.rarity, partial=partial, since=since)

    async def rank_rows(self, index_rows: Sequence[IndexRow], *questions: Question) -> Rankings:
        """Search only these rows, as far as the reader may read them."""
        points, _ = await stored_vectors.points(self._database, self._embedder, index_rows)
        entry = Entry()
        entry.put([point for point in points if not point.owners.isdisjoint(keys_of(questions[0]))])
        return rank({"": entry}, questions)

    def clear(self) -> None:
        """Drop all entries."""
        self._loaded.clear()

    async def count(self) -> int:
        """Return how many rows are in memory."""
        return sum(len(one.entry) for one in self._loaded.values())

    async def too_big(self) -> list[str]:
        """Return the owner keys with more messages than fit into memory. Counts all messages."""
        return await self.rows.with_more_messages(room_for(self._memory, self._embedder.dimension))

    @property
    def bytes(self) -> int:
        return sum(one.entry.bytes for one in self._loaded.values())

    @asynccontextmanager
    async def _held(self, keys: Sequence[str]) -> AsyncIterator[dict[str, Loaded]]:
        """Lock the entries of these keys, so that no other task refreshes or searches them."""
        loaded = {key: self._loaded.setdefault(key, Loaded()) for key in keys}
        async with AsyncExitStack() as locks:
            for key, one in loaded.items():  # always in the same order
                await locks.enter_async_context(one.lock)
                if key in self._loaded:
                    self._loaded.move_to_end(key)
            yield loaded
        while len(self._loaded) > len(keys) and self.bytes > self._memory:
            self._loaded.popitem(last=False)

    def _recent(self, loaded: Collection[Loaded], now: datetime) -> Moment | None:
        """Return the state that all these entries show, if recent and without later writes of this
        process."""
        same = len({one.since for one in loaded}) == 1
        if same and all(
            one.writes == self._database.writes
            and timedelta() <= now - one.at <= RECENT
            and one.entry.ends > now.timestamp()
            for one in loaded
        ):
            return next(iter(loaded)).since
        return None

    async def _refresh(self, loaded: dict[str, Loaded], now: datetime) -> Moment:
        """Bring the entries up to date. Returns the state of the database that they show."""
        reads, writes = dict[str, Read](), self._database.writes
        for since in dict.fromkeys(one.since for one in loaded.values() if one.since is not None):
            keys = {key: one for key, one in loaded.items() if one.since == since}
            watched = [owner for key, one in keys.items() for owner in one.watched(key)]
            reads |= dict.fromkeys(keys, await changes.read(self._database, watched, since))
        if any(change.owner == EVERYBODY for read in reads.values() for change in read.changes):
            self._loaded = OrderedDict(loaded)  # drop all other entries, because a person was erased
            reads = {}
        first = next(iter(reads.values()), None) or await changes.now(self._database)
        changed = {key: await self._changed(key, loaded[key], read, now) for key, read in reads.items()}
        named = {kind: {id for ids in changed.values() if ids for id in ids[kind]} for kind in KINDS | CHUNKS}
        anchors = {one for read in reads.values() for one in read.anchors if one.id in named["message"]}
        anchors.update(await anchors_of(self._database, named["message"] - {one.id for one in anchors}))
        deleted = named["message"] - {one.id for one in anchors}
        index_rows = await self.rows.shown(named, now, anchors) if any(named.values()) else []
        points, lacking = await stored_vectors.points(self._database, self._embedder, index_rows)
        for key, one in loaded.items():
            ids, around = changed.get(key), one.watched(key)[2:]
            if ids is None or any(
                id in deleted and (id in one.entry or owner in around) for owner, _, id in reads[key].changes
            ):  # it cannot be told in whose windows a deleted message was
                await self._load(key, one, first, now)
            else:
                one.entry.remove(id for some in ids.values() for id in some)
                await self._put(key, one, points, lacking)
                one.since, one.last, one.at = reads[key].moment, reads[key].last, now
            one.writes = writes
        return first.moment

    async def _load(self, key: str, one: Loaded, since: Read, now: datetime) -> None:
        """Load an entry from SQL, as many rows as fit."""
        one.since, one.entry, one.lacking, one.whole = None, Entry(), {}, True
        async for index_rows in self.rows.of_owner(key, now, AT_A_TIME):
            await self._put(
                key, one, *await stored_vectors.points(self._database, self._embedder, index_rows)
            )
            if one.entry.bytes > self._memory:
                one.whole = False
                break
            await asyncio.sleep(0)
        one.since, one.last, one.at = since.moment, since.last, now

    async def _changed(
        self, key: str, one: Loaded, read: Read, now: datetime
    ) -> defaultdict[Kind, set[str]] | None:
        """Return the ids of the rows of an entry to read again. None if the entry must be loaded anew."""
        watched, ids = one.watched(key), defaultdict[Kind, set[str]](set)
        for owner, kind, id in read.changes:
            if owner in watched:
                ids[kind].add(id)  # type: ignore[index]
        if one.entry.ends <= now.timestamp():
            expired = one.entry.expired(now.timestamp())
            ids["memory"].update(expired, await self.rows.replaced_by_expired([key], now))
        for id in await stored_vectors.embedded(self._database, self._embedder.name, one.lacking):
            ids[one.lacking[id]].add(id)
        forgetful = read.first > one.last + 1 or now < one.at  # the log was cut, or the clock went back
        too_many = sum(map(len, ids.values())) > MOST_CHANGES
        return None if forgetful or one.entry.worn or too_many else ids

    async def _put(self, key: str, one: Loaded, points: Sequence[Point], lacking: Texts) -> None:
        """Add the points that are the owner's. Those in `lacking` have no vectors yet."""
        own = [point for point in points if key in point.owners]
        if own:
            await _aside(len(one.entry), one.entry.put, own)
        lacks = {id for id, _ in lacking}
        for point in own:
            one.lacking.pop(point.id, None)
            if point.id in lacks:
                one.lacking[point.id] = point.kind


async def _aside(rows: int, act: Callable[..., Any], *given: Any) -> Any:
    """Call this function, in a thread if it works on more than `BIG` rows."""
    return await asyncio.to_thread(act, *given) if rows > BIG else act(*given)


def keys_of(question: Question) -> list[str]:
    """Return the keys of the entries to search for a question, those that most people share last."""
    of_documents = DOCUMENTS if question.kinds == CHUNKS else ""
    return sorted((f"{of_documents}{owner}" for owner in question.audience), reverse=True)
