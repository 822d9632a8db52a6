"""Find the replies that belong to a cascade, by ids and by their words (`repetition`).

Words count only in replies to the person, or written from one of the rows, that are not older than it.
"""

from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    LargeBinary,
    and_,
    cast,
    collate,
    func,
    literal_column,
    or_,
    select,
    true,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import GLOBAL, Audience, Place, user_key
from memory.forgetting.repetition import ByKey, ForgottenTexts, Hint
from memory.index.bm25 import stems
from memory.process.pace import pause
from memory.sql.hidden import link_is_hidden, parts
from memory.sql.messages.message_rows import is_visible
from memory.sql.messages.speakers import HACHI
from memory.sql.rests_on import resting_on
from memory.sql.tables import memories, memory_owners, messages, rests_on, speakers

LONG_AGO = datetime.min.replace(tzinfo=UTC)
AT_ONCE = 5_000
"""Replies that one statement looks through: some 5 ms."""


@dataclass(frozen=True, slots=True)
class ComparedReplies:
    """The replies that were compared before the transaction, and those that repeat a text."""

    upto: int = 0
    """The `messages.seq` of the last compared reply to the person."""
    compared: frozenset[str] = frozenset()
    repeating: frozenset[str] = frozenset()
    most: int | None = None
    """How many of the newest replies to compare at most."""


NONE_COMPARED = ComparedReplies()
PREVIEWED = ComparedReplies(most=300)
"""For the preview of a forgetting. The forgetting itself compares all replies."""

_COLUMNS = (messages.c.id, messages.c.seq, messages.c.place, messages.c.text, messages.c.sent_at)
_BY_HACHI = messages.c.role == literal_column("'assistant'")
"""The role is a literal, because a partial index is not used with a parameter."""
REPLIES = select(*_COLUMNS).where(_BY_HACHI)


async def find_repeating(
    connection: AsyncConnection,
    texts: ForgottenTexts,
    shown: Collection[str],
    where: ColumnElement[bool],
    scanned: ComparedReplies,
) -> ComparedReplies:
    """Find the replies that meet the condition and repeat one of the texts. Searched are replies to the
    person, replies written from one of the ids `shown`, and replies written from a repeating reply. Those in
    `scanned` are not compared again."""
    names = await _names_of(connection, texts.person)
    own = messages.c.user_id == texts.person
    newest = await connection.scalar(select(func.max(messages.c.seq)).where(own))
    if scanned.upto:
        since_then = REPLIES.where(where, own, messages.c.seq > scanned.upto)
        rows: Sequence[Any] = (await connection.execute(since_then)).all()
    else:
        dated = texts.at.keys() >= {*texts.facts, *texts.messages}
        since = min(texts.at.values(), default=LONG_AGO) if dated else LONG_AGO
        hints = texts.hints(names)
        rows = [row async for row in _newest_first(connection, own, since, where, hints, scanned.most)]
    rows = [row for row in rows if row.id not in shown]
    scanned = await compare(connection, texts, rows, replace(scanned, upto=newest or 0))
    further = {*shown, *scanned.repeating}
    while further:
        before, later = scanned.repeating, list[Any]()
        for part in parts(further):
            found = select(rests_on.c.derived_id).where(
                rests_on.c.source_id.in_(part), rests_on.c.how == "found"
            )
            later += await connection.execute(REPLIES.where(messages.c.id.in_(found), where))
        scanned = await compare(connection, texts, later, scanned)
        further = set(scanned.repeating - before)
    still = await connection.scalars(select(messages.c.id).where(messages.c.id.in_(scanned.repeating)))
    return replace(scanned, repeating=frozenset(still))


def _may_repeat(hints: Sequence[Hint], *, sqlite: bool) -> ColumnElement[bool]:
    """Match replies with one of the hints, and those that are not ASCII, whose letters only Python folds."""
    written = messages.c.text
    lower = func.lower(written if sqlite else collate(written, "C"))
    count = func.length(cast(written, LargeBinary)) if sqlite else func.octet_length(written)

    def has(part: str) -> ColumnElement[bool]:
        return (func.instr if sqlite else func.strpos)(lower, part) > 0

    found = [
        or_(and_(true(), *map(has, sorted(hint.letters, key=len, reverse=True))), *map(has, hint.identifiers))
        for hint in hints
    ]
    return or_(func.length(written) != count, *found)


