"""A conversation whose history the client keeps, and sends whole with each message.

What the client sends is the conversation. It is aligned with the transcript at its first message that is
stored, and compared by position from there. A message that both have is not stored again. What the client no
longer has, because it was edited or answered anew, is hidden; an older branch that comes back is shown again.
What the client leaves out before the first stored message stays. Messages that only the client has, such as
examples, are shown to the model and not stored.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from itertools import pairwise

from sqlalchemy.ext.asyncio import AsyncConnection

from agent.types import TurnRequest
from agent.types.client import ClientTurn, Item, Said
from memory.audience import user_key
from memory.forgetting.hiding import bring_back, replace_messages
from memory.process.spans import new_id
from memory.records import Message
from memory.sql.messages.transcript import Transcript
from memory.text import storable

COMPARED_MESSAGES = 1_000
"""The newest messages that are compared, of a transcript and of what a client sends."""
AGAIN = timedelta(hours=1)
"""A first message without an answer that is sent again within this time is the same one."""
UNNAMED = "chat:~"
"""How the ids of conversations begin that the client does not name."""
ROOT = -1
"""The position that the first message of a conversation follows."""
EXCHANGE = ("user", "assistant")

Key = tuple[str, str]
"""The role and the text of a message; two that share them are the same."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A client's history beside the transcript."""

    history: tuple[Item, ...] | None = None
    """The client's, with the ids of the messages that are stored; None where the transcript has it."""
    question: str | None = None
    """The id of the question, if it is stored."""
    follows: str | None = None
    """The stored message that the question follows; empty if it begins the conversation."""
    hidden: frozenset[str] = frozenset()
    """Messages that the client no longer has."""
    back: frozenset[str] = frozenset()
    """Hidden messages that the client has again."""

    def locks(self, user: str) -> set[str]:
        """Return the keys to lock before it is followed."""
        return {user_key(user)} if self.hidden or self.back else set()


async def with_continued_conversation(
    transcript: Transcript, request: TurnRequest, now: datetime
) -> TurnRequest:
    """Return the request with the conversation that a client's unnamed history continues, or a new one."""
    client, user = request.client, request.user
    if client is None or client.history is None or user is None or request.conversation:
        return request
    sent = [_key(one) for one in _sent(replace(client, after=()), request.text)]
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
        return Compared(None, await transcript.waiting(request.conversation_id, user, request.text))
    stored = await transcript.branches(request.conversation_id, user, COMPARED_MESSAGES)
    pairs = pairs_of(stored, [_key(one) for one in _sent(client, request.text)])
    history: list[Item] = []
    asked = 0
    for one in client.history:
        if isinstance(one, Said):
            one = replace(one, id=stored[pairs[asked]].id if asked in pairs else "")
            asked += 1
        history.append(one)
    return replace(compared(stored, pairs, asked), history=tuple(history))


async def follow(connection: AsyncConnection, sent: Compared, user: str, now: datetime) -> None:
    """In the caller's transaction, hide what the client no longer has, and show again what it has again."""
    if sent.hidden:
        await replace_messages(connection, sent.hidden, user, now)
    if sent.back:
        await bring_back(connection, sent.back, user, now)


def compared(stored: Sequence[Message], pairs: Mapping[int, int], asked: int) -> Compared:
    """Return what follows from the `pairs_of` two lists; `asked` is where the client's has the question."""
    before = [here for at, here in pairs.items() if at < asked]
    return Compared(
        question=stored[pairs[asked]].id if asked in pairs else None,
        follows=stored[before[-1]].id if before else "",
        hidden=frozenset(stored[at].id for at in _left(stored, pairs)),
        back=frozenset(stored[at].id for at in pairs.values() if stored[at].gone),
    )


def pairs_of(stored: Sequence[Message], sent: Sequence[Key]) -> dict[int, int]:
    """Return the positions in `sent` whose messages are stored, each with its position in `stored`."""
    skipped = max(0, len(sent) - COMPARED_MESSAGES)
    return {skipped + at: here for at, here in _Branches(stored, sent[skipped:]).pairs()}


