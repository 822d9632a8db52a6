"""Conversations: their messages, whose they are, export and import: `pet.conversations`."""

import hmac
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote, unquote
from uuid import NAMESPACE_URL, UUID, uuid5

from sqlalchemy import func, select, union
from sqlalchemy.dialects.postgresql import insert

from agent.errors import BadInput
from agent.services.arguments import audience_of
from agent.services.erasure import ErasureService
from agent.services.forgetting import ForgetService
from agent.services.transfer.export import export_person, export_place
from agent.services.transfer.imports import (
    Imported,
    ParsedImport,
    checked_import,
    restore_all,
    speaks_for,
)
from agent.tracing.recorder import Recorder
from agent.types import TurnRequest
from agent.types.arguments import (
    MOST_LISTED,
    Limit,
    Name,
    Text,
    User,
    Where,
    moment_of,
    place_of,
    readable_name,
    user_named,
)
from agent.types.checks import checks_arguments
from memory.audience import Audience, Place, owners_of
from memory.documents.library import DocumentLibrary
from memory.errors import NotFound
from memory.facts.bulk import remember_many
from memory.facts.derived import read_again
from memory.facts.writer import FactWriter
from memory.forgetting.hiding import replace_messages
from memory.index.sync import IndexSync, Progress
from memory.process.spans import new_id
from memory.records import ForgetCandidate, Forgotten, Memory, Message
from memory.sql.engine import Database
from memory.sql.hidden import hidden_in, still_hidden
from memory.sql.jobs.deliveries import Deliveries, Sent, note_origins
from memory.sql.keys import person_keys
from memory.sql.memories.memory_rows import all_readable, unexpired
from memory.sql.memories.store import MemoryStore
from memory.sql.messages.message_rows import kept
from memory.sql.messages.reply_sources import note_answer
from memory.sql.messages.summaries import owner_of
from memory.sql.messages.transcript import Transcript
from memory.sql.rests_on import record
from memory.sql.tables import (
    conversations,
    memories,
    memory_owners,
    messages,
    rests_on,
    session_memories,
    users,
)
from memory.text import storable

BATCH = 500


def conversation_id(user: str | None, chat: str | None) -> str | None:
    """Return the id of the conversation that a client calls `chat`; names are separate for each user."""
    return f"chat:{quote(chat, safe='')}:{user}" if user and chat else None


def chat_of(conversation: str) -> str:
    """Return what the client calls a conversation that has an id from `conversation_id`."""
    return unquote(conversation.split(":")[1])


