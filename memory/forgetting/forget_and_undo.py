"""Forget a memory or a message with its cascade, undo that, and make a memory private.

Rows are hidden in one transaction. `purge` deletes them when the time to undo is over.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal

from sqlalchemy import ColumnElement, Select, and_, func, insert, or_, select, true
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import PRIVATE, Audience, Place, user_key
from memory.errors import NotFound
from memory.facts.compare import content_key
from memory.facts.derived import withhold
from memory.forgetting import hiding
from memory.forgetting.cascade import Cascade, cascade_of, of_fact, stated_only_by
from memory.forgetting.replies import PREVIEWED, in_places, private_to_others
from memory.process.spans import new_id
from memory.records import ForgetCandidate, ForgetKind, Forgotten, Memory
from memory.sql import hidden as entries
from memory.sql import tables as t
from memory.sql.engine import Database
from memory.sql.engine.errors import retried
from memory.sql.hidden import ENTRY_IS_HIDDEN, ENTRY_IS_WITHDRAWN, TASK_IS_HIDDEN, Kind, link_id
from memory.sql.jobs.deliveries import tell_platforms
from memory.sql.memories.memory_rows import begins, fetch
from memory.sql.memories.owner_links import link
from memory.sql.memories.replacements import is_active
from memory.sql.memories.store import MADE_PRIVATE, tellers
from memory.sql.messages.message_rows import is_visible
from memory.sql.readable import messages_readable
from memory.sql.rests_on import stated_in

ITEMS: tuple[Literal["entry", "task"], ...] = ("entry", "task")
BY_ITSELF: tuple[Literal["message", "entry", "task"], ...] = ("message", *ITEMS)
"""The kinds of rows that are hidden under their own id."""


async def find_named(
    connection: AsyncConnection, kind: ForgetKind, id: str, user: str, place: Place, asked_in: str = ""
) -> ForgetCandidate:
    """Return the row that the person names by this id, or by a prefix of eight or more characters, with their
    message that asks for it. A conversation needs its whole id. An entry or a task must be readable in the
    place. Raises NotFound."""
    theirs = _theirs(kind, user, place)
    column = theirs.selected_columns[0]
    if kind == "conversation":
        theirs = theirs.where(column == id).order_by(t.messages.c.seq).limit(1)
    else:
        theirs = theirs.where(begins(column, id))
    rows = (await connection.execute(theirs)).all()
    if len(rows) != 1:
        raise NotFound(f"{user} has no {kind} {id!r} to forget; list what there is for its id")
    asks = select(t.messages.c.id).where(
        t.messages.c.user_id == user, t.messages.c.role == "user", is_visible()
    )
    asking = await connection.scalar(asks.where(begins(t.messages.c.id, asked_in)))
    return _candidate(kind, rows[0], asking or "")


async def offered_with(
    connection: AsyncConnection, cascade: Cascade, place: Place
) -> tuple[ForgetCandidate, ...]:
    """Return the entries and tasks, visible in the place, that rest on the messages of the cascade alone."""
    found: list[ForgetCandidate] = []
    for kind in ITEMS:
        alone = stated_only_by(cascade.messages, cascade.person, _theirs(kind, cascade.person, place))
        found += [_candidate(kind, row, "") for row in await connection.execute(alone)]
    return tuple(found)


def _theirs(kind: ForgetKind, user: str, place: Place) -> Select[Any]:
    """Select the id, text and time of the person's rows of this kind. Memories are those of everybody."""
    around = [where.key for where in place.containing()]
    columns: tuple[Any, ...]
    theirs: ColumnElement[bool]
    match kind:
        case "memory":
            columns, theirs = (t.memories.c.id, t.memories.c.content, t.memories.c.created_at), true()
        case "message":
            columns = (t.messages.c.id, t.messages.c.text, t.messages.c.sent_at)
            theirs = and_(t.messages.c.user_id == user, is_visible())
        case "conversation":
            columns = (t.messages.c.conversation_id, t.messages.c.text, t.messages.c.sent_at)
            theirs = and_(messages_readable(Audience.of(user)), is_visible())
        case "task":
            columns = (t.tasks.c.id, t.tasks.c.description, t.tasks.c.created_at)
            here = true() if place.private else t.tasks.c.place == place.stored
            theirs = and_(t.tasks.c.user_id == user, ~TASK_IS_HIDDEN, here)
        case "entry":
            entry = t.context_entries.c
            columns = (entry.id, entry.value, entry.said_at, entry.field)
            here = true() if place.private else and_(entry.place.in_(around), ~ENTRY_IS_WITHDRAWN)
            theirs = and_(entry.user_id == user, entry.value != "", ~ENTRY_IS_HIDDEN, here)
    return select(*columns).where(theirs)


