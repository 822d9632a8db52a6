"""Searches memory for a model, and what it is shown of the things that were found."""

from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Any

from memory.audience import Audience
from memory.index import KINDS, Kind
from memory.process.spans import note
from memory.records import Hit
from memory.search.excerpts import Excerpt, excerpts, relevant
from memory.search.recall import Recall
from memory.sql.messages.message_rows import Line
from memory.text.quoting import speaker, spoken
from memory.text.short_ids import short_ids
from tools.failures import TryAgain

LONGEST_HIT = 1_500
"""Characters of one found thing that the model is shown."""
LONGEST_CONTEXT = 120
"""Characters of a line around a found message."""
LONGEST_RESULT = 4_000
"""Characters of one result, unless a `limit` asks for more."""
FOR_EACH = 100
"""So many characters a result may have for each of the `limit` things."""
Entry = dict[str, Any] | list[str]
"""A fact or summary, or an excerpt."""

NEWEST_SHOWN = 10
"""How many of the newest a search shows that found nothing."""
BESIDE = timedelta(days=1)
"""What is searched on either side of a day that a model names: where somebody else spoke, it may have been
another day."""

MORE = "{count} more; search again for them, or with a higher limit"
NOTHING = "nothing was found"
NOTHING_YET = "nothing is remembered yet"
SEEN = "what you see already, in the prompt or in an earlier result, is left out"
NOTHING_NEW = "nothing new was found: you see already what matches, in the prompt or in an earlier result"
NEWEST_ONLY = "older messages and facts may be missing"


@dataclass(frozen=True, slots=True)
class Reader:
    """Who reads what is found."""

    recall: Recall
    audience: Audience
    zone: tzinfo = UTC
    """Of the times that are shown, and of the days that are asked for."""
    shown: frozenset[str] = frozenset()
    """Ids of what the reader sees already."""
    message_id: str | None = None
    """Of the message that the search is for."""
    searches: list[Sequence[Hit]] = field(default_factory=list)
    """What each earlier search brought. Nothing of it is brought again."""
    lists: list[Sequence[Hit]] = field(default_factory=list)
    """The same of each list of the newest, which nobody searched for."""
    message_ids: bool = False
    """Whether found messages come with their ids."""

    @property
    def seen(self) -> frozenset[str]:
        """Ids of what the prompt and earlier results hold."""
        return self.shown | {hit.id for hit in self.found}

    @property
    def sees(self) -> bool:
        """Whether there is anything that it sees, beside the message that the search is for."""
        return bool(self.seen - {self.message_id})

    @property
    def found(self) -> list[Hit]:
        return [hit for hits in (*self.searches, *self.lists) for hit in hits]


async def find(
    reader: Reader,
    query: str,
    limit: int,
    *,
    subjects: Collection[str] = (),
    since: str | None = None,
    until: str | None = None,
    author: str | None = None,
    kind: Kind | None = None,
) -> dict[str, Any]:
    """Search memory; without a query list the newest. `since` and `until` are days. Raises TryAgain if one
    of them is none. Where nothing was found, the newest stand under `newest`, once a turn."""
    recall, before = reader.recall, {hit.id for hit in reader.found}
    found = await recall.look(
        query,
        reader.audience,
        limit=limit + len(reader.found),
        subjects=subjects,
        exclude=reader.shown,
        kinds=frozenset({kind}) if kind else KINDS,
        since=_day("since", since, reader.zone, -BESIDE),
        until=_day("until", until, reader.zone, timedelta(days=1) + BESIDE),
        author=author or "",
        asking=reader.message_id,
        zone=reader.zone,
    )
    asked, known = bool(query.strip()), found.known - {reader.message_id}
    brought = reader.searches if asked else reader.lists
    result = await _shown(
        reader, relevant(found.hits, found.best), limit, brought, known=bool(known) if asked else reader.sees
    )
    if not (found.hits or known or reader.lists):  # once a turn: a second list would only go further back
        beside = [hit.id for hit in reader.found] + [*reader.shown]
        latest = await recall.search("", reader.audience, limit=NEWEST_SHOWN, exclude=beside)
        listed = await _shown(reader, latest, NEWEST_SHOWN, reader.lists, known=reader.sees)
        if listed["memories"]:
            result |= {"note": NOTHING, "newest": listed["memories"]}
    if found.partial:
        result["note"] = "; ".join(filter(None, [result.get("note"), NEWEST_ONLY]))
    if names := found.aliases.others(query):
        result["also_known_as"] = list(names)
    _note_given(reader, before)
    return result


async def newest(reader: Reader, limit: int) -> dict[str, Any]:
    """The newest facts that the reader does not see yet."""
    before = {hit.id for hit in reader.found}
    listed = await reader.recall.recent(reader.audience, limit, reader.seen)
    result = await _shown(reader, listed, limit, reader.lists, known=reader.sees)
    _note_given(reader, before)
    return result


def _note_given(reader: Reader, before: Collection[str]) -> None:
    """Note in the trace what the reader has been given beside these ids."""
    note(given=[hit.id for hit in reader.found if hit.id not in before])