class _Branches:
    """The stored messages of a conversation, current and hidden ones, beside the sent ones. Each follows
    another, so they are a tree, and what a client has is a path in it."""

    def __init__(self, stored: Sequence[Message], sent: Sequence[Key]) -> None:
        self._stored, self._sent = stored, sent
        self._keys = [_key(one) for one in stored]
        self._answers = [
            answer if (asked[0], answer[0]) == EXCHANGE else None
            for asked, answer in pairwise((*sent, ("", "")))
        ]
        """The answer to each sent message, where it is a question that has one."""
        self._next: dict[int, list[int]] = defaultdict(list)
        self._exchanges: dict[tuple[Key, Key], list[int]] = defaultdict(list)
        """Where the current questions are, by their words and their answers'."""
        for at, before in enumerate(_before(stored)):
            self._next[before].append(at)
            if before != ROOT and not stored[before].gone:
                self._exchanges[self._keys[before], self._keys[at]].append(before)

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Yield the positions in `sent` and `stored` of the messages that both have."""
        here: int | None = None
        for at in range(len(self._sent)):
            found = self._start(at) if here is None else self._follow(here, at)
            if found is not None:
                here = found
                yield at, here

    def _start(self, at: int) -> int | None:
        """Return where the sent message is stored: there where most of what is sent follows; at the end of
        the conversation or else at its beginning, where several are alike."""
        if self._known.isdisjoint((self._sent[at], self._answers[at])):
            return None
        runs = {one: self._run(one, at) for one in range(len(self._stored)) if any(self._alike(one, at))}
        ends = {one: not self._next[last] for one, (_, last) in runs.items()}
        first = set(self._next[ROOT])
        return max(runs, key=lambda one: (runs[one][0], ends[one], one in first, one), default=None)

    @cached_property
    def _known(self) -> set[Key | None]:
        return set(self._keys)

    def _run(self, here: int, at: int) -> tuple[int, int]:
        """Return how many sent messages in a row are stored from here on, and the last of them."""
        length = 0
        found: int | None = here
        while found is not None:
            here, length = found, length + 1
            found = self._child(here, at + length)
        return length, here

    def _follow(self, here: int, at: int) -> int | None:
        """Return the stored message after `here` that the sent one is: the next one on any branch, or an
        exchange further on that the client still has, where one before it was deleted."""
        if (found := self._child(here, at)) is not None:
            return found
        answer = self._answers[at]
        further = self._exchanges.get((self._sent[at], answer), ()) if answer else ()
        return next((one for one in further if one > here), None)

    def _child(self, here: int, at: int) -> int | None:
        if at >= len(self._sent):
            return None
        alike = {one: (*self._alike(one, at), not self._stored[one].gone) for one in self._next[here]}
        best = max(alike, key=alike.__getitem__, default=None)
        return best if best is not None and any(alike[best][:2]) else None

    def _alike(self, one: int, at: int) -> tuple[bool, bool]:
        """Return whether a stored message and the sent one are questions with the same answer, and whether
        they have the same words. The words of a question whose answer is unchanged may have changed: the
        client put it into a template, or took it out of one."""
        answer, question = self._answers[at], self._keys[one][0] == "user"
        answered = answer is not None and question and any(self._keys[n] == answer for n in self._next[one])
        return answered, self._keys[one] == self._sent[at]


def _before(stored: Sequence[Message]) -> list[int]:
    """Return for each stored message the position of the one that it follows."""
    positions = {one.id: at for at, one in enumerate(stored)} | {"": ROOT}
    found: list[int] = []
    current = ROOT
    for at, one in enumerate(stored):
        if one.follows is None:
            found.append(at - 1 if one.gone else current)
        else:
            found.append(positions.get(one.follows, current))
        current = current if one.gone else at
    return found


def _left(stored: Sequence[Message], pairs: Mapping[int, int]) -> Iterator[int]:
    """Yield the current messages that are not the client's, and not before the first that is."""
    before, here = _before(stored), min(pairs.values(), default=ROOT)
    path = set(pairs.values())
    while here != ROOT:
        here = before[here]
        path.add(here)
    return (at for at, one in enumerate(stored) if not one.gone and at not in path)


def _continued(talks: Iterable[Sequence[Message]], sent: Sequence[Key]) -> str | None:
    """Return the conversation that the sent one continues: the newest in which nothing follows what was sent
    up to the question. Or else the one that was sent word for word up to there, if it is the only one: it is
    edited."""
    edited = []
    for talk in talks:
        pairs = pairs_of(talk, sent)
        last = max((at for at, (role, _) in enumerate(sent) if role == "assistant"), default=len(sent) - 1)
        if last in pairs and not any(_left(talk, pairs)):
            return talk[0].conversation_id
        if all(at in pairs and _key(talk[pairs[at]]) == sent[at] for at in range(last + 1)):
            edited.append(talk[0].conversation_id)
    return edited[0] if len(edited) == 1 else None


def _waits(talk: Sequence[Message], since: datetime) -> bool:
    """Return whether nothing has been answered, and the last question is not older."""
    return talk[-1].sent_at >= since and all(one.role == "user" for one in talk)


def _sent(client: ClientTurn, text: str) -> list[Said]:
    """Return the messages of the client's conversation, the question among them."""
    items = (*(client.history or ()), Said("user", text), *client.after)
    return [item for item in items if isinstance(item, Said)]


def _key(one: Said | Message) -> Key:
    return one.role, storable(one.text).strip()
