"""Consolidation after a turn: the conversation's summary, and what is known of who spoke.

At most one model call for an exchange (`extraction.py`), and one for several where turns come fast:
what the summary does not cover yet is looked at together. What was found is written in one transaction, with
where the summary now reaches to; so a crash in between does it again, and nothing is applied twice. With no
model for it, a plain digest is made, and only what is said in plain words is noted.
"""

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from agent.background.extraction import (
    KNOWN_FACTS,
    ConversationSlice,
    ExtractionResult,
    Mode,
    NotUnderstood,
    as_summary,
    extract_memory_updates,
)
from agent.background.plain import plain_summary, plain_updates
from agent.errors import ModelUnavailable
from agent.models.choose import ChosenModel
from agent.settings import Budget
from agent.turn.jobs import LOOK_BACK, STORE_MEMORIES
from agent.turn.user_snippet import fitting
from memory.audience import Audience, Place
from memory.conversations.summaries import ConversationSummaries, owner_of
from memory.errors import NotFound
from memory.facts.candidate import Provenance
from memory.facts.similar import SimilarFacts
from memory.facts.ttl import describe
from memory.facts.writer import FactWriter
from memory.index import bm25 as words
from memory.people.profile import (
    MEMORY_SUMMARY,
    Entry,
    MemoryUpdates,
    NewFact,
    NewPreference,
    UserContext,
    entries_of,
)
from memory.people.profile_store import ProfileStore
from memory.people.tasks import Tasks
from memory.records import Decision, Draft, Memory, Message
from memory.search.core_facts import core_facts, get_relevant_memories
from memory.spans import note, span
from memory.sql.engine import Database
from memory.sql.jobs import Job, JobQueue
from memory.sql.memories import MemoryStore
from memory.sql.messages import Line, missing
from memory.sql.tables import memories

log = logging.getLogger("hachi.upkeep")

APPLY_UPDATES = "apply_updates"
"""The kind of work that stores the facts and tasks that looking back has found."""

MESSAGES = 6
"""How many messages are looked back at together at most."""
ANSWERED_WITHIN = timedelta(minutes=10)
"""What has no answer for so long will get none: the turn has failed."""
ENOUGH = 4
"""From this attempt on a model that does not answer is done without: the summary goes on plainly."""
MOST_DOUBTS = 8
NEWS = 10
"""After so many new facts, the summary of them is made anew."""
FACTS_TO_SUM = 40
IMPORTANCE = {"low": 0.3, "medium": 0.6, "high": 0.9}


@dataclass(frozen=True)
class Consolidation:
    """What looking back needs, wired by `agent/companion.py`."""

    database: Database
    conversations: ConversationSummaries
    contexts: ProfileStore
    store: MemoryStore
    tasks: Tasks
    queue: JobQueue
    writer: FactWriter
    similar: SimilarFacts
    clock: Callable[[], datetime]
    model: ChosenModel | None
    """None: a plain digest."""
    judging: bool
    """Whether doubts about what takes whose place ride along in the call."""
    mode: Mode
    """Of conversations that have none of their own."""
    summary: Budget
    context: Budget
    """What the person's context has room for: when it outgrows that, a summary of it is asked for."""
    explain: Callable[[Exception], Exception | None]


async def look_back(parts: Consolidation, piece: Job) -> list[Decision]:
    """The handler of LOOK_BACK: everything that the conversation's summary does not cover yet, some messages
    at a time, and so all pieces of work about it. What was decided about facts of the piece's user. Raises
    ModelError where the model cannot be reached."""
    conversation, place = piece.payload["conversation"], Place(tuple(piece.payload["place"]))
    decisions: list[Decision] = []
    while True:
        upto = await parts.queue.newest(LOOK_BACK, str(piece.about))
        exchange = await newest_exchange(parts, conversation, piece.user_id, place)
        if exchange is None:
            await parts.queue.done_about(LOOK_BACK, str(piece.about), upto)
            return decisions
        await parts.queue.renew(piece, parts.clock())
        decided = await extract_and_save(parts, exchange, last_try=piece.attempts >= ENOUGH)
        decisions += decided if exchange.user == piece.user_id else []