@checks_arguments
@dataclass(frozen=True)
class ConversationService:
    recorder: Recorder
    database: Database
    transcript: Transcript
    store: MemoryStore
    documents: DocumentLibrary
    writer: FactWriter
    forgetting: ForgetService
    deliveries: Deliveries
    sync: IndexSync
    erasure: ErasureService
    clock: Callable[[], datetime]

    async def messages(
        self, *, user: User, place: Where = None, limit: Limit = 20, before: str | None = None
    ) -> list[Message]:
        """Messages that may be read there, newest first; with `before`, those older than the message with
        this id."""
        return await self.transcript.page(audience_of(user, place), limit, before)

    async def message(self, id: str, *, user: User) -> Message:
        """Return the user's message with this id, or its first eight characters. Raises NotFound."""
        return await self.transcript.own(id, user)

    async def forget(self, id: str, *, user: User) -> Forgotten:
        """Forget one of the user's messages with the reply to it, and the memories that rest on it alone.
        Raises NotFound for anybody else's."""
        return await self.forgetting.forget("message", id, user)

    async def preview_forget(self, id: str, *, user: User) -> ForgetCandidate:
        """What `forget` would take with this message. Nothing is forgotten by this."""
        return await self.forgetting.preview("message", id, user)

    async def forget_sent(self, origin: str) -> Forgotten | None:
        """Forget the message with this id on a chat platform, whose author has deleted it there. Returns None
        if it is not stored, or forgotten."""
        await self.deliveries.forget(origin, self.clock())
        await self.forgetting.forget_quotes(origin)
        with suppress(NotFound):  # who is told twice forgets it once
            if sent := await self.transcript.sent_as(origin):
                return await self.forget(sent[0], user=sent[1])
        return None

    async def reword(self, sent: Sent, text: Text, *, again: bool) -> None:
        """Replace what a message said that its author edited on a chat platform. With `again` the reply goes
        too, and the turn that answers it again stores the new wording."""
        old, reply = sent.message, sent.reply
        async with self.database.write(lock=owners_of(sent.user, sent.place)) as connection:
            now = self.clock()
            gone = {old.id} | ({reply.id} if again and reply else set())
            await replace_messages(connection, gone, sent.user, now)
            if again:
                return
            new = replace(old, id=new_id(), text=storable(text))
            await self.transcript.append(connection, new, user=sent.user, place=sent.place, now=now)
            await note_origins(connection, new.id, sent.origins)
            if reply:
                await record(connection, reply.id, [new.id], "answered")
            await read_again(connection, old.conversation_id, owner_of(sent.user, sent.place), now)

    async def export(self, *, user: User) -> dict[str, Any]:
        """Everything that `pet.people.erase` deletes, as plain JSON values; `import_` reads it."""
        return await export_person(self.database, self.store, self.documents, self.clock(), user)

    async def export_place(self, place: Place | str, *, user: User) -> dict[str, Any]:
        """The memories and messages of a place, each with whose it is, so that `import_` restores them. What
        is known around the place or inside it is not part of it."""
        return await export_place(self.database, self.store, self.clock(), place, user)

    async def import_(
        self,
        parsed: ParsedImport,
        *,
        user: User,
        place: Where = None,
        progress: Progress | None = None,
        for_others: bool = False,
    ) -> Imported:
        """Store what `parse_import` read of an export or a transcript. Calls `progress` for each row. Returns
        how many are new. What was forgotten since stays forgotten: messages, and facts of which one is the
        evidence. Raises BadInput, also for a message or a place that the file does not attribute, and for
        what the file says is somebody else's unless `for_others` allows it."""
        where = checked_import(parsed, user, place_of(place), for_others)
        # Messages first, because memories name them as evidence.
        messages = await self.import_messages(parsed.messages, user=user, place=where, progress=progress)
        stated = {origin.message_id or "" for _, origin in parsed.memories}
        gone = await hidden_in(self.database, stated)
        facts = [(draft, origin) for draft, origin in parsed.memories if origin.message_id not in gone]
        decisions = await remember_many(self.writer, facts, progress)
        new = sum(decision.action in ("add", "replace") for decision in decisions)
        new += await restore_all(self.database, self.store, parsed.restored, self.clock(), progress)
        await self.sync.try_to_catch_up()
        return Imported(messages, new)

    def others_in(self, parsed: ParsedImport, *, user: User, place: Where = None) -> list[str]:
        """Who else would own what the import holds, or would have said it."""
        return speaks_for(parsed, user, place_of(place))

    async def written_since(self, moment: datetime, *, user: User) -> int:
        """Return how many messages of the user came since then, in private and in places."""
        return await self.transcript.written_since(user, moment)

    async def exists(self, conversation: str, *, user: User, place: Where = None) -> bool:
        """Return whether the conversation has a message that the user may read there."""
        return bool(await self.transcript.last(conversation, audience_of(user, place), 1))

    async def session_of(self, session: str, user: User) -> str | None:
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
        found = named & all_readable(Audience.of(user)) & unexpired(self.clock())
        return await self.store.where(found if id is None else found & (memories.c.id == id), limit)

    async def give(self, conversation: str, memory_id: str) -> None:
        """Add a memory to a conversation in which nobody stated it."""
        row = {"conversation_id": conversation, "memory_id": memory_id}
        async with self.database.write() as connection:
            new = insert(session_memories).values(row)
            await connection.execute(new.on_conflict_do_nothing())

    async def only_user(self, session: str) -> str | None:
        """Return the only person the session can belong to; None if there is none or more than one."""
        prefix = f"chat:{quote(session, safe='')}:"
        same_case = func.substr(conversations.c.id, 1, len(prefix)) == prefix  # SQLite's LIKE ignores case
        chats = conversations.c.id.startswith(prefix, autoescape=True) & same_case
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

    async def import_messages(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        user: User,
        place: Where = None,
        conversation: Name | None = None,
        progress: Progress | None = None,
    ) -> int:
        """Store the messages in order, index them, and return how many are new. In a place a message may
        name its own `user` and `conversation`. All are parsed before the first is written, so a bad message
        stores nothing. What was imported before, or forgotten since, is left as it is."""
        target = TurnRequest("", user, self.clock(), place_of(place), conversation)
        read = [_message(given, at, target) for at, given in enumerate(messages)]
        for speaker in {target.user, *(speaker for _, speaker in read)}:
            await self.erasure.finished(speaker)
        read = await self._with_ids(read, messages, target.place, target.sent_at)
        new = 0
        for start in range(0, len(read), BATCH):
            async with self.database.write() as connection:
                part = read[start : start + BATCH]
                gone = await still_hidden(connection, "message", [message.id for message, _ in part])
                for message, speaker in part:
                    if message.id in gone:
                        continue
                    written = await self.transcript.append(
                        connection, message, user=speaker, place=target.place, now=target.sent_at
                    )
                    new += written is not None
                    if written and message.role == "assistant":
                        await note_answer(connection, message, speaker, target.place)
        await self.sync.try_to_catch_up(progress)
        return new

    async def _with_ids(
        self,
        read: Sequence[tuple[Message, str]],
        given: Sequence[Mapping[str, Any]],
        place: Place,
        now: datetime,
    ) -> list[tuple[Message, str]]:
        """Give each message without an id the same one in every import, made from all that it says with a
        random key of its speaker: the id of a forgotten message tells nobody what was forgotten."""
        keys = await person_keys(self.database, {who for message, who in read if not message.id}, now)
        told: Counter[tuple[str, str]] = Counter()
        found = []
        for (message, speaker), as_given in zip(read, given, strict=True):
            if not message.id:
                where = (place.key, message.conversation_id, message.role)
                known = as_given["sent_at"] is not None  # a time that nobody knew differs in each import
                sent_at = message.sent_at.astimezone(UTC).isoformat() if known else ""
                said = json.dumps([*where, message.author, sent_at, message.text])
                told[speaker, said] += 1
                digest = hmac.digest(keys[speaker], f"{told[speaker, said]} {said}".encode(), "sha256")
                message = replace(message, id=str(UUID(bytes=digest[:16], version=4)))
            found.append((message, speaker))
        return found


