"""Sessions of the REST API: conversations as clients name them, and the memories of one: `pet.sessions`."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote, unquote

from sqlalchemy import select, union
from sqlalchemy.dialects.postgresql import insert

from agent.types.arguments import MOST_LISTED, Limit, User
from agent.types.checks import checks_arguments
from memory.audience import Audience
from memory.records import Memory
from memory.sql.engine import Database
from memory.sql.memories.memory_rows import unexpired
from memory.sql.memories.store import MemoryStore
from memory.sql.messages.message_rows import kept
from memory.sql.readable import all_memories_readable
from memory.sql.tables import (
    conversations,
    memories,
    memory_owners,
    messages,
    rests_on,
    session_memories,
    users,
)


def conversation_id(user: str | None, chat: str | None) -> str | None:
    """Return the id of the conversation that a client calls `chat`; names are separate for each user."""
    return f"chat:{quote(chat, safe='')}:{user}" if user and chat else None


def chat_of(conversation: str) -> str:
    """Return what the client calls a conversation that has an id from `conversation_id`."""
    return unquote(conversation.split(":")[1])


@checks_arguments
@dataclass(frozen=True)
class SessionService:
    database: Database
    store: MemoryStore
    clock: Callable[[], datetime]

    async def conversation_of(self, session: str, user: User) -> str | None:
        """Return the id of the user's conversation with this id, or of which this is the client's name."""
        names = {session, str(conversation_id(user, session))}
        theirs = conversations.c.id.in_(names) & (conversations.c.user_id == user)
        async with self.database.read() as connection:
            id: str | None = await connection.scalar(select(conversations.c.id).where(theirs).limit(1))
            return id

    async def learned_in(
        self, conversation: str, *, user: User, limit: Limit = MOST_LISTED, id: str | None = None
    ) -> list[Memory]:
        """Return the memories that were stated in a conversation of the user or given to it, as they are
        worded now, newest first; with `id`, that one alone if it is among them."""
        said_here = (messages.c.conversation_id == conversation) & (messages.c.user_id == user) & kept()
        stated = (messages.c.id == rests_on.c.source_id) & (rests_on.c.how == "stated") & said_here
        said = select(rests_on.c.derived_id.label("memory_id")).join(messages, stated)
        given = select(session_memories.c.memory_id).where(session_memories.c.conversation_id == conversation)
        here = select(union(said, given).subquery().c.memory_id).cte(recursive=True)
        step = memory_owners.c
        here = here.union(select(step.superseded_by).join(here, step.memory_id == here.c.memory_id))
        named = memories.c.id.in_(select(here.c.memory_id))
        found = named & all_memories_readable(Audience.of(user)) & unexpired(self.clock())
        return await self.store.where(found if id is None else found & (memories.c.id == id), limit)

    async def give(self, conversation: str, memory_id: str) -> None:
        """Add a memory to a conversation in which nobody stated it."""
        row = {"conversation_id": conversation, "memory_id": memory_id}
        async with self.database.write() as connection:
            new = insert(session_memories).values(row)
            await connection.execute(new.on_conflict_do_nothing())

    async def only_user(self, session: str) -> str | None:
        """Return the only person the session can belong to; None if there is none or more than one."""
        chats = conversations.c.id.startswith(f"chat:{quote(session, safe='')}:", autoescape=True)
        async with self.database.read() as connection:
            for query in (
                select(users.c.id).where(users.c.id == session),
                select(memories.c.user_id).where(memories.c.user_id == session).limit(1),
                select(conversations.c.user_id).where(conversations.c.id == session),
                select(conversations.c.user_id).where(chats).limit(2),
            ):
                found = {row[0] for row in await connection.execute(query)} - {None}
                if len(found) == 1:
                    return str(found.pop())
        return None
