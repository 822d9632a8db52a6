"""A conversation whose history the client keeps, and sends whole with each message.

What the client sends is aligned with the transcript (`alignment.py`). A message that both have is not stored
again. What the client has replaced, because it was edited or answered anew, is hidden; an older branch that
comes back is shown again. What the client leaves out stays, and where it sends nothing that is stored, it
continues the stored conversation. A last answer that only the client has, since it was stopped, continued or
joined, is stored as it was shown. Other messages that only the client has, as examples and summaries, are for
the model alone.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncConnection

from agent.turn.client.alignment import COMPARED_MESSAGES, Key, align, key_of
from agent.types import TurnRequest
from agent.types.client import ClientTurn, Item, Said
from memory.audience import PRIVATE, user_key
from memory.forgetting.hiding import bring_back, replace_messages
from memory.forgetting.rewording import reword
from memory.process.spans import new_id
from memory.records import Message
from memory.sql.messages.message_rows import forgotten_since
from memory.sql.messages.transcript import Transcript
from memory.sql.rests_on import record, rest_as_others
from memory.text import storable

AGAIN = timedelta(hours=1)
"""A first message without an answer that is sent again within this time is the same one."""
UNNAMED = "chat:~"
"""How the ids of conversations begin that the client does not name."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A client's history beside the transcript."""

    history: tuple[Item, ...] | None = None
    """The client's, with the ids of the messages that are stored; None where the transcript has it."""
    continues: bool = False
    """Whether nothing of it is stored, and it goes on with the stored conversation."""
    question: str | None = None
    """The id of the question, if it is stored."""
    follows: str | None = None
    """The stored message that the question follows; empty if it begins the conversation."""
    hidden: frozenset[str] = frozenset()
    """Messages in whose place the client has others."""
    back: frozenset[str] = frozenset()
    """Hidden messages that the client has again."""
    edits: tuple[tuple[Message, str, str], ...] = ()
    """Questions whose words the client has changed: each as it is stored, its new words, and the id of its
    answer, which stays."""
    answer: Message | None = None
    """The last answer, as only the client has it."""
    replaced: tuple[str, ...] = ()
    """The stored answers in whose place it is."""

    def locks(self, user: str) -> set[str]:
        """Return the keys to lock before it is followed."""
        return {user_key(user)} if self.hidden or self.back or self.edits or self.answer else set()


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
    talks = await transcript.talks_with(user, UNNAMED, told, COMPARED_MESSAGES)
    found = _continued([talk for talk in talks if answers or _waits(talk, now - AGAIN)], sent)
    return replace(request, conversation=found or f"{UNNAMED}{new_id()}:{user}")


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
    stored = await transcript.branches(request.conversation_id, user, COMPARED_MESSAGES)
    return compared(stored, client, request.text)


def compared(stored: Sequence[Message], client: ClientTurn, text: str) -> Compared:
    """Return what follows from a client's history, with the question `text`, for the stored messages."""
    sent = _sent(client, text)
    asked = sum(isinstance(item, Said) for item in client.history or ())
    found = align(stored, [key_of(one) for one in sent], asked)
    path = found.pairs | found.edits
    if not path:
        last = next((one.id for one in reversed(stored) if not one.gone), "")
        return Compared(client.history, bool(last), follows=last)
    ids = {at: stored[here].id for at, here in found.pairs.items()}
    before = [at for at in path if at < asked]
    follows, answer = stored[path[max(before)]].id if before else "", None
    replaced: list[str] = []
    for at, here in found.answers.items():
        question = stored[here]
        replaced = [one.id for one in stored if one.follows == question.id and not one.gone]
        answer = replace(
            question,
            id=new_id(),
            role="assistant",
            author="hachi",
            text=storable(sent[at].text),
            follows=follows,
        )
    return Compared(
        history=tuple(_with_ids(client.history or (), ids)),
        question=ids.get(asked),
        follows=follows,
        hidden=frozenset(stored[at].id for at in found.hidden).difference(replaced),
        back=frozenset(stored[at].id for at in found.pairs.values() if stored[at].gone),
        edits=tuple(
            (stored[here], storable(sent[at].text), stored[path[at + 1]].id)
            for at, here in found.edits.items()
        ),
        answer=answer,
        replaced=tuple(replaced),
    )


def _with_ids(history: Iterable[Item], ids: Mapping[int, str]) -> Iterator[Item]:
    """Yield the items; messages with the ids that they have in the transcript, by their position."""
    at = 0
    for item in history:
        if isinstance(item, Said):
            item = replace(item, id=ids.get(at, ""))
            at += 1
        yield item


async def follow(
    connection: AsyncConnection, transcript: Transcript, sent: Compared, user: str, now: datetime
) -> str | None:
    """In the caller's transaction, hide what the client has replaced, show again what it has again, and store
    what only it has. Returns the message that the question follows."""
    if sent.hidden:
        await replace_messages(connection, sent.hidden, user, now)
    if sent.back:
        await bring_back(connection, sent.back, user, now)
    for old, text, answer in sent.edits:
        await reword(connection, transcript, old, text, user, PRIVATE, now, answers=[answer])
    if sent.answer is None or sent.follows is None:
        return sent.follows
    # What was forgotten since it was asked, the client's copy may still hold.
    lost = forgotten_since(user, sent.answer.sent_at)
    stored = await transcript.append(
        connection, sent.answer, user=user, place=PRIVATE, now=now, answering=sent.follows, lost=lost
    )
    if stored is None:
        return sent.replaced[-1] if sent.replaced else sent.follows
    if sent.replaced:
        await replace_messages(connection, sent.replaced, user, now)
    await record(connection, stored.id, [sent.follows], "answered")
    await rest_as_others(connection, stored.id, sent.follows)
    return stored.id


def _continued(talks: Iterable[Sequence[Message]], sent: Sequence[Key]) -> str | None:
    """Return the conversation that the sent one continues: the newest in which nothing follows what was sent
    up to the question. Or else the one that was sent word for word up to there, if it is the only one: it is
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
    """Return whether nothing has been answered, and the last question is not older."""
    return talk[-1].sent_at >= since and all(one.role == "user" for one in talk)


def _sent(client: ClientTurn, text: str) -> list[Said]:
    """Return the messages of the client's conversation, the question among them."""
    items = (*(client.history or ()), Said("user", text), *client.after)
    return [item for item in items if isinstance(item, Said)]
