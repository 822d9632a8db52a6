"""A conversation whose history the client keeps, and sends whole with each message.

What the client sends is the conversation. It is laid beside the transcript from its first message that is
stored, and compared by position. A message that both have is not stored again. What the client has no longer
after it, because it was edited or answered anew, is replaced there; what it leaves out before that stays.
Messages that only the client has, such as examples, are shown to the model and not stored.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise

from agent.types import TurnRequest
from agent.types.client import ClientTurn, Item, Said
from memory.process.spans import new_id
from memory.records import Message
from memory.sql.messages import Transcript
from memory.text import storable

MOST = 1_000
"""Messages of a transcript that are compared, the newest."""
NEWEST = 100
"""Messages of an unnamed history, the newest, that tell which conversation it is."""
AGAIN = timedelta(hours=1)
"""A first message without an answer that is sent again within this time is the same one."""
UNNAMED = "chat:~"
"""How the ids of conversations begin that the client does not name."""

Key = tuple[str, str]
"""The role and the text of a message; two that share them are the same."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A client's history beside the transcript."""

    history: tuple[Item, ...] | None = ()
    """The client's, with the ids of those messages that the transcript has; None where that has it alone."""
    question: str | None = None
    """The id of the question, if the transcript has it."""
    replaced: frozenset[str] = frozenset()
    """Messages that the client has replaced."""
    back: frozenset[str] = frozenset()
    """Replaced messages that the client has again."""


async def with_conversation(transcript: Transcript, request: TurnRequest, now: datetime) -> TurnRequest:
    """Return the request with the conversation that a client's unnamed history belongs to: one with the same
    answers so far, or else a new one."""
    client, user = request.client, request.user
    if client is None or client.history is None or user is None or request.conversation:
        return request
    sent = [_key(one) for one in _sent(replace(client, after=()), request.text)[-NEWEST:]]
    answers, questions = ({text for role, text in sent if role == who} for who in ("assistant", "user"))
    if answers:
        found = await transcript.with_answers(user, UNNAMED, answers, questions)
    else:
        found = await transcript.unanswered(user, UNNAMED, sent[0][1], now - AGAIN)
    return replace(request, conversation=found or f"{UNNAMED}{new_id()}:{user}")


async def compare(transcript: Transcript, request: TurnRequest) -> Compared | None:
    """Compare what the client sends with the transcript; None if that is a new message alone."""
    client, user = request.client, request.user
    if client is None or (client.history is None and not client.after):
        return None
    if user is None:
        return Compared(client.history)
    if client.history is None:
        return Compared(None, await transcript.waiting(request.conversation_id, user, request.text))
    stored = await transcript.branches(request.conversation_id, user, MOST)
    pairs = pairs_of(stored, [_key(one) for one in _sent(client, request.text)])
    here = set(pairs.values())
    unsent = range(min(here, default=0), len(stored))
    ids = {at: stored[match].id for at, match in pairs.items()}
    messages = (one for one in client.history if isinstance(one, Said))
    named = {id(one): replace(one, id=ids.get(at, "")) for at, one in enumerate(messages)}
    return Compared(
        tuple(named.get(id(one), one) for one in client.history),
        question=ids.get(len(named)),
        replaced=frozenset(stored[at].id for at in unsent if at not in here and not stored[at].gone),
        back=frozenset(stored[at].id for at in here if stored[at].gone),
    )


def pairs_of(stored: Sequence[Message], sent: Sequence[Key]) -> dict[int, int]:
    """Return the positions in `sent` whose messages are stored, each with its position in `stored`."""
    branches = _Branches(stored, sent)
    start = next((at for at, key in enumerate(sent) if key in branches.known), None)
    if start is None:
        return {}
    here = branches.aligned(start)
    pairs = {start: here}
    before = branches.before(here)
    if start and before is not None and branches.same(before, start - 1):
        pairs[start - 1] = before
    for at in range(start + 1, len(sent)):
        if (found := branches.after(here, at)) is not None:
            pairs[at] = here = found
    return pairs