async def _newest_first(
    connection: AsyncConnection,
    replies: ColumnElement[bool],
    since: datetime,
    where: ColumnElement[bool],
    hints: Sequence[Hint],
    most: int | None,
) -> AsyncIterator[Any]:
    """Yield those of these replies, the newest `most`, that meet the condition and have one of the hints.
    They are read in parts, each of which takes the database some milliseconds."""
    sent_at, seq = messages.c.sent_at, messages.c.seq
    in_order = select(sent_at, seq).where(_BY_HACHI, replies).order_by(sent_at.desc(), seq.desc())
    in_order, wanted = in_order.offset((most or AT_ONCE) - 1).limit(1), REPLIES.where(where, replies)
    if hints:
        wanted = wanted.where(_may_repeat(hints, sqlite=connection.dialect.name == "sqlite"))
    before: Sequence[ColumnElement[bool]] = ()
    while True:
        last = (await connection.execute(in_order.where(sent_at >= since, *before))).first()
        # with two lower bounds SQLite might use the one that is further back
        from_here = [sent_at >= since]
        if last is not None:
            from_here = [sent_at >= last.sent_at, or_(sent_at > last.sent_at, seq >= last.seq)]
        for row in await connection.execute(wanted.where(*from_here, *before)):
            await pause()
            if not hints or any(hint.is_in(row.text) for hint in hints):
                yield row
        if last is None or most is not None:
            return
        before = sent_at <= last.sent_at, or_(sent_at < last.sent_at, seq < last.seq)


async def compare(
    connection: AsyncConnection, texts: ForgottenTexts, replies: Iterable[Any], scanned: ComparedReplies
) -> ComparedReplies:
    """Add these replies to `scanned`, as repeating if they repeat one of the texts and nobody else stated it
    there."""
    names, others = await _names_of(connection, texts.person), _OthersStatements(connection, texts.person)
    compared, found = set(scanned.compared), set(scanned.repeating)
    new = [reply for reply in replies if reply.id not in compared]
    by_key = await texts.by_key(names) if new else ByKey()
    for reply in new:
        await pause()
        compared.add(reply.id)
        repeated = by_key.repeated_in(reply.text, names)
        repeated = [text for text in repeated if texts.at.get(text, reply.sent_at) <= reply.sent_at]
        if repeated and not await others.stated(reply, repeated, names):
            found.add(reply.id)
    return replace(scanned, compared=frozenset(compared), repeating=frozenset(found))


@dataclass(frozen=True)
class _OthersStatements:
    """The statements of other people, by place."""

    connection: AsyncConnection
    person: str
    _facts: dict[str, list[str]] = field(default_factory=dict)

    async def stated(self, reply: Any, texts: Sequence[str], names: str) -> bool:
        """Return whether somebody else stated the words that the reply shares with each text: in a fact of
        that place, or in a message that the reply was written from."""
        if reply.place not in self._facts:
            self._facts[reply.place] = await self._known_in(Place.of_key(reply.place))
        said = [stems(text) for text in (*self._facts[reply.place], *await self._shown(reply.id))]
        has = [(stems(text) | stems(names)) & stems(reply.text) for text in texts]
        return all(words and any(words <= one for one in said) for words in has)

    async def _known_in(self, place: Place) -> list[str]:
        if place.private:
            return []
        link, own = memory_owners.c, user_key(self.person)
        linked = select(link.memory_id).where(~link_is_hidden())
        here = memories.c.id.in_(linked.where(link.owner.in_(Audience.of("", place).keys)))
        too = linked.where(link.owner.startswith("user:"), link.owner != own)
        theirs = or_(memories.c.user_id != self.person, memories.c.id.in_(too))
        return list(await self.connection.scalars(select(memories.c.content).where(here, theirs)))

    async def _shown(self, reply: str) -> list[str]:
        found = select(rests_on.c.source_id).where(rests_on.c.derived_id == reply, rests_on.c.how == "found")
        theirs = (messages.c.role == "user", messages.c.user_id != self.person, is_visible())
        return list(
            await self.connection.scalars(select(messages.c.text).where(messages.c.id.in_(found), *theirs))
        )