async def newest_exchange(
    parts: Consolidation, conversation: str, user: str, place: Place
) -> ConversationSlice | None:
    """What is to be looked back at next; None where the summary covers everything that has been answered."""
    owner, now = owner_of(user, place), parts.clock()
    active = await parts.conversations.of(conversation, owner)
    heard = await parts.conversations.uncovered(conversation, user, place, MESSAGES)
    lines = _answered(heard, now)
    if not lines:
        return None
    spoke, messages = lines[0].user, tuple(line.message for line in lines)
    if spoke != user and await parts.queue.waiting(STORE_MEMORIES, spoke):
        return None  # their own look back comes after that, and knows what was kept
    audience = Audience.of(spoke, place)
    noted = [
        memory
        for memory in await parts.store.where(memories.c.message_id.in_([m.id for m in messages]))
        if audience.may_read(memory.owners)
    ]
    facts = [] if parts.model is None else await core_facts(parts.store, spoke, audience, now)
    known = await parts.contexts.view(spoke, place)
    said = " ".join(message.text for message in messages)
    tasks = await parts.tasks.relevant(spoke, said, place="" if place.private else place.key, now=now)
    return ConversationSlice(
        conversation_id=conversation,
        owner=owner,
        place=place,
        user=spoke,
        speaker=next((m.author for m in reversed(messages) if m.role == "user"), spoke),
        messages=messages,
        previous=active.summary if active else "",
        after=active.covered if active else 0,
        upto=lines[-1].seq,
        mode=_mode(active.mode if active else None, parts.mode),
        known=replace(
            known,
            long_term_facts=tuple(get_relevant_memories(facts, said, limit=KNOWN_FACTS)),
            open_tasks=tuple(tasks),
        ),
        noted=tuple(noted),
        doubts=tuple(await _doubts(parts, noted)),
        too_much=tuple(await _too_much(parts, spoke, place, known, facts)),
        now=now,
    )


async def extract_and_save(
    parts: Consolidation, exchange: ConversationSlice, *, last_try: bool = False
) -> list[Decision]:
    """One exchange: find what it changes, write it, carry it out. On the `last_try` a model that fails is
    done without."""
    with span("exchange", messages=[message.id for message in exchange.messages]):
        found = await _findings(parts, exchange, last_try)
        note(findings=found)
    work = await apply_memory_updates_to_user_context(parts, exchange, found)
    piece = await parts.queue.take(work) if work else None
    if piece is None:
        return []
    decisions = await store_updates(parts, piece)
    await parts.queue.done(piece.id)
    return decisions


async def _findings(parts: Consolidation, exchange: ConversationSlice, last_try: bool) -> ExtractionResult:
    """By the model, or plainly where there is none, nobody but the companion spoke, or the answer cannot be
    used."""
    if parts.model is None or not exchange.said:
        return plain_findings(exchange, parts.summary)
    try:
        found = await extract_memory_updates(parts.model, exchange, parts.summary)
    except NotUnderstood as error:
        note(well_formed=False)
        _log(exchange, ok=False, error=str(error))
        return _without_a_model(exchange, parts.summary)
    except Exception as error:
        _log(exchange, ok=False, error=f"{type(error).__name__}: {error}"[:200])
        fault = parts.explain(error)
        if fault is None:
            raise
        if isinstance(fault, ModelUnavailable) and last_try:
            return _without_a_model(exchange, parts.summary)
        raise fault from error
    _log(exchange, ok=True, updates=found.updates)
    return found


def plain_findings(exchange: ConversationSlice, summary: Budget) -> ExtractionResult:
    """What can be told without a model."""
    told = [pair for message in exchange.said for pair in plain_updates(message.text)]
    preferences = tuple(NewPreference(key=key, value=value) for key, value in told)
    updates = MemoryUpdates(new_preferences=preferences)
    return ExtractionResult(_plain(exchange, summary), updates, None, frozenset())


def _without_a_model(exchange: ConversationSlice, summary: Budget) -> ExtractionResult:
    """The conversation's summary goes on; of the person nothing is changed."""
    return ExtractionResult(_plain(exchange, summary), MemoryUpdates(), None, frozenset())


