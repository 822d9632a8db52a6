"""Write the lines of the prompt on the speaker: profile, facts, and open tasks by urgency.

Values that people gave are quoted line by line (``> ``), so that none of them can look like a section. Our
own lines are not quoted: their values have a fixed form, such as "short".
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, tzinfo
from itertools import takewhile
from types import MappingProxyType

from agent.turn.context.budget import Purse
from agent.types.budget import Budget
from memory.people.profile import Preferences, Profile, UserContext
from memory.records import Memory, Task
from memory.search.core_facts import WEIGHTY
from memory.text import one_line
from memory.text.quoting import SHORT_ID, short_ids

MAX_FACTS = 7
URGENT = timedelta(days=1)
"""Open tasks that are due within this time, or overdue, come before the others."""
LONGEST_LINE = 300
"""Characters of a name, a place or a task that are shown; a cut text ends in "…"."""


def serialize_user_context_snippet(
    context: UserContext, budget: Budget, facts: int = MAX_FACTS, *, now: datetime | None = None
) -> str:
    """Return the lines that fit, those with most effect on the answer first. Empty if nothing is known. With
    `now` facts show how soon they expire, and urgent tasks come first; without it, facts show a date."""
    return "\n".join(snippet_lines(fitting(context, budget, facts, now=now), now))


def snippet_lines(shown: UserContext, now: datetime | None = None) -> list[str]:
    """Return the lines of the whole context, without a budget."""
    weighty, others = _facts_by_weight(shown.long_term_facts, shown.zone, now)
    tasks = _by_urgency(shown.open_tasks, now)
    return [
        *answer_style(shown.preferences),
        *_quoted(text for _, text in weighty),
        *_quoted(f"summary: {line(text, None)}" for text in (shown.memory_summary or "").splitlines()),
        *_quoted(text for _, text in others),
        *_quoted(_task_line(task, shown, now) for task in tasks),
        *_quoted(filter(None, ["; ".join(text for _, text in _profile_items(shown.profile))])),
        *_quoted(_notes("notes", shown.preferences.other_notes)),
        *_quoted(_notes("themes", shown.conversation_themes)),
    ]


def build_memory_context(memories: Iterable[Memory]) -> str:
    """Return one line per memory, with its short id: ``- [FACT] Ana skis (importance: 0.9) [1a2b3c4d]``."""
    shown = list(memories)
    ids = short_ids([memory.id for memory in shown])
    noted = [(memory, f"importance: {round(memory.importance, 2):g}") for memory in shown]
    return "\n".join(_fact_line(memory, ids[memory.id], said) for memory, said in noted)


def fact_lines(
    facts: Iterable[Memory],
    zone: tzinfo,
    now: datetime | None = None,
    notes: Mapping[str, str] = MappingProxyType({}),
) -> list[str]:
    """Return one line per fact, with when it was said and when it expires: ``- [FACT] Ana has the flu (8 Sep
    2026, expires in 3 days) [1a2b3c4d]``. `notes` has texts to put before the date, by the fact's id."""
    shown = list(facts)
    ids = short_ids([fact.id for fact in shown])
    noted = {id: f"{line(note)}, " for id, note in notes.items()}
    return [_fact_line(f, ids[f.id], noted.get(f.id, "") + _times(f, zone, now)) for f in shown]


def _fact_line(memory: Memory, id: str, noted: str) -> str:
    return f"- [{memory.type.upper()}] {line(memory.content, None)} ({noted}) [{line(id)}]"