class _Branches:
    """The stored messages of a conversation beside the sent ones: those that are current, and those that were
    replaced. What was replaced at one moment is the end of one older branch."""

    def __init__(self, stored: Sequence[Message], sent: Sequence[Key]) -> None:
        self._stored = [_key(one) for one in stored]
        self._sent = sent
        self.known = set(self._stored)
        self._current = [at for at, one in enumerate(stored) if not one.gone]
        self._older: dict[datetime | None, list[int]] = {}
        for at, one in enumerate(stored):
            if one.gone:
                self._older.setdefault(one.replaced_at, []).append(at)
        lines = [self._current, *self._older.values()]
        self._next = {one: other for line in lines for one, other in pairwise(line)}
        self._before = {other: one for one, other in self._next.items()}
        self._heads = {self._stored[line[0]]: line[0] for line in lines[1:]}
        self._headed = {self._stored[line[1]]: line[0] for line in lines[1:] if line[1:]}
        self._letters = {key: chr(at) for at, key in enumerate(dict.fromkeys((*self._stored, *sent)))}
        self._current_text = self._text(self._current)

    def before(self, here: int) -> int | None:
        """Return the stored message before this one on its branch."""
        return self._before.get(here)

    def aligned(self, start: int) -> int:
        """Return the stored message where the sent ones from `start` on are: where most of them follow each
        other, at the end if that is so there, or else at the beginning."""
        run = "".join(self._letters[key] for key in self._sent[start : start + MOST])
        older = [at for line in self._older.values() for at in line]
        found = [(_shared(run, text := self._text(line)), text, line) for line in (self._current, older)]
        shared, text, line = max(found, key=lambda one: len(one[0]))
        last = text.endswith(shared) or not text.startswith(shared)
        return line[text.rfind(shared) if last else 0]

    def after(self, here: int, at: int) -> int | None:
        """Return the stored message behind `here` that the sent one is: the next one on its branch or on the
        current one, the first of an older branch, or one further on that has the same answer."""
        following = self._sent[at + 1] if at + 1 < len(self._sent) else None
        further = bisect_right(self._current, here)
        heads = self._heads.get(self._sent[at]), self._headed.get(following) if following else None
        for one in (self._next.get(here), *self._current[further : further + 1], *heads):
            if one is not None and one > here and self.same(one, at):
                return one
        if following and (self._sent[at][0], following[0]) == ("user", "assistant"):
            exchange = self._letters[self._sent[at]] + self._letters[following]
            found = self._current_text.find(exchange, further)
            return self._current[found] if found >= 0 else None
        return None

    def same(self, one: int, at: int) -> bool:
        """Return whether a stored message is the sent one. A question whose answer is unchanged may have
        other words: the client put it into a template, or took it out of one."""
        if self._stored[one] == self._sent[at]:
            return True
        asked = self._stored[one][0] == self._sent[at][0] == "user" and one in self._next
        answer = self._stored[self._next[one]] if asked else None
        return answer is not None and answer[0] == "assistant" and self._sent[at + 1 : at + 2] == [answer]

    def _text(self, line: Sequence[int]) -> str:
        """Return one letter for each message: text is searched faster than a list."""
        return "".join(self._letters[self._stored[at]] for at in line)


def _shared(run: str, text: str) -> str:
    """Return the longest beginning of the run that stands in the text."""
    return run[: bisect_left(range(1, len(run) + 1), True, key=lambda length: run[:length] not in text)]


def _sent(client: ClientTurn, text: str) -> list[Said]:
    """Return the messages of the client's conversation, the question among them."""
    items = (*(client.history or ()), Said("user", text), *client.after)
    return [item for item in items if isinstance(item, Said)]


def _key(one: Said | Message) -> Key:
    return one.role, storable(one.text).strip()
