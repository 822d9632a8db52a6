"""Store the transcript: every message, in order of arrival, readable by the audience of its place.

Hidden messages are never read. The exception is `branches`, which reads messages replaced in a client's
history.
"""

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache, partial
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Executable,
    Table,
    and_,
    bindparam,
    exists,
    func,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import Insert, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import Audience, Place, owners_of, user_key
from memory.errors import NotFound
from memory.records import Message
from memory.sql.engine import Database
from memory.sql.memories.memory_rows import begins
from memory.sql.messages.message_rows import (
    AROUND,
    BY_IDS,
    FOLLOWING,
    LAST,
    LINES,
    MESSAGE,
    OF_SEARCH,
    Condition,
    Line,
    heard_by,
    is_visible,
    to_line,
    to_message,
)
from memory.sql.messages.speakers import Speakers
from memory.sql.readable import messages_readable, people_and_places
from memory.sql.tables import (
    conversations,
    forgettings,
    hidden,
    message_origins,
    messages,
    rests_on,
    speakers,
    users,
)
from memory.text import without_links

_hides = hidden.join(forgettings, forgettings.c.id == hidden.c.forgetting_id)
_this = (hidden.c.row_id == messages.c.id, hidden.c.kind == "message")
_REPLACED = (~is_visible()).label("replaced")
_ON_A_BRANCH = ~exists().select_from(_hides).where(*_this, forgettings.c.why != "edited")
"""True for messages that are visible, or hidden only by a client's edit of its history."""


MOST_KNOWN = 10_000
"""Keys in the cache of stored rows. A full cache is emptied."""


def after_a_cut(limit: int) -> int:
    """Return how many messages stay in a prompt that had more than `limit`: about half, in pairs."""
    return min(limit, math.ceil(limit / 4) * 2)


