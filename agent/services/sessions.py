"""Sessions of the REST API: people, and conversations as clients name them: `pet.sessions`."""

from dataclasses import dataclass
from urllib.parse import quote, unquote

from sqlalchemy import select

from agent.types.arguments import ShortText
from agent.types.checks import checks_arguments
from memory.sql.engine import Database
from memory.sql.tables import conversations, memories, users


def conversation_id(user: str | None, chat: str | None) -> str | None:
    """Return the id of the conversation that a client calls `chat`; names are separate for each user."""
    return f"chat:{quote(chat, safe='')}:{user}" if user and chat else None


def chat_of(conversation: str) -> str:
    """Return the client's name for a conversation whose id `conversation_id` made."""
    return unquote(conversation.split(":")[1])


@checks_arguments
@dataclass(frozen=True)
class SessionService:
    database: Database

    async def user_of(self, session: ShortText, user: ShortText | None = None) -> str | None:
        """Return the user of a session. `session` is a user's id, a conversation's id, or a client's name for
        a conversation. With `user`, only their own sessions count. None if nobody or more than one user
        matches."""
        id, owner = conversations.c.id, conversations.c.user_id
        chats = id.startswith(f"chat:{quote(session, safe='')}:", autoescape=True)
        people = [
            select(users.c.id).where(users.c.id == session),
            select(memories.c.user_id).where(memories.c.user_id == session).limit(1),
            select(owner).where((id == session) | chats).distinct().limit(2),
        ]
        if user is not None:
            ids = {session, str(conversation_id(user, session))}
            people = [select(owner).where(id.in_(ids), owner == user).limit(1)]
        if user == session:
            return user
        async with self.database.read() as connection:
            for query in people:
                found = {row[0] for row in await connection.execute(query)} - {None}
                if len(found) == 1:
                    return str(found.pop())
        return None
