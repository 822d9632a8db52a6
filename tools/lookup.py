"""Search memory for a model, and cut the hits to the size that it may read."""

from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Any

from memory.audience import Audience
from memory.index import KINDS, Kind
from memory.process.spans import note
from memory.records import Hit
from memory.search.excerpts import Excerpt, excerpts, relevant
from memory.search.recall import Recall
from memory.sql.messages.message_rows import Line
from memory.text import one_line
from memory.text.quoting import short_ids, speaker, spoken
from tools.failures import TryAgain

LONGEST_HIT = 1_500
"""Maximum characters of one hit in a result."""
LONGEST_CONTEXT = 120
"""Maximum characters of a message around a hit."""
LONGEST_RESULT = 4_000
"""Maximum characters of one result, unless the `limit` asks for more."""
FOR_EACH = 100
"""Characters that a result may have for each item of its `limit`."""
Entry = dict[str, Any] | list[str]
"""A fact or summary; or an excerpt, as a list of lines."""

NEWEST_SHOWN = 10
"""How many of the newest facts a search without hits returns."""
BESIDE = timedelta(days=1)
"""Margin before and after a day in a query, since the day may differ in another speaker's time zone."""

MORE = "{count} more; search again for them, or with a higher limit"
NOTHING = "nothing was found"
NOTHING_YET = "nothing is remembered yet"
SEEN = "without what you see already, in the prompt or in an earlier result"
NOTHING_NEW = "nothing new was found: you see already what matches, in the prompt or in an earlier result"
NEWEST_ONLY = "older messages and facts may be missing"


@dataclass(frozen=True, slots=True)
class Reader:
    """Who searches, and what they have read in this turn."""

    recall: Recall
    audience: Audience
    zone: tzinfo = UTC
    """The zone of days in a query and of times in a result."""
    shown: frozenset[str] = frozenset()
    """Ids of the messages and facts in the prompt."""
    message_id: str | None = None
    """The message that began the turn."""
    searches: list[Sequence[Hit]] = field(default_factory=list)
    """The hits of each earlier search. No hit is returned twice."""
    lists: list[Sequence[Hit]] = field(default_factory=list)
    """The hits of each list of the newest."""
    message_ids: bool = False
    """Whether results contain the ids of messages."""

    @property
    def visible_ids(self) -> frozenset[str]:
        """Return the ids in the prompt and in earlier results."""
        return self.shown | {hit.id for hit in self.all_hits}

    @property
    def sees_anything(self) -> bool:
        """Return whether the prompt or earlier results hold more than the message that began the turn."""
        return bool(self.visible_ids - {self.message_id})

    @property
    def all_hits(self) -> list[Hit]:
        """Return the hits of all searches and lists."""
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
    """Search memory, or list the newest without a query. `since` and `until` are days; anything else raises
    TryAgain. A search without hits returns the newest under `newest`, but only once a turn."""
    recall, before = reader.recall, {hit.id for hit in reader.all_hits}
    found = await recall.look(
        query,
        reader.audience,
        limit=limit + len(reader.all_hits),
        subjects=subjects,
        exclude=reader.shown,
        kinds=frozenset({kind}) if kind else KINDS,
        since=_day("since", since, reader.zone, -BESIDE),
        until=_day("until", until, reader.zone, timedelta(days=1) + BESIDE),
        author=author or "",
        asking=reader.message_id,
        zone=reader.zone,
    )
    asked, known = bool(query.strip()), found.excluded_matches - {reader.message_id}
    brought = reader.searches if asked else reader.lists
    result = await _shown(
        reader,
        relevant(found.hits, found.best),
        limit,
        brought,
        known=bool(known) if asked else reader.sees_anything,
    )
    if not (found.hits or known or reader.lists):  # only once: a second list would hold older ones
        beside = [hit.id for hit in reader.all_hits] + [*reader.shown]
        latest = await recall.search("", reader.audience, limit=NEWEST_SHOWN, exclude=beside)
        listed = await _shown(reader, latest, NEWEST_SHOWN, reader.lists, known=reader.sees_anything)
        if listed["memories"]:
            result |= {"note": NOTHING, "newest": listed["memories"]}
    if found.partial:
        result["note"] = "; ".join(filter(None, [result.get("note"), NEWEST_ONLY]))
    if names := found.aliases.other_names(query):
        result["also_known_as"] = list(names)
    _note_shown(reader, before)
    return result


async def newest(reader: Reader, limit: int) -> dict[str, Any]:
    """List the newest facts that the reader has not read."""
    before = {hit.id for hit in reader.all_hits}
    listed = await reader.recall.recent(reader.audience, limit, reader.visible_ids)
    result = await _shown(reader, listed, limit, reader.lists, known=reader.sees_anything)
    _note_shown(reader, before)
    return result


def _note_shown(reader: Reader, before: Collection[str]) -> None:
    """Record in the trace the ids that the reader was shown, except those in `before`."""
    note(given=[hit.id for hit in reader.all_hits if hit.id not in before])