class Transcript:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._stored_keys: set[tuple[str, ...]] = set()
        """Keys of users, conversations and speakers that the database already has."""
        self.speakers = Speakers(database)

    async def append(
        self,
        connection: AsyncConnection,
        message: Message,
        *,
        user: str,
        place: Place,
        now: datetime,
        answering: str | None = None,
        unless: Condition | None = None,
    ) -> Message | None:
        """Write a message in the caller's transaction, with its conversation, user and speaker if they
        are new. Writes nothing and returns None if a message with this id exists, if the message that it
        is `answering` is deleted or hidden, or if `unless` is true. Locks the answered message until the
        transaction ends."""
        key = "" if place.private else place.key
        conversation = {
            "id": message.conversation_id,
            "user_id": user if place.private else None,
            "place": key,
            "created_at": now,
        }
        values = {column.name: getattr(message, column.name) for column in MESSAGE}
        values |= {"user_id": user, "place": key, "text": without_links(message.text)}
        statement: Executable
        if answering is None:
            statement = self._insert(messages).returning(messages.c.id)
        else:
            statement = _answer(unless and unless.holds)
            values = {f"new_{name}": value for name, value in values.items()}
            values |= {"answering": answering, **(unless.values if unless else {})}
        row = (await connection.execute(statement, values)).first()
        if row is None:
            return None
        owners = sorted(owners_of(user, place))  # in a fixed order, so that no two transactions deadlock
        rows: list[tuple[Table, dict[str, Any]]] = [
            (users, {"id": user, "created_at": now}),
            (conversations, conversation),
            *((speakers, {"owner": owner, "author": message.author}) for owner in owners),
        ]
        new = []
        for table, values in rows:
            known = (table.name, *(str(values[column.name]) for column in table.primary_key))
            if known not in self._stored_keys:
                await connection.execute(self._insert(table), values)
                new.append(known)
        if new:
            self._database.after_commit(connection, partial(self._remember, new))
        return message

    def _remember(self, written: Iterable[tuple[str, ...]]) -> None:
        if len(self._stored_keys) >= MOST_KNOWN:
            self._stored_keys.clear()
        self._stored_keys.update(written)
        self.speakers.new_author()

    def _insert(self, table: Table) -> Insert:
        """Return an INSERT that does nothing if the row exists."""
        return insert(table).on_conflict_do_nothing()

    async def _named_as_now(self, rows: Sequence[Any], audience: Audience) -> list[Message]:
        """Return these messages with the current display names of their authors. In private the names
        stay as they were when the messages were sent."""
        there = {row.user_id for row in rows if _is_signed(row)} if people_and_places(audience)[1] else set()
        names = await self.speakers.names(there, audience)
        return [
            replace(to_message(row), author=names[row.user_id])
            if _is_signed(row) and row.user_id in names
            else to_message(row)
            for row in rows
        ]

    async def note_name(self, user: str, name: str, place: Place) -> None:
        """Store a person's display name in a place, even if they have written nothing there."""
        rows = [
            {"owner": owner, "author": name} for owner in sorted({*owners_of(user, place), user_key(user)})
        ]
        if not self._stored_keys.issuperset((speakers.name, *row.values()) for row in rows):
            async with self._database.write() as connection:
                await connection.execute(self._insert(speakers), rows)
                self._database.after_commit(connection, self.speakers.new_author)

    async def last(self, conversation: str, audience: Audience, limit: int) -> list[Message]:
        """Return the newest messages of a conversation, oldest first."""
        return [message for message, _ in await self._last(conversation, audience, limit)]

    async def block(
        self, conversation: str, audience: Audience, limit: int, without: str | None
    ) -> list[Message]:
        """Return the newest messages before the one with the id `without`, oldest first. They start at
        the same message as the prompt of the newest reply, so that a model server can reuse its prompt
        cache. If there are more than `limit`, only the newest `after_a_cut(limit)` remain."""
        rows = await self._last(conversation, audience, limit + 2)
        rows = [row for row in rows if row[0].id != without]
        end = max((at for at, (_, shown) in enumerate(rows) if shown), default=-1)
        begins = next((at + 1 for at in range(end, -1, -1) if not rows[at][1]), 0)
        history = [message for message, _ in rows[begins:]]
        return history if len(history) <= limit else history[len(history) - after_a_cut(limit) :]

    async def _last(self, conversation: str, audience: Audience, limit: int) -> list[tuple[Message, bool]]:
        """Return the newest messages, oldest first, each with whether the newest reply's prompt had it."""
        people, places = people_and_places(audience)
        given = {"conversation": conversation, "people": people, "places": places, "most": limit}
        rows = await self._database.rows(LAST, given)
        named = await self._named_as_now(rows, audience)
        return [*zip(named, (bool(row.in_prompt) for row in rows), strict=True)][::-1]

    async def branches(self, conversation: str, user: str, limit: int) -> list[Message]:
        """Return the newest messages of the user's private conversation, oldest first, with replaced ones."""
        query = (
            select(*MESSAGE, _REPLACED)
            .where(messages.c.conversation_id == conversation, messages.c.user_id == user)
            .where(messages.c.place == "", _ON_A_BRANCH)
            .order_by(messages.c.seq.desc())
            .limit(limit)
        )
        return [_on_branch(row) for row in reversed(await self._database.rows(query))]

    async def talks_with(self, user: str, prefix: str, text: str, limit: int) -> list[list[Message]]:
        """Return the user's private conversations, newest first, whose id begins with `prefix` and that
        contain a message with this text. Replaced messages count. Each is a list as from `branches`;
        `limit` is the number of messages in all."""
        begins = messages.c.conversation_id.startswith(prefix, autoescape=True)
        mine = and_(messages.c.user_id == user, messages.c.place == "", begins, _ON_A_BRANCH)
        holding = select(messages.c.conversation_id).where(mine, messages.c.text == text)
        query = select(*MESSAGE, _REPLACED).where(mine, messages.c.conversation_id.in_(holding))
        talks: dict[str, list[Message]] = {}
        for row in await self._database.rows(query.order_by(messages.c.seq.desc()).limit(limit)):
            talks.setdefault(row.conversation_id, []).append(_on_branch(row))
        return [talk[::-1] for talk in talks.values()]

    async def page(
        self, audience: Audience, limit: int, before: str | None = None, conversation: str | None = None
    ) -> list[Message]:
        """Return the messages this audience may read, newest first. `conversation` selects one
        conversation; `before`, the id of a message, selects older ones. Raises NotFound if the audience
        may not read the message `before`."""
        query = select(messages).where(messages_readable(audience), is_visible())
        if conversation is not None:
            query = query.where(messages.c.conversation_id == conversation)
        if before is not None:
            query = query.where(messages.c.seq < await position_of(self._database, before, audience))
        rows = await self._database.rows(query.order_by(messages.c.seq.desc()).limit(limit))
        return await self._named_as_now(rows, audience)

    async def find_message(self, id: str, user: str) -> Message:
        """Return the person's message with this id, or prefix of eight characters. Raises NotFound."""
        mine = select(*MESSAGE).where(
            begins(messages.c.id, id), messages.c.user_id == user, messages.c.role == "user"
        )
        rows = await self._database.rows(mine.where(is_visible()).limit(2))
        if len(rows) != 1:
            raise NotFound(f"no message {id!r} of {user}'s; `hachi messages list` shows the ids")
        return to_message(rows[0])

    async def dismiss(self, id: str, user: str) -> None:
        """Remove from this reply to the user its offer to forget something."""
        reply = (messages.c.id == id, messages.c.user_id == user, messages.c.role == "assistant")
        await self._database.run(update(messages).where(*reply).values(asks=None))

    async def waiting(self, conversation: str, user: str, text: str) -> str | None:
        """Return the id of the user's newest message with this text in the conversation, if it waits for
        results of a client's tools."""
        query = (
            select(messages.c.id)
            .where(messages.c.conversation_id == conversation, messages.c.user_id == user)
            .where(messages.c.client_items.is_not(None), messages.c.text == text, is_visible())
            .order_by(messages.c.seq.desc())
            .limit(1)
        )
        return next((row.id for row in await self._database.rows(query)), None)

    async def sent_as(self, origin: str) -> tuple[str, str] | None:
        """Return the id and the user of the message or reply with this id on a chat platform. None if it
        is forgotten or was never stored."""
        query = (
            select(messages.c.id, messages.c.user_id)
            .join(message_origins, message_origins.c.message_id == messages.c.id)
            .where(message_origins.c.origin == origin, is_visible())
            .where(or_(message_origins.c.posted == 0, messages.c.role == "assistant"))
        )
        rows = await self._database.rows(query)
        return (rows[0].id, rows[0].user_id) if rows else None

    async def on_a_branch(self, origin: str, user: str) -> Any | None:
        """Return the id and the conversation of the user's private message with this origin, even if it
        was replaced. None if it is forgotten or was never stored."""
        origins = message_origins.join(messages, messages.c.id == message_origins.c.message_id)
        query = select(messages.c.id, messages.c.conversation_id).select_from(origins)
        mine = messages.c.user_id == user, messages.c.place == "", message_origins.c.origin == origin
        return next(iter(await self._database.rows(query.where(*mine, _ON_A_BRANCH))), None)

    async def unanswered(self, origins: Collection[str], text: str) -> str | None:
        """Return the id of a stored message that has this text, one of these ids on a chat platform, and
        no stored reply. A killed process leaves such messages."""
        if not origins:
            return None
        answered = exists().where(rests_on.c.source_id == messages.c.id, rests_on.c.how == "answered")
        query = (
            select(messages.c.id)
            .join(message_origins, message_origins.c.message_id == messages.c.id)
            .where(message_origins.c.origin.in_(origins), message_origins.c.posted == 0)
            .where(messages.c.text == text, is_visible(), ~answered)
        )
        return next((row.id for row in await self._database.rows(query)), None)

    async def following(
        self, conversation: str, owner: str, seq: int | None, limit: int, *, most: int
    ) -> list[Line]:
        """Return, in order, the oldest `limit` messages that follow `seq` in a conversation and that
        `owner` (``place:P``, or ``user:U`` in private) may read. None as `seq` means the last message
        that the summary covers. If more than `most` follow, return the newest `limit` instead."""
        given = {"conversation": conversation, "of": owner, "after": seq, "most": most + 1}
        given["by"] = owner.removeprefix("user:")
        rows = await self._database.rows(FOLLOWING[owner.startswith("user:")], given)
        rows = rows[:limit] if len(rows) > most else rows[-limit:]
        return [to_line(row) for row in reversed(rows)]

    async def lines(self, ids: Collection[str], owner: str) -> list[Line]:
        """Return those of these messages that `owner` may read, in order."""
        if not ids:
            return []
        query = LINES.where(messages.c.id.in_(ids), heard_by(owner), is_visible()).order_by(messages.c.seq)
        return [to_line(row) for row in await self._database.rows(query)]

    async def newest(
        self,
        audience: Audience,
        limit: int,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        exclude: Collection[str] = (),
    ) -> list[Message]:
        """Return people's messages, not replies, newest first, sent at `since` or later and before
        `until`."""
        query = select(messages).where(messages_readable(audience), messages.c.role == "user", is_visible())
        query = query.where(messages.c.sent_at >= since) if since else query
        query = query.where(messages.c.sent_at < until) if until else query
        query = query.where(messages.c.id.not_in(exclude)) if exclude else query
        rows = await self._database.rows(query.order_by(messages.c.seq.desc()).limit(limit))
        return await self._named_as_now(rows, audience)

    async def by_ids(self, ids: Collection[str], audience: Audience) -> dict[str, Message]:
        return {row.id: to_message(row) for row in await self.rows(ids, audience, BY_IDS)}

    async def rows(self, ids: Collection[str], audience: Audience, query: Any = OF_SEARCH) -> Sequence[Any]:
        """Return the rows of these messages, without records, because a search reads a hundred of them."""
        if not ids:
            return ()
        people, places = people_and_places(audience)
        return await self._database.rows(query, {"ids": list(ids), "people": people, "places": places})

    async def neighbours(self, ids: Collection[str], audience: Audience) -> dict[str, list[Line]]:
        """Return each of these messages with up to `REACH` messages on either side of it in its conversation,
        in order, as far as this audience may read them."""
        found: dict[str, list[Line]] = {}
        if ids:
            people, places = people_and_places(audience)
            given = {"hits": list(ids), "people": people, "places": places}
            rows = await self._database.rows(AROUND, given)
            for row, message in zip(rows, await self._named_as_now(rows, audience), strict=True):
                found.setdefault(row.hit, []).append(replace(to_line(row), message=message))
        return found

    async def written_by(self, user: str, ids: Collection[str]) -> set[str]:
        """Return those of these messages that the user wrote."""
        if not ids:
            return set()
        query = select(messages.c.id).where(
            messages.c.id.in_(ids), messages.c.user_id == user, messages.c.role == "user"
        )
        return {row.id for row in await self._database.rows(query)}

    def clear_caches(self) -> None:
        """Empty the caches, after an erasure."""
        self._stored_keys.clear()
        self.speakers.clear()

    async def written_since(self, user: str, moment: datetime) -> int:
        """Return how many of this user's messages came since then."""
        query = select(func.count()).where(
            messages.c.user_id == user, messages.c.role == "user", messages.c.sent_at >= moment
        )
        [[count]] = await self._database.rows(query)
        return int(count)