def _day(name: str, written: str | None, zone: tzinfo, after: timedelta) -> datetime | None:
    """The beginning of the day in the person's zone, or so long after it. A time is dropped."""
    if written is None:
        return None
    try:
        return datetime.combine(
            date.fromisoformat(written.strip()[: len("2026-03-09")]) + after, time(), zone
        )
    except (ValueError, OverflowError) as error:
        raise TryAgain(f"{name}: give a day such as 2026-03-09") from error


async def _shown(
    reader: Reader, hits: Sequence[Hit], limit: int, brought: list[Sequence[Hit]], *, known: bool
) -> dict[str, Any]:
    """The best of the hits that the reader has not been shown yet, as many as fit, and what to say of the
    rest; `known` says whether the prompt holds others. They are added to what was `brought`, and count as
    seen."""
    seen = reader.seen
    new = [hit for hit in hits if hit.id not in seen]
    best = new[:limit]
    around = await reader.recall.around(best, reader.audience)
    ids = short_ids([hit.id for hit in best if hit.memory])
    told_by = await reader.recall.told_by(best, reader.audience)

    def entries_of(parts: Sequence[Hit | Excerpt]) -> list[Entry]:
        return [
            _excerpt(p, reader) if isinstance(p, Excerpt) else _hit(p, ids, told_by, reader.zone)
            for p in parts
        ]

    def characters(count: int) -> int:
        return sum(map(_size, entries_of(excerpts(best[:count], around, seen))))

    room = max(LONGEST_RESULT, FOR_EACH * limit)
    most = bisect_right(range(2, len(best) + 1), room, key=characters) + 1
    parts = excerpts(best[:most], around, seen)
    entries, texts = entries_of(parts), {hit.id: hit for hit in best}
    brought.append([hit for one in parts for hit in _texts(one, texts)])
    result: dict[str, Any] = {"memories": entries}
    if entries and len(new) > most:
        result["more"] = MORE.format(count=len(new) - most)
    if known or len(new) < len(hits):
        result["note"] = SEEN if entries else NOTHING_NEW
    elif not entries:
        result["note"] = NOTHING if reader.sees else NOTHING_YET
    return result


def _hit(hit: Hit, ids: dict[str, str], told_by: Mapping[str, str], zone: tzinfo) -> dict[str, Any]:
    shown: dict[str, Any] = {"id": ids[hit.id]} if hit.memory else {}
    shown |= {"kind": hit.kind, "content": cut(hit.content, LONGEST_HIT), "at": moment(hit.created_at, zone)}
    if hit.id in told_by:
        shown["told_by"] = speaker(told_by[hit.id])
    if hit.memory:
        shown["subjects"] = list(hit.memory.subjects)
        if hit.memory.expires_at:
            shown["expires"] = moment(hit.memory.expires_at, zone)
    return shown


def _excerpt(excerpt: Excerpt, reader: Reader) -> Entry:
    """When its first found message was said, and its lines, with the time of each that begins another day."""
    times = [line.message.sent_at.astimezone(reader.zone) for line in excerpt.lines]
    first = next(
        at for at, line in zip(times, excerpt.lines, strict=True) if line.message.id in excerpt.found
    )
    day = first if first.date() == times[0].date() else times[0]
    at, lines = moment(day, reader.zone), list[str]()
    for told_at, line in zip(times, excerpt.lines, strict=True):
        if told_at.date() != day.date():
            lines.append(moment(told_at, reader.zone))
            day = told_at
        lines += _lines(line, excerpt)
    if not reader.message_ids:
        return [at, *lines]
    ids = [line.message.id for line in excerpt.lines if line.message.id in excerpt.found]
    return {"kind": "messages", "at": at, "lines": lines, "ids": ids}


def _lines(line: Line, excerpt: Excerpt) -> list[str]:
    message = line.message
    gap = ["…"] if message.id in excerpt.gaps else []
    if message.id in excerpt.found:
        return [*gap, spoken(message.author, cut(message.text, LONGEST_HIT), message.role)]
    text = message.text
    short = text if len(text) <= LONGEST_CONTEXT else f"{text[: LONGEST_CONTEXT - 1].rstrip()}…"
    return [*gap, f"~ {spoken(message.author, short, message.role)}"]


def _texts(one: Hit | Excerpt, found: Mapping[str, Hit]) -> list[Hit]:
    """What the reader has read: an answer may rest on the lines around a found message too. Those have the
    score 0."""
    if isinstance(one, Hit):
        return [one]
    messages = [line.message for line in one.lines]
    return [found.get(m.id) or Hit(m.id, "message", m.text, 0.0, m.sent_at, m.id, m.author) for m in messages]


def _size(entry: Entry) -> int:
    return sum(len(str(value)) + 4 for value in (entry if isinstance(entry, list) else entry.values()))


def moment(at: datetime, zone: tzinfo) -> str:
    """``Sat 12 Aug 2023 14:05`` by the person's clock, as the prompt writes "Now"."""
    return f"{at.astimezone(zone):%a %d %b %Y %H:%M}"


def cut(text: str, longest: int) -> str:
    """A pasted page that a search brings back is not to fill the prompt."""
    return text if len(text) <= longest else f"{text[:longest]} … ({len(text) - longest:,} more characters)"