def _message(given: Mapping[str, Any], at: int, incoming: TurnRequest) -> tuple[Message, str]:
    """Return the message, and the user who wrote it or got the reply."""
    try:
        author, text, sent_at = str(given["author"]), str(given["text"]), given["sent_at"]
    except KeyError as error:
        raise BadInput(f"message {at + 1} has no {error.args[0]!r}") from error
    incoming = _within(incoming, given, at)
    if sent_at is None and "chat" in given:  # nobody knows when: now, in the order of the file
        sent_at = incoming.sent_at + timedelta(microseconds=at)
    message = Message(
        id=_uuid(given.get("id"), incoming),
        conversation_id=incoming.conversation_id,
        role="assistant" if given.get("role") == "assistant" else "user",
        author=storable(author),
        text=storable(text),
        sent_at=moment_of(f"message {at + 1}: sent_at", sent_at),
    )
    return message, str(incoming.user)


def _within(incoming: TurnRequest, given: Mapping[str, Any], at: int) -> TurnRequest:
    """Return the request with the user and the conversation that a message of a place names; in private with
    the one of the person's own that `formats` names."""
    if incoming.place.private:
        chat = None if incoming.conversation else conversation_id(incoming.user, given.get("chat"))
        return replace(incoming, conversation=chat or incoming.conversation)
    try:
        user = user_named("user", given.get("user", incoming.user))
        named = incoming.conversation or given.get("conversation")
        conversation = None if named is None else readable_name("conversation", str(named))
    except BadInput as error:
        raise BadInput(f"message {at + 1}: {error}") from error
    return replace(incoming, user=user, conversation=conversation)


def _uuid(id: Any, incoming: TurnRequest) -> str:
    """Return the id if it is a UUID; otherwise derive a UUID that is the same for every import. Without an
    id it is empty."""
    if id is None:
        return ""
    try:
        return str(UUID(str(id)))
    except ValueError:
        return str(uuid5(NAMESPACE_URL, f"hachi:{incoming.user}:{incoming.conversation_id}:{id}"))
