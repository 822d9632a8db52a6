"""Imports the messages of a transcript or an export."""

import hmac
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, timedelta
from typing import Any, NamedTuple
from uuid import NAMESPACE_URL, UUID, uuid5

from agent.errors import BadInput
from agent.services.sessions import conversation_id
from agent.types import TurnRequest
from agent.types.arguments import moment_of, read_name, read_user, read_value
from memory.index.worker import Progress
from memory.process.pace import unhurried
from memory.records import Message
from memory.sql.engine import Database
from memory.sql.hidden import still_hidden
from memory.sql.keys import person_keys
from memory.sql.messages.reply_sources import note_answer
from memory.sql.messages.transcript import Transcript
from memory.text import storable

MESSAGES_AT_ONCE = 500
"""Messages that are stored in one transaction."""


class ImportedMessage(NamedTuple):
    message: Message
    """Its id is empty if the file has none."""
    user: str
    """The user who wrote it or got the reply."""
    timed: bool
    """Whether the file says when it was sent; if not, the time is that of the import."""


async def read_messages(
    messages: Sequence[Mapping[str, Any]], target: TurnRequest
) -> Sequence[ImportedMessage]:
    """Parse the messages. Raises BadInput."""
    return [_message(given, at, target) async for at, given in unhurried(enumerate(messages))]


async def store_messages(
    database: Database,
    transcript: Transcript,
    read: Sequence[ImportedMessage],
    target: TurnRequest,
    progress: Progress | None = None,
) -> int:
    """Store the messages in order, except for those that exist already or were forgotten. Calls `progress`
    with the size of each batch. Returns how many are new."""
    read = await _with_ids(database, read, target)
    new = 0
    for start in range(0, len(read), MESSAGES_AT_ONCE):
        async with database.write() as connection:
            part = read[start : start + MESSAGES_AT_ONCE]
            gone = await still_hidden(connection, "message", [one.message.id for one in part])
            for message, speaker, _ in part:
                if message.id in gone:
                    continue
                written = await transcript.append(
                    connection, message, user=speaker, place=target.place, now=target.sent_at
                )
                new += written is not None
                if written and message.role == "assistant":
                    await note_answer(connection, message, speaker, target.place)
        if progress:
            progress(len(part))
    return new


async def _with_ids(
    database: Database, read: Sequence[ImportedMessage], target: TurnRequest
) -> Sequence[ImportedMessage]:
    """Give each message without an id an id that is the same in every import: a hash of its content with its
    user's random key. So the id of a forgotten message does not reveal its text."""
    keys = await person_keys(database, {one.user for one in read if not one.message.id}, target.sent_at)
    told: Counter[tuple[str, str]] = Counter()
    found = []
    async for one in unhurried(read):
        if not (message := one.message).id:
            where = (target.place.key, message.conversation_id, message.role)
            # the time of the import differs in each
            sent_at = message.sent_at.astimezone(UTC).isoformat() if one.timed else ""
            said = json.dumps([*where, message.author, sent_at, message.text])
            told[one.user, said] += 1
            digest = hmac.digest(keys[one.user], f"{told[one.user, said]} {said}".encode(), "sha256")
            id = str(UUID(bytes=digest[:16], version=4))
            one = one._replace(message=replace(message, id=id))
        found.append(one)
    return found


def _message(given: Mapping[str, Any], at: int, incoming: TurnRequest) -> ImportedMessage:
    try:
        author, text, sent_at = str(given["author"]), str(given["text"]), given["sent_at"]
    except KeyError as error:
        raise BadInput(f"message {at + 1} has no {error.args[0]!r}") from error
    incoming = _within(incoming, given, at)
    if sent_at is None and "chat" in given:  # unknown time: now, in the order of the file
        sent_at = incoming.sent_at + timedelta(microseconds=at)
    message = Message(
        id=_uuid(given.get("id"), incoming),
        conversation_id=incoming.conversation_id,
        role="assistant" if given.get("role") == "assistant" else "user",
        author=storable(author),
        text=storable(text),
        sent_at=read_value(f"message {at + 1}: sent_at", moment_of, sent_at),
    )
    return ImportedMessage(message, str(incoming.user), given["sent_at"] is not None)


def _within(incoming: TurnRequest, given: Mapping[str, Any], at: int) -> TurnRequest:
    """Return the request with the user and conversation that a message names: in a place, its `user` and
    `conversation`; in private, the `chat` that `formats` sets."""
    if incoming.place.private:
        chat = None if incoming.conversation else storable(str(given.get("chat") or ""))
        named = conversation_id(incoming.user, chat)
        return replace(incoming, conversation=named or incoming.conversation)
    try:
        user = read_value("user", read_user, given.get("user", incoming.user))
        named = incoming.conversation or given.get("conversation")
        conversation = None if named is None else read_value("conversation", read_name, str(named))
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
        told = storable(f"hachi:{incoming.user}:{incoming.conversation_id}:{id}")
        return str(uuid5(NAMESPACE_URL, told))
