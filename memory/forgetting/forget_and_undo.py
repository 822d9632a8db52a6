"""Forget a fact or a message with everything that shows it, and undo that.

It is hidden in one transaction, and deleted when the time to undo is over (`purge`).
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import PRIVATE, Place, user_key
from memory.errors import NotFound
from memory.facts.derived import withhold
from memory.forgetting import hiding
from memory.forgetting.offers import BY_ITSELF, beside, find
from memory.forgetting.reach import Reach, reach_of
from memory.forgetting.replies import PREVIEWED
from memory.records import ForgetCandidate, ForgetKind, Forgotten
from memory.sql import hidden as entries
from memory.sql.engine import Database
from memory.sql.engine.errors import retried
from memory.sql.hidden import Kind, link_id
from memory.sql.memories.memory_rows import fetch
from memory.sql.messages.message_rows import kept
from memory.sql.tables import memories, messages


@dataclass(frozen=True)
class Forgetting:
    database: Database
    clock: Callable[[], datetime]
    undo_for: timedelta

    async def forget(
        self, kind: ForgetKind, id: str, user: str, place: Place = PRIVATE, *, asked_in: str = ""
    ) -> tuple[Forgotten, frozenset[str]]:
        """Forget something of the person's by its id; their message `asked_in`, which asks for it, goes too.
        Returns the receipt, which offers what may be read in `place`, and the ids of what is hidden. Raises
        NotFound if `user` told nothing of it."""
        return await retried(lambda: self._hide(kind, id, user, place, asked_in))

    async def named(self, kind: ForgetKind, id: str, user: str, place: Place = PRIVATE) -> ForgetCandidate:
        """Return what the person names by this id, or its first eight characters. Raises NotFound."""
        async with self.database.read() as connection:
            return await find(connection, kind, id, user, place)

    async def preview(self, candidate: ForgetCandidate, user: str) -> ForgetCandidate:
        """Return the candidate with the texts of the messages that go with it, and how many replies do, of
        the newest ones."""
        async with self.database.read() as connection:
            reach = await reach_of(connection, candidate, user, self.clock(), PREVIEWED)
            said = select(messages.c.text).where(messages.c.id.in_(reach.messages), kept())
            texts = await connection.scalars(said.order_by(messages.c.seq))
            gone = select(func.count()).where(messages.c.id.in_(reach.replies), kept())
            replies = (await connection.execute(gone)).scalar_one()
        return replace(candidate, messages=tuple(texts), replies=replies)

    async def _hide(
        self, kind: ForgetKind, id: str, user: str, place: Place, asked_in: str
    ) -> tuple[Forgotten, frozenset[str]]:
        """Hide what a forgetting reaches. Replies are compared before the transaction, in it only new
        ones."""
        async with self.database.read() as connection:
            named = await find(connection, kind, id, user, place, asked_in)
            reach = await reach_of(connection, named, user, self.clock())
        async with self.database.write(lock=reach.owners | {f"tasks:{user}"}) as connection:
            now = self.clock()
            named = await find(connection, kind, named.id, user, place, asked_in)
            reach = await reach_of(connection, named, user, now, reach.scanned)
            if named.kind == "memory" and not reach.links:
                raise NotFound(f"memory {named.id!r} is not {user}'s to take away: somebody else said it")
            until = now + self.undo_for
            row = None if kind == "conversation" else named.id
            id = await entries.begin(connection, user, "forgotten", now, until, row)
            receipt = _receipt(reach, named, await hiding.hide(connection, id, reach, now))
            summaries = await _withhold(connection, reach, id, now)
            offered = await beside(connection, reach, place)
        if self.undo_for:
            receipt = replace(receipt, undo_id=id, undo_until=until)
        return replace(receipt, summaries=summaries, offered=offered), reach.ids

    async def undo(self, id: str, user: str) -> Forgotten:
        """Restore what was forgotten as `undo_id`, or its first eight characters. Raises NotFound if it is
        too late."""
        return await retried(lambda: self._undo(id, user))

    async def _undo(self, id: str, user: str) -> Forgotten:
        async with self.database.write(lock={user_key(user)}) as connection:
            now = self.clock()
            row = await hiding.undoable(connection, id, user, now)
            back = await hiding.show(connection, row.id, now)
            said, facts = back.get("message", set()), {id.partition(" ")[0] for id in back.get("link", ())}
            await withhold(connection, now, message_ids=said, memory_ids=facts)  # to be told again
            found = await fetch(connection, memories.c.id.in_(facts), now) if facts else []
            own = select(func.count()).where(messages.c.id.in_(said), messages.c.role == "user")
            mine = (await connection.execute(own)).scalar_one()
            named = next((memory for memory in found if memory.id == row.named), None)
            kind = next((kind for kind in BY_ITSELF if row.named in back.get(kind, ())), None)
            text = (await find(connection, kind, row.named, user, PRIVATE)).content if kind else ""
        return Forgotten(
            named,
            tuple(found),
            messages=mine,
            replies=len(said) - mine,
            tasks=len(back.get("task", ())),
            entries=len(back.get("entry", ())),
            text=text,
        )


def _receipt(reach: Reach, named: ForgetCandidate, gone: Mapping[Kind, Collection[str]]) -> Forgotten:
    """Return the receipt of what has `gone` from every read."""
    links = {link_id(*link): link for link in reach.links}
    facts = {links[id][0] for id in gone["link"]}
    memory = next((fact for fact in reach.facts if fact.id == named.id), None)
    return Forgotten(
        memory,
        tuple(fact for fact in reach.facts if fact.id in facts),
        messages=len(reach.messages.intersection(gone["message"])),
        replies=len(reach.replies.intersection(gone["message"])),
        kept=reach.shown,
        tasks=len(gone["task"]),
        entries=len(gone["entry"]),
        text="" if memory else named.content,
    )


async def _withhold(connection: AsyncConnection, reach: Reach, forgetting: str, now: datetime) -> int:
    facts = [fact.id for fact in reach.facts]
    said = reach.messages | reach.replies
    of_facts = await withhold(connection, now, memory_ids=facts, owners=reach.owners, forgetting=forgetting)
    return of_facts + await withhold(connection, now, message_ids=said, forgetting=forgetting)
