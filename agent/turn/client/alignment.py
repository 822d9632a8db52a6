"""Pair the messages that a client sends with the stored ones of the conversation, by position. Pure.

The stored messages are a tree: each follows another, and an edit or a new answer begins a branch. The sent
messages are a path in it, from the first one that is stored. Stored messages that the client leaves out, at
the beginning or between two others, stay; only one in whose place it sends another is replaced. A sent
message with other text is an edit of the stored one in its place, if the messages before and after it are
sent and stored too, or if it is at the end of the sent ones.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain

from agent.types.client import MessageItem, without_description
from memory.records import Message
from memory.text import storable

MOST_MESSAGES = 1_000
"""How many of the newest messages are compared, of the stored and of the sent ones."""
MOST_ALIKE = 8
"""How many stored messages with the key of a sent one are tried as its place, besides the first message."""
ROOT = -1
"""The position that the first message of a conversation follows."""
EXCHANGE = ("user", "assistant")

Key = tuple[str, str]
"""Role and text of a message without the description of its pictures; they identify it."""


def key_of(message: MessageItem | Message) -> Key:
    return message.role, without_description(storable(message.text).strip())


def is_same(first: Key, second: Key) -> bool:
    """Return whether two messages are the same, or one is the other question in a client's template."""
    return first == second or (first[0] == second[0] == "user" and _in_template(first[1], second[1]))


@dataclass(slots=True)
class Alignment:
    """Positions of sent messages, each with the position of a stored one."""

    pairs: dict[int, int] = field(default_factory=dict)
    """The messages that both have."""
    changed: dict[int, int] = field(default_factory=dict)
    """Messages that the client has edited."""
    answers: dict[int, int] = field(default_factory=dict)
    """The last answer if only the client has it, with the question that it answers."""
    hidden: frozenset[int] = frozenset()
    """Stored messages that the client has replaced by others."""
    back: frozenset[int] = frozenset()
    """Hidden messages of the branch that the client is on."""

    @property
    def path(self) -> dict[int, int]:
        return self.pairs | self.changed


def align(stored: Sequence[Message], sent: Sequence[Key], asked: int, *, begins: bool = False) -> Alignment:
    """Align the sent messages; the one at `asked` is the question of this turn. With `begins` the client says
    that this question begins the conversation."""
    return _Branches(stored, sent, asked).align(begins=begins)


def branch_of(stored: Sequence[Message], question: str) -> list[Message]:
    """Return the messages up to this question and its answer, on whichever branch they are."""
    before = parents(stored)
    here = next((at for at, one in enumerate(stored) if one.id == question), ROOT)
    answers = [at for at, follows in enumerate(before) if follows == here and stored[at].role == "assistant"]
    path = sorted(answers, key=lambda at: not stored[at].gone)[-1:]
    while here != ROOT:
        path.append(here)
        here = before[here]
    return [stored[at] for at in reversed(path)]


