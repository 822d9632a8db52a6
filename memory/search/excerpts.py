"""Show found messages as excerpts of conversations.

"No, this is not necessary" means nothing alone. So a short message comes with the one before it, and among
the best hits a question comes with its answer and an answer with its question. Found messages of one sitting
become one excerpt. Pure.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise

from memory.index.windows import GAP, SHORT
from memory.records import Hit
from memory.search.ranking import asks
from memory.sql.messages.message_rows import Line

RELEVANT = 0.2
"""A hit with less than this share of the best score is left out."""
EXPLAINED = 5
"""This many hits come with question or answer. With more, fewer hits would fit (LoCoMo: 0.856, not 0.865)."""
SITTING = timedelta(hours=1)
"""Messages of a conversation within this time of each other share an excerpt, and its time."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Messages of one conversation, in order."""

    lines: tuple[Line, ...]
    hit_ids: frozenset[str]
    """The ids of the messages that matched. The others are their context."""
    gaps: frozenset[str]
    """The ids of the messages before which others were left out."""


def relevant(hits: Sequence[Hit], best: float) -> list[Hit]:
    """Return the hits whose score is at least `RELEVANT` of the `best` one."""
    return [hit for hit in hits if hit.score >= RELEVANT * best]


def excerpts(
    hits: Sequence[Hit], around: Mapping[str, Sequence[Line]], visible_ids: Collection[str] = ()
) -> list[Hit | Excerpt]:
    """Turn messages into excerpts, in the order of the best hit in each; facts and summaries stay.

    `around` has the lines before and after each found message. Lines in `visible_ids` are not shown around a
    message; a message without lines was deleted meanwhile.
    """
    shown: list[Hit | list[str]] = []
    for hit in hits:
        if hit.kind != "message":
            shown.append(hit)
        elif hit.id in around:
            sitting = (one for one in shown if isinstance(one, list) and _one_sitting(one[0], hit.id, around))
            if (excerpt := next(sitting, None)) is None:
                shown.append([hit.id])
            else:
                excerpt.append(hit.id)
    best = frozenset(hit.id for hit in hits[:EXPLAINED])
    return [one if isinstance(one, Hit) else _excerpt(one, around, visible_ids, best) for one in shown]


def _one_sitting(one: str, other: str, around: Mapping[str, Sequence[Line]]) -> bool:
    a, b = (_line(id, around[id]).message for id in (one, other))
    return a.conversation_id == b.conversation_id and abs(a.sent_at - b.sent_at) <= SITTING


def _line(id: str, window: Sequence[Line]) -> Line:
    return next(line for line in window if line.message.id == id)


def _excerpt(
    ids: Sequence[str],
    around: Mapping[str, Sequence[Line]],
    visible: Collection[str],
    best: Collection[str],
) -> Excerpt:
    context = [line for hit in ids for line in _context(hit, around[hit], hit in best)]
    lines = {line.message.id: line for line in context if line.message.id not in visible}
    lines |= {hit: _line(hit, around[hit]) for hit in ids}
    beside = {(a.seq, b.seq) for hit in ids for a, b in pairwise(around[hit])}
    ordered = sorted(lines.values(), key=lambda line: line.seq)
    gaps = {b.message.id for a, b in pairwise(ordered) if (a.seq, b.seq) not in beside}
    return Excerpt(tuple(ordered), frozenset(ids), frozenset(gaps))


def _context(id: str, window: Sequence[Line], best: bool) -> list[Line]:
    """Return the lines that the found line needs to be understood."""
    at = next(at for at, line in enumerate(window) if line.message.id == id)
    before, line, after = window[:at], window[at], window[at + 1 :]
    context: Sequence[Line] = ()
    if best and asks(line.message.text):
        answered = [n for n, other in enumerate(after) if other.message.author != line.message.author]
        context = after[: answered[0] + 1] if answered else ()
    elif before and (len(line.message.text) < SHORT or (best and _answers(line, before[-1]))):
        context = before[-1:]
    return [one for one in context if _together(one, line)]


def _answers(line: Line, before: Line) -> bool:
    return before.message.author != line.message.author and asks(before.message.text)


def _together(one: Line, other: Line) -> bool:
    return abs(one.message.sent_at - other.message.sent_at) <= GAP