async def position_of(database: Database, id: str, audience: Audience) -> int:
    """Return the `seq` of this message. Raises NotFound for one that the audience may not read."""
    seen = select(messages.c.seq).where(messages.c.id == id, messages_readable(audience))
    for row in await database.rows(seen):
        return int(row.seq)
    raise NotFound(f"there is no message {id!r} here to go on from")


def _is_signed(row: Any) -> bool:
    """Return whether a person wrote the message in a place."""
    return bool(row.place) and row.role == "user"


@cache
def _answer(unless: ColumnElement[bool] | None) -> Executable:
    """Return an INSERT that does nothing if the row exists, or if the message `answering` is missing. It
    is cached, because building it takes longer than running it."""
    names = (*(column.name for column in MESSAGE), "user_id", "place")
    row: dict[str, ColumnElement[Any]] = {
        name: bindparam(f"new_{name}", type_=messages.c[name].type) for name in names
    }
    there = select(*row.values()).where(messages.c.id == bindparam("answering"), is_visible())
    there = there if unless is None else there.where(~unless)
    there = there.with_for_update(read=True, key_share=True, of=messages)
    new = insert(messages).from_select(list(row), there)
    return new.on_conflict_do_nothing().returning(messages.c.id)


def _on_branch(row: Any) -> Message:
    return replace(to_message(row), gone=bool(row.replaced))