class _Branches:
    """The tree of the stored messages, and the sent ones that are aligned with it."""

    def __init__(self, stored: Sequence[Message], sent: Sequence[Key], asked: int) -> None:
        self._stored, self._sent, self._asked = stored, sent, asked
        self._keys = [key_of(one) for one in stored]
        self._before = parents(stored)
        self._current = [at for at, one in enumerate(stored) if not one.gone]
        self._next: dict[int, list[int]] = defaultdict(list)
        self._exchanges: dict[tuple[Key, Key], list[int]] = defaultdict(list)
        """Positions of current questions, by the keys of the question and of its answer."""
        for at, before in enumerate(self._before):
            self._next[before].append(at)
            if before != ROOT and not stored[before].gone:
                self._exchanges[self._keys[before], self._keys[at]].append(before)
        self._found = Alignment()

    def align(self, *, begins: bool) -> Alignment:
        here, gap = (ROOT if begins else None), list[int]()
        first = self._asked if begins else max(0, len(self._sent) - MOST_MESSAGES)
        for at in range(min(first, self._asked), len(self._sent)):
            after = self._start(at) if here is None else self._after(here, at, gap)
            if here is None and after is not None:
                self._put_before(after, at)
            elif after is None and at == self._asked:
                if here is not None:
                    self._end(here, gap)
                elif gap:
                    self._put_last(gap[-1])
                break
            if after is None:
                gap.append(at)
            else:
                self._found.pairs[at] = here = after
                gap.clear()
        if begins or self._found.path:
            path = self._with_ancestors(set(self._found.path.values()))
            self._found.hidden = frozenset(at for at in self._current if at not in path)
            self._found.back = frozenset(at for at in path if self._stored[at].gone)
        return self._found

    def _with_ancestors(self, path: set[int]) -> set[int]:
        for here in tuple(path):
            while (here := self._before[here]) != ROOT and here not in path:
                path.add(here)
        return path

    def _start(self, at: int) -> int | None:
        """Return the stored position of a sent message, the first that is stored. Of several, it is the one
        that most sent messages follow, then the one by which least is replaced. The question needs more
        evidence."""
        if at >= self._asked:
            return self._asked_again() if at == self._asked else None
        alike = [one for one in reversed(range(len(self._keys))) if self._keys[one] == self._sent[at]]
        alike = [*alike[:MOST_ALIKE], *(one for one in alike[MOST_ALIKE:] if self._before[one] == ROOT)]
        return max((self._run(one, at) for one in alike), default=(None,))[-1]

    def _run(self, begin: int, at: int) -> tuple[int, bool, bool, bool, int]:
        """Return the rank of a start at `begin`: how many sent messages from `at` on follow it, then whether
        they end on the current branch, at its end, and before the question. The last value is `begin`."""
        end, length = begin, 1
        while at + length < self._asked and (after := self._same(end, at + length)) is not None:
            end, length = after, length + 1
        last = self._next.get(end, ())
        asked = any(self._keys[one] == self._sent[self._asked] for one in last)
        return length, not self._stored[end].gone, not last, asked, begin

    def _asked_again(self) -> int | None:
        """Return the stored position of the question, if no message sent before it is stored. It is asked
        again if its answer is sent too, or if it is the last question and is the first message or has no
        answer. Elsewhere the same words may be a new question."""
        question, *answer = self._sent[self._asked : self._asked + 2]
        if answer and (answered := self._exchanges.get((question, answer[0]))):
            return answered[-1]
        last = next((at for at in reversed(self._current) if self._keys[at][0] == "user"), ROOT)
        again = last in {*self._current[:1], *self._current[-1:]}
        return last if again and self._keys[last] == question else None

    def _put_before(self, first: int, at: int) -> None:
        """Pair the sent message before the first pair with the stored one before it: a question in a
        template, or an edited one if the client sends the conversation from its beginning."""
        before = self._before[first]
        if not 0 < at <= self._asked or before == ROOT or self._keys[before][0] != "user":
            return
        begins = at == 1 and self._before[before] == ROOT
        if self._sent[at - 1][0] == "user" and (begins or is_same(self._keys[before], self._sent[at - 1])):
            self._put(at - 1, before)

    def _after(self, here: int, at: int, gap: Sequence[int]) -> int | None:
        """Return the stored position of the sent message after `here`, on any branch: next, after an edited
        message, or in a later exchange if the client leaves out some."""
        if (same := self._same(here, at)) is not None or at > self._asked:
            return same
        for between in self._children(here) if gap == [at - 1] else ():
            same = self._same(between, at)
            if same is not None and self._keys[between][0] == self._sent[at - 1][0]:
                self._put(at - 1, between)
                return same
        if at < self._asked:
            further = self._exchanges.get((self._sent[at], self._sent[at + 1]), ())
            return next(iter(further[bisect_right(further, here) :]), None)
        return None

    def _children(self, here: int) -> list[int]:
        """Return the messages that follow, current ones first."""
        return sorted(self._next.get(here, ()), key=lambda one: self._stored[one].gone)

    def _same(self, here: int, at: int) -> int | None:
        """Return the stored position of the sent message if it follows `here`, with or without a template. Of
        several, prefer one that the next sent message follows."""
        after, then = self._children(here), self._sent[at + 1 : at + 2]
        same = (one for one in after if self._keys[one] == self._sent[at])
        wrapped = (one for one in after if at < self._asked and is_same(self._keys[one], self._sent[at]))
        alike = list(dict.fromkeys(chain(same, wrapped)))
        goes_on = (
            one for one in alike if any([self._keys[next_]] == then for next_ in self._next.get(one, ()))
        )
        return next(chain(goes_on, alike), None)

    def _put(self, at: int, here: int) -> None:
        """Pair a sent message with a stored one. They are the same if they differ only by a client's template
        or cut; else it is an edit."""
        stored, sent = self._keys[here], self._sent[at]
        same = is_same(stored, sent) or (sent[0] == "assistant" and _is_cut(stored[1], sent[1]))
        (self._found.pairs if same else self._found.changed)[at] = here

    def _put_last(self, at: int) -> None:
        """Pair the answer before a new question with the last stored answer, if one text begins with the
        other. Used if no other sent message is stored."""
        (role, sent), last = self._sent[at], self._current[-1:]
        for one in self._next[self._before[last[0]]] if last else ():
            other, stored = self._keys[one]
            if role == other == "assistant" and (stored.startswith(sent) or sent.startswith(stored)):
                self._found.changed[at] = one

    def _end(self, here: int, gap: Sequence[int]) -> None:
        """Pair the last answer or exchange before a new question with what is stored in its place."""
        roles = [self._sent[at][0] for at in gap]
        for at in gap if roles in (["assistant"], [*EXCHANGE]) else ():
            role = self._sent[at][0]
            there = [one for one in self._children(here) if self._keys[one][0] == role]
            if there and not self._stored[there[0]].gone:
                here = self._found.changed[at] = there[0]
            elif role == "assistant" and here != ROOT and self._keys[here][0] == "user":
                self._found.answers[at] = here
            else:
                return


def _is_cut(whole: str, part: str) -> bool:
    """Return whether `part` is an answer that a client has shortened: clients cut older answers, or remove
    pictures and links."""
    words = iter(whole.split())
    return all(word in words for word in part.split())


def _in_template(first: str, second: str) -> bool:
    """Return whether one text contains the other as whole lines."""
    short, long = sorted(
        ("\n".join(["", *map(str.strip, text.splitlines()), ""]) for text in (first, second)), key=len
    )
    return short in long


def parents(stored: Sequence[Message]) -> list[int]:
    """Return for each stored message the position of the one that it follows."""
    positions = {one.id: at for at, one in enumerate(stored)} | {"": ROOT}
    found, current = list[int](), ROOT
    for at, one in enumerate(stored):
        nearest = at - 1 if one.gone else current
        found.append(nearest if one.follows is None else positions.get(one.follows, current))
        current = current if one.gone else at
    return found
