"""Update the transcript from a history that the client keeps and sends whole with each message.

`alignment.py` pairs the sent messages with the stored ones. A message that both have is not stored again; an
edited one replaces the stored one. Stored messages that the client has replaced, by an edit or a new answer,
are hidden; an older branch that it sends again is shown again. Messages that the client leaves out stay. If
it sends no stored message, it continues the stored conversation. A last answer that only the client has is
stored as sent. Other messages that only the client has, such as examples, are for the model alone.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncConnection

from agent.turn.client.alignment import MOST_MESSAGES, ROOT, Alignment, Key, align, is_same, key_of, parents
from agent.types import TurnRequest
from agent.types.client import PICTURE_URL, ClientTurn, Item, MessageItem, description_in
from memory.audience import PRIVATE, user_key
from memory.forgetting.hiding import move_to, replace_messages, restore_messages, reword
from memory.process.spans import new_id
from memory.records import Message
from memory.sql.messages.message_rows import forgotten_since
from memory.sql.messages.transcript import Transcript
from memory.sql.rests_on import record, rest_as_others
from memory.text import storable

AGAIN = timedelta(hours=1)
"""A first message without an answer counts as the same one if it is sent again within this time."""
UNNAMED = "chat:~"
"""Prefix of the ids of conversations that the client does not name."""


@dataclass(frozen=True, slots=True)
class Change:
    """A message that the client has edited, or an answer that only the client has."""

    old: Message | None
    text: str
    question: Message | None
    """The question that it answers; None if it is a question itself."""
    answers: tuple[str, ...] = ()
    """Ids of the stored answers to an edited question; they stay."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A client's history compared with the transcript."""

    history: tuple[Item, ...] | None = None
    """The client's history, with the ids of stored messages; None if the transcript has the history."""
    continues: bool = False
    """Whether no message of the history is stored, so that the question continues the stored conversation."""
    question: str | None = None
    """The id of the question, if it is stored."""
    follows: str | None = None
    """The stored message that the question follows; empty if it begins the conversation."""
    hidden: frozenset[str] = frozenset()
    """Ids of messages that the client has replaced by others."""
    back: frozenset[str] = frozenset()
    """Ids of hidden messages that the client sends again."""
    changes: tuple[Change, ...] = ()

    def locks(self, user: str) -> set[str]:
        """Return the keys to lock before `follow`."""
        return {user_key(user)} if self.hidden or self.back or self.changes else set()


async def with_continued_conversation(
    transcript: Transcript, request: TurnRequest, now: datetime
) -> TurnRequest:
    """Return the request with the conversation that a client's unnamed history continues, or a new one."""
    client, user = request.client, request.user
    if client is None or client.history is None or user is None or request.conversation:
        return request
    sent = [key_of(one) for one in _sent(replace(client, after=()), request.text)]
    answers = [text for role, text in sent if role == "assistant"]
    told = answers[-1] if answers else sent[-1][1]
    talks = await transcript.talks_with(user, UNNAMED, told, MOST_MESSAGES)
    found = _continued([talk for talk in talks if answers or _waits(talk, now - AGAIN)], sent)
    return replace(request, conversation=found or f"{UNNAMED}{new_id()}:{user}")


async def with_stored_question(transcript: Transcript, request: TurnRequest) -> TurnRequest:
    """Return the request with the stored question that it is about, if the client sends another message after
    that question, or none. It wants an answer continued, or written anew as that message says."""
    client = request.client
    if client is None or client.history is None or request.user is None or not request.conversation:
        return request
    stored = await _question_meant(transcript, request, client)
    if stored is None:
        return request
    asked = [MessageItem("user", client.shown or request.text, images=client.images)] if request.text else []
    items = [*client.history, *asked, *client.after]
    said = {at: one for at, one in enumerate(items) if isinstance(one, MessageItem)}
    at = max((at for at, one in said.items() if is_same(key_of(one), key_of(stored))), default=-1)
    if request.text and at in (-1, len(client.history)):
        return request
    images = said[at].images if at >= 0 else ()
    history, after = tuple(items[: max(at, 0)]), tuple(items[at + 1 :])
    client = replace(client, history=history, after=after, shown="", images=images)
    return replace(request, text=stored.text, client=client)


async def _question_meant(transcript: Transcript, request: TurnRequest, client: ClientTurn) -> Message | None:
    """Return the stored question that the client names, or the last one if the client sends no text."""
    known = await transcript.sent_as(client.question) if client.question else None
    if known and known[1] == request.user:
        return (await transcript.by_ids({known[0]}, request.audience)).get(known[0])
    last = [] if request.text else await transcript.last(request.conversation_id, request.audience, 2)
    return next((one for one in reversed(last) if one.role == "user"), None)


async def compare(transcript: Transcript, request: TurnRequest) -> Compared:
    """Compare what a client sends with the transcript."""
    client, user = request.client or ClientTurn(), request.user
    if user is None:
        return Compared(client.history)
    if client.history is None:
        if not client.after:
            return Compared(question=await transcript.unanswered(request.origins, request.text))
        question = await transcript.waiting(request.conversation_id, user, request.text)
        return Compared(question=question)
    stored = await transcript.branches(request.conversation_id, user, MOST_MESSAGES)
    return compared(stored, client, request.text)


