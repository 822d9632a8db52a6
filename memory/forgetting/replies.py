"""Find the replies that belong to a cascade, by ids and by one rule on words, `repeats`.

The rule applies only to replies to the person, or written from one of the rows, that are not older than it.
"""

import asyncio
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from itertools import chain, pairwise
from operator import attrgetter
from typing import Any

from sqlalchemy import ColumnElement, and_, func, literal_column, or_, select, true
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import GLOBAL, Audience, Place, user_key
from memory.facts.compare import normalise
from memory.index.bm25 import stems
from memory.process.pace import unhurried
from memory.sql.hidden import link_is_hidden, parts
from memory.sql.messages.message_rows import is_visible
from memory.sql.messages.speakers import HACHI
from memory.sql.rests_on import resting_on
from memory.sql.tables import memories, memory_owners, messages, rests_on, speakers
from memory.text import sentences

_LINK = re.compile(r"https?://[^\s<>()\"“”]+")
_RUN = re.compile(r"[^\s<>(),;:\"“”]+")
_DOMAIN = re.compile(r"[\w.-]+")
_DIGITS = re.compile(r"\d+")
FEWEST_DIGITS = 4
_YEAR = re.compile(r"(?:19|20)\d\d")
FEWEST = 2
"""The fewest words that identify a fact. A shorter one is compared with its author's names, or as a whole."""
TELLING = 3
"""The fewest words by which a message is recognised in a reply. They must be close together, because a short
message would otherwise match any long French reply."""


def repeats(text: str, fact: str, names: str = "") -> bool:
    """Return whether the text has all words of the fact, or an identifier of it: an address, or a number of
    four or more digits that is no year. The author's `names` may be missing, because Hachi says "you"."""
    wanted = _identifiers_of(fact)
    return bool(wanted and not wanted.isdisjoint(_identifiers(text))) or has_words_of(text, fact, names)


def has_words_of(text: str, fact: str, names: str = "") -> bool:
    """Return whether the text has all words of the fact."""
    wanted = _telling(fact, names)
    if len(wanted) >= FEWEST:
        return wanted <= stems(text)
    wording = normalise(fact)
    return " " in wording and re.search(rf"(?<!\w){re.escape(wording)}(?!\w)", normalise(text)) is not None


def _telling(fact: str, names: str) -> frozenset[int]:
    """Return the words that identify a fact. The author's `names` count only in a short one."""
    wanted = stems(fact)
    rest = wanted - stems(names)
    return rest if len(rest) >= FEWEST else wanted


def _together(text: str, message: str, names: str) -> bool:
    """Return whether N + 1 consecutive sentences contain the words of a message of N sentences."""
    many, parts = len(sentences(message)) + 1, sentences(text)
    in_a_row = (" ".join(parts[at : at + many]) for at in range(max(1, len(parts) - many + 1)))
    return any(has_words_of(some, message, names) for some in in_a_row)


def _identifiers(text: str) -> frozenset[str]:
    found = _LINK.findall(text)
    for run in _RUN.findall(_LINK.sub(" ", text)):
        found += _addresses(run) or (
            digits for digits in _DIGITS.findall(run) if len(digits) >= FEWEST_DIGITS
        )
    identifiers = frozenset(one.casefold().rstrip(".,!?") for one in found)
    return frozenset(one for one in identifiers if not _YEAR.fullmatch(one))


@lru_cache(maxsize=32)  # a fact is compared with every later reply
def _identifiers_of(fact: str) -> frozenset[str]:
    return _identifiers(fact)


def _addresses(run: str) -> list[str]:
    """Return the e-mail addresses in a text without spaces. A single pattern would take quadratic time."""
    parts = [(name, _DOMAIN.match(after)) for name, after in pairwise(run.split("@"))]
    found = [(name, domain[0]) for name, domain in parts if name and domain]
    return [f"{name}@{domain}" for name, domain in found if "." in domain.strip(".")]


@dataclass(frozen=True, slots=True)
class ForgottenTexts:
    """The texts of a cascade, which replies may repeat."""

    person: str
    facts: Collection[str]
    messages: Collection[str] = ()
    """The texts of messages, which are recognised by words close together."""
    at: Mapping[str, datetime] = field(default_factory=dict)
    """When each of these texts was first stated. Older replies do not count."""

    def repeated_in(self, text: str, names: str, by_word: Mapping[int, Sequence[str]]) -> list[str]:
        """Return the facts and messages that the text repeats. `by_word` is the result of
        `messages_by_word`."""
        facts = [fact for fact in self.facts if repeats(text, fact, names)]
        near = (said for word in stems(text) for said in by_word.get(word, ()))
        found = (said for said in near if has_words_of(text, said, names))
        return facts + [said for said in found if _together(text, said, names)]

    def messages_by_word(self, names: str) -> dict[int, list[str]]:
        """Return the messages that are long enough, keyed by their rarest word, which a repetition must
        contain. So a reply is not compared with each of thousands of messages."""
        words = {said: _telling(said, names) for said in self.messages if len(stems(said)) >= TELLING}
        often, found = Counter(chain.from_iterable(words.values())), defaultdict[int, list[str]](list)
        for said, some in words.items():
            found[min(some, key=often.__getitem__)].append(said)
        return found


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
REPLIES = select(*_COLUMNS).where(messages.c.role == literal_column("'assistant'"))
"""The role is a literal, because a partial index is not used with a parameter."""


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
    own = REPLIES.where(where, messages.c.user_id == texts.person)
    if scanned.upto:
        own = own.where(messages.c.seq > scanned.upto)
    elif texts.at and texts.at.keys() >= {*texts.facts, *texts.messages}:
        own = own.where(messages.c.sent_at >= min(texts.at.values()))
    if scanned.most:
        own = own.order_by(messages.c.sent_at.desc()).limit(scanned.most)
    rows = [row async for row in unhurried(await connection.execute(own))]
    rows.sort(key=attrgetter("seq"))  # sorting in SQL would read all replies
    gone = {*shown}
    rows = [row for row in rows if row.id not in gone]
    scanned = replace(scanned, upto=max([scanned.upto, *(row.seq for row in rows)]))
    scanned = await compare(connection, texts, rows, scanned)
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


async def compare(
    connection: AsyncConnection, texts: ForgottenTexts, replies: Iterable[Any], scanned: ComparedReplies
) -> ComparedReplies:
    """Add these replies to `scanned`, as repeating if they repeat one of the texts and nobody else stated it
    there."""
    names = await _names_of(connection, texts.person)
    others, compared, found = (
        _OthersStatements(connection, texts.person),
        set(scanned.compared),
        set(scanned.repeating),
    )
    by_word = texts.messages_by_word(names)
    for reply in replies:
        if reply.id in compared:
            continue
        await asyncio.sleep(0)  # let other tasks run
        compared.add(reply.id)
        repeated = texts.repeated_in(reply.text, names, by_word)
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
