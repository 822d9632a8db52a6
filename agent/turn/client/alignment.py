"""Lays what a client sends beside the stored messages of the conversation, by position. Pure.

The stored messages are a tree: each follows another, and what was edited or answered anew is a branch. What a
client sends is a path in it, from the first sent message that is stored. What it leaves out, at the beginning
or between two messages, stays: only a message in whose place it sends another is replaced.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from agent.types.client import Said
from memory.records import Message
from memory.text import storable

COMPARED_MESSAGES = 1_000
"""The newest messages that are compared, of a transcript and of what a client sends."""
ROOT = -1
"""The position that the first message of a conversation follows."""
EXCHANGE = ("user", "assistant")

Key = tuple[str, str]
"""The role and the text of a message; two that share them are the same."""


def key_of(one: Said | Message) -> Key:
    return one.role, storable(one.text).strip()


@dataclass(slots=True)
class Alignment:
    """Positions in what a client sends, each with one in what is stored."""

    pairs: dict[int, int] = field(default_factory=dict)
    """The messages that both have."""
    edits: dict[int, int] = field(default_factory=dict)
    """The questions whose words were changed while their answer stayed."""
    answers: dict[int, int] = field(default_factory=dict)
    """The last answer, if only the client has it as it was sent, with the question that it answers."""
    hidden: frozenset[int] = frozenset()
    """The stored messages in whose place the client has others."""


def align(stored: Sequence[Message], sent: Sequence[Key], asked: int) -> Alignment:
    """Align the sent messages, of which the one at `asked` is the question of this turn."""
    skipped = min(asked, max(0, len(sent) - COMPARED_MESSAGES))
    found = _Branches(stored, sent[skipped:], asked - skipped).align()
    for positions in (found.pairs, found.edits, found.answers):
        moved = {skipped + at: here for at, here in positions.items()}
        positions.clear()
        positions.update(moved)
    return found


class _Branches:
    """The tree of the stored messages, beside the sent ones."""

    def __init__(self, stored: Sequence[Message], sent: Sequence[Key], asked: int) -> None:
        self._stored, self._sent, self._asked = stored, sent, asked
        self._keys = [key_of(one) for one in stored]
        self._known = set(self._keys)
        self._before = _before(stored)
        self._current = [at for at, one in enumerate(stored) if not one.gone]
        self._answers = [
            answer if (question[0], answer[0]) == EXCHANGE else None
            for question, answer in pairwise((*sent, ("", "")))
        ]
        """The answer to each sent message, where it is a question that has one."""
        self._next: dict[int, list[int]] = defaultdict(list)
        self._exchanges: dict[tuple[Key, Key], list[int]] = defaultdict(list)
        """Where the current questions are, by their words and their answers'."""
        for at, before in enumerate(self._before):
            self._next[before].append(at)
            if before != ROOT and not stored[before].gone:
                self._exchanges[self._keys[before], self._keys[at]].append(before)
        self._found = Alignment()

    def align(self) -> Alignment:
        found, here = self._found, None
        for at in range(len(self._sent)):
            after = self._start(at) if here is None else self._follow(here, at)
            if after is None:
                continue
            if here is None:
                self._look_back(after, at)
            here = after
            if at not in found.edits:
                found.pairs[at] = here
        if here is not None and self._is_unanswered(here):
            found.answers[self._asked - 1] = here
        if found.pairs:
            path = self._with_ancestors({*found.pairs.values(), *found.edits.values()})
            found.hidden = frozenset(at for at in self._current if at not in path)
        return found

    def _is_unanswered(self, here: int) -> bool:
        """Return whether the client has an answer to its last question before this one, which is stored at
        `here`, and no stored answer is the same."""
        before = [role for role, _ in self._sent[: self._asked]]
        questions = [at for at, role in enumerate(before) if role == "user"]
        return before[-1:] == ["assistant"] and self._found.pairs.get(max(questions, default=ROOT)) == here

    def _with_ancestors(self, path: set[int]) -> set[int]:
        for here in tuple(path):
            while (here := self._before[here]) != ROOT and here not in path:
                path.add(here)
        return path

    def _start(self, at: int) -> int | None:
        """Return where the first sent message that is stored is: where most of what is sent follows, and
        where several are alike, where the least would be replaced. The question alone tells little."""
        if at >= self._asked:
            return self._asked_again() if at == self._asked else None
        if self._sent[at] not in self._known:
            return None
        end, length = self._longest_run(self._sent[at : self._asked])
        for _ in range(length - 1):
            end = self._before[end]
        return end if length else None

    def _longest_run(self, wanted: Sequence[Key]) -> tuple[int, int]:
        """Return where the longest beginning of `wanted` that is stored ends, and its length: if it is stored
        more than once, at the end of the conversation, or before the question. (The search of Knuth, Morris
        and Pratt, on every branch at once.)"""
        borders, best = _borders(wanted), (0, False, False, False, ROOT)
        lengths, waiting = {ROOT: 0}, [ROOT]
        while waiting:
            before = waiting.pop()
            for one in self._next.get(before, ()):
                length, key = lengths[before], self._keys[one]
                while length and (length == len(wanted) or wanted[length] != key):
                    length = borders[length - 1]
                length += wanted[length] == key
                lengths[one] = length
                after = self._next.get(one, ())
                asked = any(self._keys[n] == self._sent[self._asked] for n in after)
                best = max(best, (length, not after, asked, not self._stored[one].gone, one))
                waiting.append(one)
        return best[-1], best[0]

    def _asked_again(self) -> int | None:
        """Return where the question is stored, of which the client sends nothing before it. It is asked again
        if it is the only one or has no answer, or if its answer is sent too; the same words later in a talk
        may well be said anew."""
        last = next((at for at in reversed(self._current) if self._keys[at][0] == "user"), None)
        if last is None or self._keys[last] != self._sent[self._asked]:
            return None
        answers = [self._keys[at] for at in self._current if at > last]
        again = last == self._current[0] or not answers
        return last if again or answers == [*self._sent[self._asked + 1 :]] else None

    def _look_back(self, first: int, at: int) -> None:
        """Compare the sent message before the first that is stored as it was sent with the stored one before
        that: a question in a template, or one that was edited, if the client sends the talk from its
        beginning."""
        before = self._before[first]
        if (
            not 0 < at <= self._asked
            or before == ROOT
            or (self._sent[at - 1][0], self._sent[at][0]) != EXCHANGE
        ):
            return
        if self._keys[before][0] != "user":
            return
        if _in_template(self._keys[before][1], self._sent[at - 1][1]):
            self._found.pairs[at - 1] = before
        elif at == 1 and self._before[before] == ROOT and not self._stored[before].gone:
            self._found.edits[at - 1] = before

    def _follow(self, here: int, at: int) -> int | None:
        """Return the stored message after `here` in whose place the sent one is, on any branch; or else an
        exchange further on, where the client leaves out one before it."""
        after = sorted(self._next.get(here, ()), key=lambda one: self._stored[one].gone)
        same = next((one for one in after if self._keys[one] == self._sent[at]), None)
        if same is not None or at >= self._asked:
            return same
        answer = self._answers[at]
        if answer is None:
            return next((one for one in after if self._goes_on(one, at)), None)
        alike = [one for one in after if any(self._keys[n] == answer for n in self._next.get(one, ()))]
        alike = [one for one in alike if self._keys[one][0] == "user"]
        for one in alike:
            if _in_template(self._keys[one][1], self._sent[at][1]):
                return one
        if alike and not self._stored[alike[0]].gone:
            self._found.edits[at] = alike[0]
            return alike[0]
        further = self._exchanges.get((self._sent[at], answer), ())
        return next(iter(further[bisect_right(further, here) :]), None)

    def _goes_on(self, one: int, at: int) -> bool:
        """Return whether a current answer is followed by what follows the sent one: in the middle of a talk a
        client shortens answers, or takes pictures and links out of them."""
        if self._stored[one].gone or {self._keys[one][0], self._sent[at][0]} != {"assistant"}:
            return False
        return any(self._keys[n] == self._sent[at + 1] for n in self._next.get(one, ()))


def _borders(wanted: Sequence[Key]) -> list[int]:
    """Return for each beginning of a list the length of the longest shorter one that it ends with."""
    borders = [0]
    for key in wanted[1:]:
        length = borders[-1]
        while length and wanted[length] != key:
            length = borders[length - 1]
        borders.append(length + (wanted[length] == key))
    return borders


def _in_template(one: str, other: str) -> bool:
    """Return whether one text contains the other as whole lines."""
    short, long = sorted(
        ("\n".join(["", *map(str.strip, text.splitlines()), ""]) for text in (one, other)), key=len
    )
    return short in long


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