def compared(stored: Sequence[Message], client: ClientTurn, text: str) -> Compared:
    """Compare a client's history and its question `text` with the stored messages."""
    sent = _sent(client, text)
    asked = sum(isinstance(item, MessageItem) for item in client.history or ())
    if any(one.role == "user" for one in sent[asked + 1 :]):
        sent = sent[: asked + 1]  # the client wants another answer to this question
    found = align(stored, [key_of(one) for one in sent], asked, begins=client.begins)
    if not (found.path or client.begins):
        last = next((one.id for one in reversed(stored) if not one.gone), "")
        return Compared(client.history, bool(last), follows=last)
    there = {at: stored[here] for at, here in found.pairs.items()}
    ids = {at: one.id for at, one in there.items()}
    before = [stored[here].id for at, here in sorted(found.path.items()) if at < asked]
    return Compared(
        history=tuple(_as_stored(client.history or (), there)),
        question=ids.get(asked),
        follows=before[-1] if before else "",
        hidden=frozenset(stored[at].id for at in found.hidden),
        back=frozenset(stored[at].id for at in found.back),
        changes=tuple(_changes(stored, found, sent)),
    )


def _changes(
    stored: Sequence[Message], alignment: Alignment, sent: Sequence[MessageItem]
) -> Iterator[Change]:
    """Yield the messages that the client has edited, in order, and the answer that only it has."""
    before = parents(stored)
    for at, here in sorted(alignment.changed.items()):
        answers = (stored[one].id for one in alignment.pairs.values() if before[one] == here)
        if stored[here].role == "user":
            noted = description_in(stored[here].text) if sent[at].images else ""
            text = "\n".join(filter(None, (storable(sent[at].text), noted)))
            yield Change(stored[here], text, None, tuple(answers))
        elif before[here] != ROOT:
            yield Change(stored[here], storable(sent[at].text), stored[before[here]])
    for at, here in alignment.answers.items():
        yield Change(None, storable(sent[at].text), stored[here])


def _as_stored(history: Iterable[Item], there: Mapping[int, Message]) -> Iterator[Item]:
    """Yield the items. Messages get the ids of the stored ones, which `there` has by position, and the stored
    description of pictures that the client no longer sends."""
    at = 0
    for item in history:
        if isinstance(item, MessageItem):
            stored = there.get(at)
            item = replace(item, id=stored.id if stored else "")
            noted = description_in(stored.text) if stored else ""
            if noted and not any(url.startswith(PICTURE_URL) for url in item.images):
                item = replace(item, images=(noted,))
            at += 1
        yield item


async def follow(
    connection: AsyncConnection, transcript: Transcript, sent: Compared, user: str, now: datetime
) -> str | None:
    """In the caller's transaction, hide the messages that the client has replaced, restore those that it
    sends again, and store its edits and its own answer. Returns the id of the message that the question
    follows."""
    if sent.hidden:
        await replace_messages(connection, sent.hidden, user, now)
    if sent.back:
        await restore_messages(connection, sent.back, user, now)
    ids, follows = dict[str, str](), sent.follows
    """New ids of edited messages, by the old ones."""
    for one in sent.changes:
        if one.question is None and one.old:
            old = replace(one.old, follows=ids.get(one.old.follows or "", one.old.follows))
            new = await reword(connection, transcript, old, one.text, user, PRIVATE, now, answers=one.answers)
            ids[old.id] = new.id
        elif one.question:
            question = replace(one.question, id=ids.get(one.question.id, one.question.id))
            about = {"id": new_id(), "role": "assistant", "author": "hachi", "follows": question.id}
            new = replace(one.old or question, text=one.text, **about)  # type: ignore[arg-type]
            if await _store_answer(connection, transcript, new, question, user, now):
                ids[one.old.id if one.old else question.id] = new.id
                if one.old:
                    await replace_messages(connection, {one.old.id}, user, now)
                    await move_to(connection, one.old.id, new.id)
    while follows in ids:
        follows = ids[follows]
    return follows


async def _store_answer(
    connection: AsyncConnection,
    transcript: Transcript,
    answer: Message,
    question: Message,
    user: str,
    now: datetime,
) -> bool:
    """Store an answer that only the client has, unless the person has forgotten anything since its question:
    the text may contain it. Returns whether it was stored."""
    lost = forgotten_since(user, question.sent_at)
    stored = await transcript.append(
        connection, answer, user=user, place=PRIVATE, now=now, answering=question.id, unless=lost
    )
    if stored:
        await record(connection, answer.id, [question.id], "answered")
        await rest_as_others(connection, answer.id, question.id)
    return stored is not None


def _continued(talks: Iterable[Sequence[Message]], sent: Sequence[Key]) -> str | None:
    """Return the id of the conversation that the sent one continues: the newest in which nothing follows
    the messages before the question. Else the one sent word for word up to there, if only one was: it was
    edited."""
    edited = []
    for talk in talks:
        found = align(talk, sent, len(sent) - 1)
        last = max((at for at, (role, _) in enumerate(sent) if role == "assistant"), default=len(sent) - 1)
        if last in found.pairs and not found.hidden:
            return talk[0].conversation_id
        if all(at in found.pairs and key_of(talk[found.pairs[at]]) == sent[at] for at in range(last + 1)):
            edited.append(talk[0].conversation_id)
    return edited[0] if len(edited) == 1 else None


def _waits(talk: Sequence[Message], since: datetime) -> bool:
    """Return whether no message was answered, and the last was sent at `since` or later."""
    return talk[-1].sent_at >= since and all(one.role == "user" for one in talk)


def _sent(client: ClientTurn, text: str) -> list[MessageItem]:
    """Return the messages of the client's conversation, the question among them."""
    items = (*(client.history or ()), MessageItem("user", text), *client.after)
    return [item for item in items if isinstance(item, MessageItem)]