def _day(name: str, written: str | None, zone: tzinfo, after: timedelta) -> datetime | None:
    """Return the start of the day in the person's zone, plus `after`. A time of day is ignored."""
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
    """Write as many of the best new hits as fit, with a note on the rest. `known`: the prompt holds further
    hits. The hits that were written are added to `brought`."""
    seen = reader.visible_ids
    new = [hit for hit in hits if hit.id not in seen]
    best = new[:limit]
    around = await reader.recall.around(best, reader.audience)
    ids = short_ids([hit.id for hit in best if hit.memory])
    tellers = await reader.recall.tellers(best, reader.audience)

    def entries_of(parts: Sequence[Hit | Excerpt]) -> list[Entry]:
        return [
            _excerpt(p, reader) if isinstance(p, Excerpt) else _hit(p, ids, tellers, reader.zone)
            for p in parts
        ]

    def characters(count: int) -> int:
        return sum(map(_size, entries_of(excerpts(best[:count], around, seen))))

    room = max(LONGEST_RESULT, FOR_EACH * limit)
    most = bisect_right(range(2, len(best) + 1), room, key=characters) + 1
    parts = excerpts(best[:most], around, seen)
    entries, texts = entries_of(parts), {hit.id: hit for hit in best}
    brought.append([hit for part in parts for hit in _texts(part, texts, reader.audience)])
    result: dict[str, Any] = {"memories": entries}
    if entries and len(new) > most:
        result["more"] = MORE.format(count=len(new) - most)
    if known or len(new) < len(hits):
        result["note"] = SEEN if entries else NOTHING_NEW
    elif not entries:
        result["note"] = NOTHING if reader.sees_anything else NOTHING_YET
    return result


def _hit(hit: Hit, ids: dict[str, str], tellers: Mapping[str, str], zone: tzinfo) -> dict[str, Any]:
    shown: dict[str, Any] = {"id": ids[hit.id]} if hit.memory else {}
    shown |= {"kind": hit.kind, "content": cut(hit.content, LONGEST_HIT), "at": moment(hit.created_at, zone)}
    if hit.origin:
        shown["from"] = hit.origin
    if hit.id in tellers:
        shown["told_by"] = speaker(tellers[hit.id])
    if hit.memory:
        shown["subjects"] = list(hit.memory.subjects)
        if hit.memory.expires_at:
            shown["expires"] = moment(hit.memory.expires_at, zone)
    return shown


def _excerpt(excerpt: Excerpt, reader: Reader) -> Entry:
    """Write an excerpt: the time of its first hit, its messages, and the time of each message that begins
    another day."""
    times = [line.message.sent_at.astimezone(reader.zone) for line in excerpt.lines]
    first = next(
        at for at, line in zip(times, excerpt.lines, strict=True) if line.message.id in excerpt.hit_ids
    )
    day = first if first.date() == times[0].date() else times[0]
    at, lines = moment(day, reader.zone), list[str]()
    for told_at, line in zip(times, excerpt.lines, strict=True):
        if told_at.date() != day.date():
            lines.append(moment(told_at, reader.zone))
            day = told_at
        lines += _lines(line, excerpt, reader.audience.origin(line.owners))
    if not reader.message_ids:
        return [at, *lines]
    ids = [line.message.id for line in excerpt.lines if line.message.id in excerpt.hit_ids]
    return {"kind": "messages", "at": at, "lines": lines, "ids": ids}


def _lines(line: Line, excerpt: Excerpt, origin: str) -> list[str]:
    """Write the lines of a message; the author's name also says if it is from another place or account."""
    message = line.message
    said = f" (in {one_line(origin)})" if origin else ""
    gap = ["…"] if message.id in excerpt.gaps else []
    if message.id in excerpt.hit_ids:
        return [*gap, spoken(message.author, cut(message.text, LONGEST_HIT), message.role, said)]
    text = message.text
    short = text if len(text) <= LONGEST_CONTEXT else f"{text[: LONGEST_CONTEXT - 1].rstrip()}…"
    return [*gap, f"~ {spoken(message.author, short, message.role, said)}"]


def _texts(part: Hit | Excerpt, hits: Mapping[str, Hit], audience: Audience) -> list[Hit]:
    """Return what the reader has read: a hit, or all messages of an excerpt, since an answer may rest on
    those too. Messages around a hit have score 0."""
    if isinstance(part, Hit):
        return [part]
    return [
        replace(
            hits.get(m.id) or Hit(m.id, "message", m.text, 0.0, m.sent_at, m.id, m.author),
            origin=audience.origin(line.owners),
        )
        for line in part.lines
        for m in (line.message,)
    ]


def _size(entry: Entry) -> int:
    return sum(len(str(value)) + 4 for value in (entry if isinstance(entry, list) else entry.values()))


def moment(at: datetime, zone: tzinfo) -> str:
    """Write ``Sat 12 Aug 2023 14:05`` in the person's zone, the format of "Now" in the prompt."""
    return f"{at.astimezone(zone):%a %d %b %Y %H:%M}"


def cut(text: str, longest: int) -> str:
    """Cut a text and say how much is missing, so that one pasted page does not fill the prompt."""
    return text if len(text) <= longest else f"{text[:longest]} … ({len(text) - longest:,} more characters)"
