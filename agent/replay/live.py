"""A live model takes a turn again: what stands in so that nothing is stored, and whether it behaves the same.

Words may differ. Judged are the tools that it calls with the arguments that are not prose, the facts that are
kept and what they replace, and what the reply must hold.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from pydantic import ValidationError
from rapidfuzz import fuzz

from agent.tracing.differences import Difference
from agent.tracing.render.text import count, parsed_json
from agent.tracing.trace import Trace, TraceWithJobs, given_of, mappings, read_data
from agent.turn.store_memories_job import STORE_MEMORIES
from memory.audience import Audience, Place
from memory.facts.candidate import Provenance
from memory.facts.compare import content_key
from memory.facts.decide import Case
from memory.forgetting.replies import repeats
from memory.people.due_dates import read_due
from memory.people.tasks import Change, Due, Tasks
from memory.process.spans import new_id, note, span
from memory.records import Decision, Draft, Memory, Task, TaskStatus
from memory.search.recall import Recall

PROSE = frozenset({"query", "content", "description", "subjects", "importance", "limit", "ttl", "replaces"})
"""Arguments that each model words or weighs in its own way. What `ttl` and `replaces` come to is judged by
what is kept."""


class UnchangedTasks:
    """Lists the tasks of today; the tool that changes one is told that it did, and nothing is stored."""

    def __init__(self, tasks: Tasks) -> None:
        self.list = tasks.list

    async def update(
        self,
        user: str,
        description: str,
        status: TaskStatus | None = None,
        *,
        now: datetime,
        place: Place,
        id: str | None = None,
        due: Due = None,
        **_: Any,
    ) -> Change:
        known = [task for task in await self.list(user, place) if id and task.id.startswith(id)]
        old = known[0] if known else Task(id or new_id(), user, description, "open", now, now)
        until = old.due if due is None else None if due == "never" else due
        new = replace(old, description=description or old.description, status=status or old.status, due=until)
        return Change(new, "changed" if known else "made")


class FactsOfThen:
    """The recall and the writer of a turn that a live model takes again. It searches in today's memory and
    stores nothing: a fact is decided on in the recorded case whose fact is nearest to it in words."""

    def __init__(self, whole: TraceWithJobs, importance_floor: float, recall: Recall) -> None:
        self._cases = list(_cases(whole))
        self._floor, self._recall = importance_floor, recall
        known = [memory for case in self._cases for memory in (*case.near, *case.worded_so.values())]
        self._known = {memory.id: memory for memory in known}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._recall, name)

    async def memory(self, id: str, audience: Audience) -> Memory:
        """Return the fact as it was in the turn, if a decision rested on it."""
        then = [memory for one, memory in self._known.items() if one.startswith(id)]
        return then[0] if len(then) == 1 else await self._recall.memory(id, audience)

    async def related(self, draft: Draft, old: Memory, user: str) -> bool:
        """Ask nothing again: what is kept is compared."""
        return True

    async def remember(self, drafts: Sequence[Draft], origin: Provenance) -> list[Decision]:
        with span("decision"):
            decisions = [self._case(draft, origin).decide(self._floor)[0] for draft in drafts]
            note(decisions=decisions)
        return decisions

    def _case(self, draft: Draft, origin: Provenance) -> Case:
        if not self._cases:
            return Case(draft, origin, origin.said_at, {}, frozenset())
        nearest = max(self._cases, key=lambda one: fuzz.token_set_ratio(one.draft.content, draft.content))
        key = content_key(draft.content)
        same = [memory for memory in self._known.values() if content_key(memory.content) == key]
        worded_so = {owner: memory for memory in same for owner in memory.owners & origin.owners}
        return replace(nearest, draft=draft, origin=origin, worded_so=worded_so, ended=None)


def _decisions(whole: TraceWithJobs) -> Iterator[Mapping[str, Any]]:
    """Yield the data of the decisions on what the model itself kept: by a tool, or in its answer."""
    for trace in (whole.trace, *(job for job in whole.jobs if job.summary.kind == STORE_MEMORIES)):
        yield from (one.data for one in trace.spans("decision"))


def _cases(whole: TraceWithJobs) -> Iterator[Case]:
    for made in _decisions(whole):
        try:
            yield from [Case.from_trace(one) for one in made.get("cases", ())]
        except ValidationError:  # an older Hachi's
            continue


def behaves_otherwise(whole: TraceWithJobs, after: Trace, holds: Sequence[str]) -> Iterator[Difference]:
    """Yield what a turn does otherwise; `holds` is what its reply must hold beside the facts that the
    recorded reply repeats."""
    before = whole.trace
    if after.root.error and not before.root.error:
        yield Difference("the turn", f"failed: {after.root.error}", "", after.root.error)
    was, now = (_called(trace) for trace in (before, after))
    yield from _differs("the tools called", ", ".join(was), ", ".join(now))
    for name in [name for name in was if name in now]:
        yield from _differs(f"{name}, arguments", "\n".join(was[name]), "\n".join(now[name]))
    yield from _kept(whole, after)
    reply = _reply(after)
    for text in holds:
        if text.casefold() not in reply.casefold():
            yield Difference("the reply", f"does not hold “{text}”", _reply(before), reply)
    author = str(read_data(before.root, "incoming", "author") or before.summary.user)
    for fact in dict.fromkeys(_given(before)):
        if repeats(_reply(before), fact, author) and not repeats(reply, fact, author):
            yield Difference("the reply", f"does not tell “{fact}”", _reply(before), reply)


def _differs(where: str, was: str, now: str) -> Iterator[Difference]:
    if was != now:
        yield Difference(where, f"{was or 'none'} → {now or 'none'}", was, now)


def _reply(trace: Trace) -> str:
    return str(read_data(trace.root, "reply", "message") or "")


def _called(trace: Trace) -> dict[str, list[str]]:
    """Return the arguments that are not prose, each combination once, by the names of the tools."""
    found: dict[str, set[str]] = {}
    for tool in trace.spans("tool"):
        written = parsed_json(tool.data.get("arguments"))
        given = written if isinstance(written, Mapping) else {}
        told = {
            name: value for name, value in given.items() if name not in PROSE and value not in (None, "", [])
        }
        if "due" in told:
            told["due"] = _moment(str(told["due"]), trace.summary.started_at)
        found.setdefault(tool.name, set()).add(json.dumps(told, ensure_ascii=False, sort_keys=True))
    return {name: sorted(found[name]) for name in sorted(found)}


def _moment(due: str, now: datetime) -> str:
    try:
        return f"{read_due(due, now.tzinfo, now):%Y-%m-%d %H:%M}"
    except ValueError:
        return due


def _kept(whole: TraceWithJobs, after: Trace) -> Iterator[Difference]:
    """Yield whether other facts are replaced, for another time, or more or fewer are kept."""
    sides = _decisions(whole), _decisions(TraceWithJobs(after))
    was, now = ([one for made in side for one in mappings(made.get("decisions"))] for side in sides)
    was, now = ([one for one in side if one["action"] in ("add", "replace")] for side in (was, now))
    if sorted(map(_effect, was)) != sorted(map(_effect, now)):
        before, now_kept = (
            "\n".join(f"{one['content']} ({_effect(one)})" for one in side) for side in (was, now)
        )
        what = f"{count(len(was), 'fact')} → {count(len(now), 'fact')}" if len(was) != len(now) else "differs"
        yield Difference("what was kept", what, before, now_kept)


def _effect(decision: Mapping[str, Any]) -> str:
    """Return ``add until 2026-12-05``, ``replace 1f2e3d4c``."""
    until = str(decision.get("expires_at") or "")[: len("2026-12-05")]
    replaced = str(decision.get("target_id") or "")[:8] if decision["action"] == "replace" else ""
    return " ".join(filter(None, [decision["action"], replaced, until and f"until {until}"]))


def _given(trace: Trace) -> Iterator[str]:
    """Yield the texts that the model was given in the prompt and by searches."""
    for scene in trace.spans("scene"):
        for fact in mappings(read_data(scene, "context", "prompt", "known", "long_term_facts")):
            yield str(fact.get("content"))
    for search in trace.spans("search"):
        given = given_of(search)
        for one in mappings(search.data.get("candidates")):
            if one.get("id") in given and one.get("content"):
                yield str(one["content"])