def _plain(exchange: ConversationSlice, summary: Budget) -> str:
    return as_summary(plain_summary(exchange.previous, exchange.messages), summary)


async def apply_memory_updates_to_user_context(
    parts: Consolidation, exchange: ConversationSlice, found: ExtractionResult
) -> str | None:
    """Write what was found in one transaction, by merging: the summary and how far it reaches, what is known
    of the person, and the work of storing facts and tasks, whose id it returns. Where somebody else has
    looked back at the same messages meanwhile, or they were erased, nothing is written."""
    entries = _entries(exchange, found)
    payload = _payload(exchange, found)
    async with parts.database.write() as connection:
        if await missing(connection, [message.id for message in exchange.messages]):
            return None
        if not await update_active_summary(parts, connection, exchange, found.summary):
            return None
        if entries:
            await parts.contexts.merge_in(connection, exchange.user, exchange.place, entries)
        if not payload:
            return None
        return await parts.queue.add(
            connection, APPLY_UPDATES, exchange.user, payload, exchange.now, ours=True
        )


async def update_active_summary(
    parts: Consolidation, connection: Any, exchange: ConversationSlice, summary: str
) -> bool:
    """The conversation's summary from now on; False where another has been quicker."""
    return await parts.conversations.update_in(
        connection,
        exchange.conversation_id,
        exchange.owner,
        summary or exchange.previous,
        after=exchange.after,
        covered=exchange.upto,
        now=exchange.now,
    )


async def store_updates(parts: Consolidation, piece: Job) -> list[Decision]:
    """The handler of APPLY_UPDATES; safe to run twice."""
    payload = piece.payload
    place = Place(tuple(payload["place"]))
    decisions: list[Decision] = []
    for fact in payload["facts"]:
        decisions += await store_fact_memory(parts, fact, payload["said"], piece.user_id, place)
    found_at = datetime.fromisoformat(payload["found_at"])
    for task in payload["tasks"]:
        where = "" if place.private else place.key
        await _store_task(parts, task, piece.user_id, where, found_at, payload.get("heard"))
    return decisions


async def store_fact_memory(
    parts: Consolidation, fact: dict[str, Any], said: dict[str, str], user: str, place: Place
) -> list[Decision]:
    """One fact, by the same path as every other memory; `said` are the texts of messages by their ids. One
    that was only to take another's place is let go where it has been taken away meanwhile."""
    origin = Provenance(
        user=user,
        said_at=datetime.fromisoformat(fact["said_at"]),
        place=place,
        message_id=fact["message_id"],
        said=said.get(str(fact["message_id"]), ""),
        live=True,
    )
    kept = fact.get("kept")
    if kept and not await parts.store.by_ids([kept], origin.audience, parts.clock()):
        return []
    draft = Draft(**fact["draft"] | {"subjects": tuple(fact["draft"]["subjects"])})
    return await parts.writer.remember([draft], origin)


async def _store_task(
    parts: Consolidation,
    task: dict[str, Any],
    user: str,
    place: str,
    found_at: datetime,
    heard: str | None,
) -> None:
    try:
        await parts.tasks.update(
            user,
            task["description"],
            task["status"],
            id=task["id"],
            place=place,
            now=parts.clock(),
            found_at=found_at,
            heard=heard,
        )
    except NotFound as error:
        log.warning("a task update names none: %s", error)


def _entries(exchange: ConversationSlice, found: ExtractionResult) -> list[Entry]:
    if not exchange.said:
        return []
    said_at = exchange.said[-1].sent_at
    entries = entries_of(found.updates.new_preferences, said_at)
    if found.memory_summary:
        entries.append(Entry("memory_summary", "", found.memory_summary, exchange.now))
    return entries