def _times(fact: Memory, zone: tzinfo, now: datetime | None) -> str:
    said = date(fact.created_at, zone)
    if fact.expires_at is None:
        return said
    if now is None:
        return f"{said}, expires {date(fact.expires_at, zone)}"
    left = fact.expires_at - now
    if left < timedelta(hours=1):
        return f"{said}, expires within the hour"
    count, unit = (left.days, "day") if left >= timedelta(days=1) else (left // timedelta(hours=1), "hour")
    return f"{said}, expires in {count} {unit}{'s' * (count != 1)}"


def date(at: datetime, zone: tzinfo) -> str:
    """Return ``8 Sep 2026``, in the person's zone."""
    local = at.astimezone(zone)
    return f"{local.day} {local:%b %Y}"


def fitting(
    context: UserContext, budget: Budget, most_facts: int = MAX_FACTS, *, now: datetime | None = None
) -> UserContext:
    """Return the part of the context that fits, in whole items and in the order of the lines: a fact that is
    too long is skipped. The first facts are preferred. Those that fit are sorted newest first, since their
    lines show only the day."""
    purse = Purse(budget)
    for text in answer_style(context.preferences):
        purse.spend(text)  # always shown: its fixed form keeps it short
    zoned = _fitting_profile(
        Profile.model_construct(timezone=context.profile.timezone), purse
    )  # all times depend on it
    # These ids are at least as long as those of the facts that fit, so no line gets longer.
    preferred = list(context.long_term_facts[:most_facts])
    lines = [f"> {text}" for text in fact_lines(preferred, context.zone, now)]
    weighty = [n for n, fact in enumerate(preferred) if fact.importance >= WEIGHTY]
    kept = [n for n in weighty if purse.take(lines[n])]
    summary = _fitting_summary(context.memory_summary or "", purse)
    kept += [n for n, text in enumerate(lines) if n not in weighty and purse.take(text)]
    facts = [preferred[n] for n in sorted(kept)]
    tasks = _by_urgency(context.open_tasks, now)
    tasks = [task for task in tasks if purse.take(f"> {_task_line(task, context, now)}")]
    profile = _fitting_profile(context.profile.model_copy(update={"timezone": None}), purse)
    profile = profile.model_copy(update={"timezone": zoned.timezone})
    notes = _fitting_notes("notes", context.preferences.other_notes, purse)
    return replace(
        context,
        profile=profile,
        preferences=context.preferences.model_copy(update={"other_notes": notes}),
        long_term_facts=tuple(sorted(facts, key=lambda fact: fact.created_at, reverse=True)),
        open_tasks=tuple(tasks),
        memory_summary=summary,
        conversation_themes=_fitting_notes("themes", context.conversation_themes, purse),
    )


def _facts_by_weight(
    facts: Sequence[Memory], zone: tzinfo, now: datetime | None
) -> tuple[list[tuple[Memory, str]], list[tuple[Memory, str]]]:
    """Return the facts that every prompt shows, and the others, each with its line."""
    shown = list(zip(facts, fact_lines(facts, zone, now), strict=True))
    weighty = [one for one in shown if one[0].importance >= WEIGHTY]
    return weighty, [one for one in shown if one[0].importance < WEIGHTY]


def _by_urgency(tasks: Sequence[Task], now: datetime | None) -> list[Task]:
    """Return the tasks, first the urgent ones in the order in which they are due."""
    due = {t.id: t.due for t in tasks if now and t.due and t.due <= now + URGENT and t.status != "done"}
    urgent = sorted((task for task in tasks if task.id in due), key=lambda task: due[task.id])
    return urgent + [task for task in tasks if task.id not in due]


def _task_line(task: Task, context: UserContext, now: datetime | None) -> str:
    """Return the line of a task; one that is overdue is marked, unless a reply of today has mentioned it."""
    overdue = now is not None and task.due is not None and task.due <= now and task.status != "done"
    return task_line(task, context.zone, "overdue" if overdue and task.id not in context.mentioned else "")


def answer_style(preferences: Preferences) -> list[str]:
    """Return the person's answer preferences as lines that begin with "Answer"."""
    wishes = [
        preferences.answer_length,
        preferences.tone,
        {None: None, True: "in bullet points", False: "without bullet points"}[preferences.prefers_bullets],
        f"code examples: {preferences.code_examples}" if preferences.code_examples else None,
    ]
    said = [wish for wish in wishes if wish]
    lines = [f"Answer them in: {preferences.language}"] if preferences.language else []
    return lines + ([f"Answers: {'; '.join(said)}"] if said else [])


def task_line(task: Task, zone: tzinfo, mark: str = "") -> str:
    """Return the task with its due time, whether its reminder has been sent, and a `mark`."""
    due = f", due {moment(task.due, zone)}" if task.due else ""
    due += ", reminded" if task.due and task.reminded == task.due else ""
    due += f", {mark}" if mark else ""
    return f"- [task {line(task.id[:SHORT_ID])}] {line(task.description)} ({task.status}{due})"


def moment(at: datetime, zone: tzinfo) -> str:
    """Return ``Mon 23 Nov 2026 09:00 UTC+01:00``, in the person's zone."""
    local = at.astimezone(zone)
    return f"{local:%a %d %b %Y %H:%M} {_offset(local)}"


def clock(now: datetime, zone: tzinfo) -> str:
    """Return ``Monday 23 November 2026, 09:00:00 (Europe/Paris, UTC+01:00)``. Seconds are rounded up, so that
    what a model counts from it ("in two minutes") is never too early."""
    local = (now + timedelta(microseconds=999_999)).astimezone(zone)
    where = "UTC" if str(zone) == "UTC" else f"({zone}, {_offset(local)})"
    return f"{local:%A %d %B %Y, %H:%M:%S} {where}"


def _offset(local: datetime) -> str:
    written = f"{local:%z}"
    return "UTC" if written == "+0000" else f"UTC{written[:3]}:{written[3:5]}"


def line(text: str, longest: int | None = LONGEST_LINE) -> str:
    """Return the text on one line, so that it cannot begin a section, cut to `longest` characters."""
    shown = one_line(text)
    return shown if longest is None or len(shown) <= longest else f"{shown[: longest - 1].rstrip()}…"


_LABELS = {
    "name": "name",
    "role": "role",
    "location": "lives in",
    "level": "level",
    "native_language": "native language",
    "timezone": "time zone",
    "goals": "goals",
}


def _profile_items(profile: Profile) -> list[tuple[str, str]]:
    """Return (field, text) of each known value, in a fixed order."""
    found = []
    for name, label in _LABELS.items():
        value = getattr(profile, name)
        text = ", ".join(value) if isinstance(value, tuple) else value
        if text:
            found.append((name, f"{label}: {line(text, None)}"))
    return found


def _fitting_profile(profile: Profile, purse: Purse) -> Profile:
    single = _profile_items(profile.model_copy(update={"goals": ()}))
    kept = {name: getattr(profile, name) for name, text in single if purse.take(f"> {text}")}
    return Profile.model_construct(**kept, goals=_fitting_notes("goals", profile.goals, purse))


def _fitting_summary(summary: str, purse: Purse) -> str | None:
    told = filter(None, (line(text, None) for text in summary.splitlines()))
    kept = takewhile(lambda text: purse.take(f"> summary: {text}"), told)
    return "\n".join(kept) or None


def _fitting_notes(label: str, notes: Sequence[str], purse: Purse) -> tuple[str, ...]:
    kept: list[str] = []
    for note in notes:
        text = line(note, None)
        if purse.take(f" {text}" if kept else f"> {label}: {text}"):
            kept.append(note)
    return tuple(kept)


def _notes(label: str, notes: Sequence[str]) -> list[str]:
    return [f"{label}: {'; '.join(line(note, None) for note in notes)}"] if notes else []


def _quoted(lines: Iterable[str]) -> list[str]:
    return [f"> {text}" for text in lines]