def _candidate(kind: ForgetKind, row: Any, asked_in: str) -> ForgetCandidate:
    """Return the candidate; a profile entry's text begins with its field's name: ``location: Lyon``."""
    id, text, at, *field = row
    text = f"{field[0].rpartition('.')[2]}: {text}" if field else text
    return ForgetCandidate(id, kind, text, at, asked_in)


@dataclass(frozen=True)
class Forgetting:
    database: Database
    clock: Callable[[], datetime]
    undo_for: timedelta

    async def forget(
        self, kind: ForgetKind, id: str, user: str, place: Place = PRIVATE, *, asked_in: str = ""
    ) -> tuple[Forgotten, frozenset[str]]:
        """Forget a row of the person by its id, and their message `asked_in`, which asks for it. Returns the
        receipt, which offers related rows that may be read in `place`, and the ids of the cascade. Raises
        NotFound if `user` did not state it."""
        return await retried(lambda: self._hide(kind, id, user, place, asked_in))

    async def named(self, kind: ForgetKind, id: str, user: str, place: Place = PRIVATE) -> ForgetCandidate:
        """Return the person's row with this id, or prefix of eight or more characters. Raises NotFound."""
        async with self.database.read() as connection:
            return await find_named(connection, kind, id, user, place)

    async def preview(self, candidate: ForgetCandidate, user: str) -> ForgetCandidate:
        """Return the candidate with the texts of the messages in its cascade, and the number of replies in
        it. Only the newest replies are compared."""
        async with self.database.read() as connection:
            cascade = await cascade_of(connection, candidate, user, self.clock(), PREVIEWED)
            said = select(t.messages.c.text).where(t.messages.c.id.in_(cascade.messages), is_visible())
            texts = await connection.scalars(said.order_by(t.messages.c.seq))
            here = t.messages.c.id.in_(cascade.replies - cascade.elsewhere)
            gone = select(func.count()).where(here, is_visible())
            replies = (await connection.execute(gone)).scalar_one()
        return replace(candidate, messages=tuple(texts), replies=replies)

    async def _hide(
        self, kind: ForgetKind, id: str, user: str, place: Place, asked_in: str
    ) -> tuple[Forgotten, frozenset[str]]:
        """Hide a cascade. Replies are compared before the transaction; inside it only new ones are."""
        async with self.database.read() as connection:
            named = await find_named(connection, kind, id, user, place, asked_in)
            cascade = await cascade_of(connection, named, user, self.clock())
        async with self.database.write(lock=cascade.owners | {f"tasks:{user}"}) as connection:
            now = self.clock()
            named = await find_named(connection, kind, named.id, user, place, asked_in)
            cascade = await cascade_of(connection, named, user, now, cascade.scanned)
            if named.kind == "memory" and not cascade.links:
                raise NotFound(
                    f"memory {named.id!r} cannot be forgotten by {user}: it was stated by somebody else"
                )
            until = now + self.undo_for
            row = None if kind == "conversation" else named.id
            id = await entries.begin(connection, user, "forgotten", now, until, row)
            receipt = _receipt(cascade, named, await hiding.hide(connection, id, cascade, now))
            facts = [fact.id for fact in cascade.facts]
            said = cascade.messages | cascade.replies - cascade.elsewhere
            await withhold(connection, now, message_ids=cascade.elsewhere, forgetting=id)
            summaries = await withhold(
                connection, now, memory_ids=facts, owners=cascade.owners, forgetting=id
            )
            summaries += await withhold(connection, now, message_ids=said, forgetting=id)
            offered = await offered_with(connection, cascade, place)
        if self.undo_for:
            receipt = replace(receipt, undo_id=id, undo_until=until)
        return replace(receipt, summaries=summaries, offered=offered), cascade.ids

    async def undo(self, id: str, user: str) -> Forgotten:
        """Restore the rows of the forgetting with this id, or prefix of eight or more characters. Raises
        NotFound if it is too late."""
        return await retried(lambda: self._undo(id, user))

    async def _undo(self, id: str, user: str) -> Forgotten:
        async with self.database.write(lock={user_key(user)}) as connection:
            now = self.clock()
            row = await hiding.undoable(connection, id, user, now)
            back = await hiding.show(connection, row.id, now)
            said, facts = back.get("message", set()), {id.partition(" ")[0] for id in back.get("link", ())}
            await withhold(connection, now, message_ids=said, memory_ids=facts)  # schedules their rewriting
            found = await fetch(connection, t.memories.c.id.in_(facts), now) if facts else []
            own = select(func.count()).where(t.messages.c.id.in_(said), t.messages.c.role == "user")
            mine = (await connection.execute(own)).scalar_one()
            replies = len(said) - mine - len(await private_to_others(connection, said, user))
            named = next((memory for memory in found if memory.id == row.named), None)
            kind = next((kind for kind in BY_ITSELF if row.named in back.get(kind, ())), None)
            text = (await find_named(connection, kind, row.named, user, PRIVATE)).content if kind else ""
        return Forgotten(
            named,
            tuple(found),
            messages=mine,
            replies=replies,
            tasks=len(back.get("task", ())),
            entries=len(back.get("entry", ())),
            text=text,
        )