def _payload(exchange: ConversationSlice, found: ExtractionResult) -> dict[str, Any] | None:
    """The facts, each with the message that says it, and the tasks; None where there is neither."""
    if not exchange.said:
        return None
    facts = [_fact(exchange, fact) for fact in found.updates.new_facts]
    facts += [_ruled(*pair) for n, pair in enumerate(exchange.doubts, 1) if n in found.replacing]
    tasks = [task.model_dump() for task in found.updates.task_updates]
    if not (facts or tasks):
        return None
    cited = {fact["message_id"] for fact in facts}
    return {
        "place": list(exchange.place.path),
        "facts": facts,
        "tasks": tasks,
        "said": {message.id: message.text for message in exchange.said if message.id in cited},
        "found_at": exchange.now.isoformat(),
        "heard": exchange.said[-1].id,
    }


def _fact(exchange: ConversationSlice, fact: NewFact) -> dict[str, Any]:
    evidence = _evidence(exchange.said, fact.text)
    draft = Draft(fact.text, tuple(fact.tags), importance=IMPORTANCE[fact.importance])
    return {
        "draft": asdict(draft),
        "message_id": evidence.id,
        "said_at": evidence.sent_at.isoformat(),
    }


def _ruled(old: Memory, new: Memory) -> dict[str, Any]:
    """The newer statement once more, now as what replaces the older one."""
    ttl = describe(new.expires_at - new.created_at) if new.expires_at else None
    draft = Draft(new.content, new.subjects, ttl, new.type, new.importance, replaces=old.id)
    return {
        "draft": asdict(draft),
        "message_id": new.message_id,
        "said_at": new.created_at.isoformat(),
        "kept": new.id,
    }


def _evidence(said: Sequence[Message], fact: str) -> Message:
    """The message that shares most words with it; of equals the last."""
    wanted = _words(fact)
    return max(enumerate(said), key=lambda pair: (len(wanted & _words(pair[1].text)), pair[0]))[1]


def _words(text: str) -> frozenset[int]:
    vector = words.query(text)
    return frozenset(vector.indices) if vector is not None else frozenset()


async def _doubts(parts: Consolidation, noted: Sequence[Memory]) -> list[tuple[Memory, Memory]]:
    if parts.model is None or not parts.judging or not noted:
        return []
    return (await parts.similar.doubts_about(noted, parts.clock()))[:MOST_DOUBTS]


async def _too_much(
    parts: Consolidation, user: str, place: Place, known: UserContext, facts: Sequence[Memory]
) -> list[Memory]:
    """The facts to sum up, where they outgrow the context's budget and there is no summary yet, or many new
    ones since."""
    whole = replace(known, long_term_facts=tuple(facts), memory_summary=None)
    if len(fitting(whole, parts.context, len(facts)).long_term_facts) == len(facts):
        return []
    told = await parts.contexts.entries(user, place)
    since = max((entry.said_at for entry in told if entry.field == MEMORY_SUMMARY), default=None)
    news = [fact for fact in facts if since is None or fact.created_at > since]
    return list(facts[:FACTS_TO_SUM]) if since is None or len(news) >= NEWS else []


def _answered(lines: Sequence[Line], now: datetime) -> Sequence[Line]:
    """Without what is being answered at this moment: it is looked at together with its answer."""
    open_ = 0
    while open_ < len(lines) and lines[-1 - open_].message.role == "user":
        open_ += 1
    waiting = [line for line in lines[len(lines) - open_ :] if now - line.message.sent_at < ANSWERED_WITHIN]
    return lines[: len(lines) - open_] if waiting else lines


def _mode(given: str | None, usual: Mode) -> Mode:
    modes: dict[str | None, Mode] = {"companion": "companion", "study": "study", "work": "work"}
    return modes.get(given, usual)


def _log(
    exchange: ConversationSlice, *, ok: bool, error: str = "", updates: MemoryUpdates | None = None
) -> None:
    """One structured line a model's look back; `hachi stats` counts them."""
    line: dict[str, Any] = {"event": "memory_extraction", "user_id": exchange.user, "ok": ok}
    if error:
        line["error"] = error
    if updates:
        line |= {
            "facts": len(updates.new_facts),
            "preferences": len(updates.new_preferences),
            "tasks": len(updates.task_updates),
        }
    log.log(logging.INFO if ok else logging.WARNING, json.dumps(line, ensure_ascii=False))
