"""A conversation whose history the client keeps, and sends whole with each message.

What the client sends is the conversation. It is compared with the transcript: a message that both have is not
stored again, and what the client has no longer, after an edit or to get another answer, is replaced there.
Messages that only the client has, such as examples, are shown to the model and not stored.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from difflib import SequenceMatcher

from agent.types import TurnRequest
from agent.types.client import ClientTurn, Item, Said
from memory.process.spans import new_id
from memory.records import Message
from memory.sql.messages import Transcript
from memory.text import storable

MOST = 1_000
"""Messages of a transcript that are compared, the newest."""
CANDIDATES = 20
"""Messages with the same words that may tell which conversation an unnamed one is."""
AGAIN = timedelta(hours=1)
"""A first message sent again within this time, with nothing after its answer, asks for another answer."""
ALIKE = 0.75
"""How similar two first messages are if one is an edit of the other."""
UNNAMED = "chat:~"
"""How the ids of conversations begin that the client does not name."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A client's history beside the transcript."""

    history: tuple[Item, ...] = ()
    """The client's, with the ids of those messages that the transcript has."""
    question: str | None = None
    """The id of the question, if the transcript has it."""
    replaced: frozenset[str] = frozenset()
    """Messages that the client has replaced."""
    back: frozenset[str] = frozenset()
    """Replaced messages that the client has again."""


async def with_conversation(transcript: Transcript, request: TurnRequest, now: datetime) -> TurnRequest:
    """Return the request with the conversation that a client's unnamed history belongs to: the one that
    begins like it, or else a new one."""
    client, user = request.client, request.user
    if client is None or client.history is None or user is None or request.conversation:
        return request
    sent = _sent(client, request.text)
    asked = sent[-1] if len(sent) == 1 else next((one for one in sent if one.role == "assistant"), sent[0])
    found, most = "", 0
    for id in await transcript.containing(_stored_form(asked.text), user, UNNAMED, CANDIDATES):
        stored = await transcript.branches(id, user, MOST)
        shared = len(_pairs(stored, sent))
        same = _asked_again(stored, now) if len(sent) == 1 else shared > 1
        if same and shared > most:
            found, most = id, shared
    return replace(request, conversation=found or f"{UNNAMED}{new_id()}:{user}")


async def compare(transcript: Transcript, request: TurnRequest) -> Compared | None:
    """Compare the client's history with the transcript; None if the transcript has the history."""
    client, user = request.client, request.user
    if client is None or client.history is None:
        return None
    if user is None:
        return Compared(client.history)
    sent = _sent(client, request.text)
    stored = await transcript.branches(request.conversation_id, user, MOST)
    pairs = _pairs(stored, sent)
    here = set(pairs.values())
    unsent = [at for at, message in enumerate(stored) if at not in here and not message.gone]
    new = [one.text for at, one in enumerate(sent) if at not in pairs and one.role == "user"]
    diverges = _diverges(stored, unsent, min(here, default=len(stored)), new)
    ids = {at: stored[match].id for at, match in pairs.items()}
    messages = (one for one in client.history if isinstance(one, Said))
    named = {id(one): replace(one, id=ids.get(at, "")) for at, one in enumerate(messages)}
    return Compared(
        tuple(named.get(id(one), one) for one in client.history),
        question=ids.get(len(named)),
        replaced=frozenset(stored[at].id for at in unsent if at >= diverges),
        back=frozenset(stored[at].id for at in here if stored[at].gone),
    )


def _sent(client: ClientTurn, text: str) -> list[Said]:
    """Return the messages of the client's conversation, the question among them."""
    items = (*(client.history or ()), Said("user", text), *client.after)
    return [item for item in items if isinstance(item, Said)]


def _pairs(stored: Sequence[Message], sent: Sequence[Said]) -> dict[int, int]:
    """Return the positions in `sent` whose messages are stored, each with its position in `stored`."""
    ours = [(one.role, _stored_form(one.text)) for one in stored]
    theirs = [(one.role, _stored_form(one.text)) for one in sent]
    blocks = SequenceMatcher(None, theirs, ours, autojunk=False).get_matching_blocks()
    pairs = {block.a + step: block.b + step for block in blocks for step in range(block.size)}
    return pairs | dict(_in_templates(stored, sent, pairs))


def _in_templates(
    stored: Sequence[Message], sent: Sequence[Said], pairs: Mapping[int, int]
) -> Iterator[tuple[int, int]]:
    """Yield the pairs of questions with the same answer of which the stored one has other lines around what
    was asked: a client puts only its last message into a template, beside the documents it found."""
    for at, message in enumerate(sent[:-1]):
        if message.role == "user" and at not in pairs and at + 1 in pairs:
            before = (one for one in range(pairs[at + 1] - 1, -1, -1) if stored[one].role == "user")
            asked = next(before, None)
            if asked is not None and f"\n{_stored_form(message.text)}\n" in f"\n{stored[asked].text}\n":
                yield at, asked


def _diverges(stored: Sequence[Message], unsent: Sequence[int], shared: int, new: Sequence[str]) -> int:
    """Return the position from which the stored messages that were not sent are replaced. Before the first
    `shared` one the client may have left out what was too long, unless a `new` message is an edit of it."""
    for at in unsent:
        if at >= shared or (stored[at].role == "user" and any(_alike(stored[at].text, text) for text in new)):
            return at
    return len(stored)


def _alike(text: str, other: str) -> bool:
    return SequenceMatcher(None, text.casefold(), other.casefold(), autojunk=False).ratio() >= ALIKE


def _asked_again(stored: Sequence[Message], now: datetime) -> bool:
    current = [one for one in stored if not one.gone]
    return len(current) <= 2 and now - stored[0].sent_at <= AGAIN


def _stored_form(text: str) -> str:
    return storable(text).strip()
