"""Whose a session is. A session is a conversation of one person, by the id that the client knows it by or
by the one that the record has; or a person's own id, which stands for all they said in private. What is
remembered in it is what that person may read in private.
"""

from urllib.parse import quote

from sqlalchemy import func, select

from agent.companion import Companion
from agent.surfaces.http.chat import conversation_of
from agent.surfaces.http.identity import Caller
from agent.surfaces.http.refusals import Refusal
from memory.sql.tables import conversations, memories, users

LONGEST = 400
"""Characters of a session's id."""


async def user_of(pet: Companion, session: str, caller: Caller) -> str:
    """The person whose session it is. Raises Refusal, the same for a session of somebody else's as for one
    that there is not."""
    if len(session) <= LONGEST and session.isprintable():
        if caller.user is None:
            found = await _found(pet, session)
        else:
            found = caller.user if await _is_theirs(pet, session, caller.user) else None
        if found is not None:
            return found
    raise Refusal(404, "session_not_found", "there is no such session", type="not_found_error")


async def _is_theirs(pet: Companion, session: str, user: str) -> bool:
    if session == user:
        return True
    names = {session, str(conversation_of(user, session))}
    query = select(conversations.c.id).where(conversations.c.id.in_(names), conversations.c.user_id == user)
    async with pet.components.database.read() as connection:
        return (await connection.execute(query.limit(1))).first() is not None


async def _found(pet: Companion, session: str) -> str | None:
    """For a trusted service that names nobody: the one person whose session it can be."""
    start = f"chat:{quote(session, safe='')}:"
    begun = func.substr(conversations.c.id, 1, len(start)) == start  # LIKE takes "A" for "a" on SQLite
    chats = conversations.c.id.startswith(start, autoescape=True) & begun
    async with pet.components.database.read() as connection:
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