async def _names_of(connection: AsyncConnection, user: str) -> str:
    """Return the person's id and the names under which they wrote."""
    theirs = (speakers.c.owner == user_key(user), speakers.c.author != HACHI)
    names = await connection.scalars(select(speakers.c.author).where(*theirs))
    return " ".join([user, *names])


_PRIVATE = func.coalesce(messages.c.place, "") == ""
"""`coalesce` keeps the index from being used, because most messages are private."""


def read_by(owners: Collection[str], user: str, *, shared: bool) -> ColumnElement[bool]:
    """Match the replies that the user or these owners can read, including private replies to anybody. If
    somebody else stated the same (`shared`), replies to the user in places and private replies to others do
    not match."""
    own = messages.c.user_id == user
    own = and_(own, messages.c.place == "") if shared else own
    everywhere = [true()] if GLOBAL in owners else [] if shared else [_PRIVATE]
    return and_(messages.c.role == "assistant", or_(own, in_places(owners), *everywhere))


async def private_to_others(connection: AsyncConnection, ids: Collection[str], user: str) -> frozenset[str]:
    """Return those of these replies that went to others in private. Receipts do not mention them."""
    theirs = _PRIVATE, messages.c.user_id != user
    found = [
        await connection.scalars(select(messages.c.id).where(messages.c.id.in_(part), *theirs))
        for part in parts(ids)
    ]
    return frozenset(id for rows in found for id in rows)


def in_places(owners: Collection[str]) -> ColumnElement[bool]:
    """Match messages in these places, or inside them."""
    places = [owner for owner in owners if owner.startswith("place:")]
    inside = [messages.c.place.startswith(f"{place}/", autoescape=True) for place in places]
    return or_(messages.c.place.in_(places), *inside)


async def answers_to(connection: AsyncConnection, ids: Collection[str]) -> set[str]:
    """Return the replies that answer one of these messages, or follow up on it unasked."""
    answered = select(rests_on.c.derived_id).where(
        rests_on.c.source_id.in_(ids), rests_on.c.how.in_(("answered", "followed"))
    )
    replies = select(messages.c.id).where(messages.c.id.in_(answered), messages.c.role == "assistant")
    return set(await connection.scalars(replies))


async def replies_shown(
    connection: AsyncConnection, gone: Collection[str], replies: Collection[str], where: ColumnElement[bool]
) -> tuple[set[str], set[str]]:
    """Return the further replies whose sources are all in the cascade, and those with other ones too."""
    given: dict[str, set[str]] = {}
    for part in parts({*gone, *replies}):
        found = select(rests_on.c.derived_id).where(rests_on.c.source_id.in_(part), rests_on.c.how == "found")
        those = select(messages.c.id).where(messages.c.id.in_(found), where, is_visible())
        rests = select(rests_on).where(rests_on.c.derived_id.in_(those), rests_on.c.how == "found")
        for row in await connection.execute(rests):
            given.setdefault(row.derived_id, set()).add(row.source_id)
    left = {id: sources.difference(gone, replies) for id, sources in given.items() if id not in replies}
    return {id for id, other in left.items() if not other}, {id for id, other in left.items() if other}


async def shown_to_others(
    connection: AsyncConnection, user: str, theirs: Collection[str], places: Collection[str]
) -> dict[str, Any]:
    """Return the replies to others, in private or in or inside these places, that rest on a row of the user.
    Keyed by id."""
    found: dict[str, Any] = {}
    for part in parts(theirs):
        query = REPLIES.where(messages.c.id.in_(resting_on(part, "found", "covered")))
        read = or_(in_places(places), _PRIVATE)
        rows = await connection.execute(query.where(read, messages.c.user_id != user))
        found |= {row.id: row for row in rows}
    return found