def _receipt(cascade: Cascade, named: ForgetCandidate, gone: Mapping[Kind, Collection[str]]) -> Forgotten:
    """Return the receipt. `gone` are the rows that the forgetting has newly hidden."""
    links = {link_id(*link): link for link in cascade.links}
    facts = {links[id][0] for id in gone["link"]}
    memory = next((fact for fact in cascade.facts if fact.id == named.id), None)
    return Forgotten(
        memory,
        tuple(fact for fact in cascade.facts if fact.id in facts),
        messages=len(cascade.messages.intersection(gone["message"])),
        replies=len((cascade.replies - cascade.elsewhere).intersection(gone["message"])),
        kept=cascade.shown,
        tasks=len(gone["task"]),
        entries=len(gone["entry"]),
        text="" if memory else named.content,
    )


async def make_private(database: Database, clock: Callable[[], datetime], memory: Memory, user: str) -> None:
    """Withdraw a person's memory from all places. The memories that it had superseded, its messages, and
    replies that answer those or contain it are withdrawn too; such private replies to others are hidden.
    Raises NotFound if the memory is in no place, or if somebody else stated it too."""
    await retried(lambda: _make_private(database, clock, memory, user))


async def _make_private(database: Database, clock: Callable[[], datetime], memory: Memory, user: str) -> None:
    async with database.read() as connection:
        scanned = (await of_fact(connection, memory.id, user, clock())).scanned
    async with database.write(lock=memory.owners | {user_key(user)}) as connection:
        now = clock()
        cascade = await of_fact(connection, memory.id, user, now, scanned=scanned)
        places = {owner for id, owner in cascade.links if id == memory.id and owner.startswith("place:")}
        links = {one for one in cascade.links if one[1] in places}
        [memory] = await fetch(connection, t.memories.c.id == memory.id, now) or [memory]
        shared = any(owner.startswith("place:") for owner in memory.owners)
        if not shared or tellers(memory.owners, memory.user_id) != {user_key(user)}:
            raise NotFound(
                f"memory {memory.id!r} cannot be made private by {user}: it is in no place, or somebody else "
                "stated it too"
            )
        await _link_to(connection, memory, user, now)
        id = await entries.begin(connection, user, "private", now, None, memory.id)
        withdrawn = await _withdrawn_rows(connection, cascade.messages | cascade.replies, places)
        rows: dict[Kind, Collection[str]] = {"link": [link_id(*one) for one in links], "told": withdrawn}
        await entries.hide(connection, id, {**rows, "message": cascade.elsewhere})
        await tell_platforms(connection, {*withdrawn, *cascade.elsewhere}, now)
        facts = [fact.id for fact in cascade.facts]
        await withhold(connection, now, message_ids=withdrawn, memory_ids=facts, owners=places, forgetting=id)
        await _note(connection, memory.id, user, now)


async def _link_to(connection: AsyncConnection, memory: Memory, user: str, now: datetime) -> None:
    """Link the memory to the person, unless they already own it or an active memory in the same words."""
    own, link_of = user_key(user), t.memory_owners.c
    key = content_key(memory.content)
    same = or_(link_of.memory_id == memory.id, and_(link_of.content_key == key, is_active()))
    theirs = select(link_of.memory_id).where(link_of.owner == own, same)
    if await connection.scalar(theirs, {"now": now}) is None:
        await link(connection, memory.id, [own], key, now)


async def _withdrawn_rows(
    connection: AsyncConnection, ids: Collection[str], places: Collection[str]
) -> set[str]:
    """Return those of these messages that were sent in the places or inside them, and the profile entries
    that rest on these messages alone."""
    here = select(t.messages.c.id).where(t.messages.c.id.in_(ids), in_places(places))
    sent = set(await connection.scalars(here))
    others = select(t.rests_on.c.derived_id).where(
        t.rests_on.c.source_id.not_in(sent), t.rests_on.c.how == "stated"
    )
    entry = t.context_entries.c.id
    alone = select(entry).where(entry.in_(stated_in(sent)), entry.not_in(others))
    return sent.union(await connection.scalars(alone))


async def _note(connection: AsyncConnection, id: str, user: str, now: datetime) -> None:
    """Add a step to the history of the memory: it was made private."""
    step = {"id": new_id(), "user_id": user, "old_id": id, "new_id": id, "owners": [user_key(user)]}
    await connection.execute(insert(t.memory_updates).values(**step, reason=MADE_PRIVATE, created_at=now))
