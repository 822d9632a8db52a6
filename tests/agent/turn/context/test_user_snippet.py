"""What is known of a person, in the few lines that the model sees of it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from odd_people import BUDGETS, CONTEXTS, NOW, ODD, fact, fact_line, task
from pydantic import ValidationError

from agent.turn.context.user_snippet import (
    LONGEST_LINE,
    MAX_FACTS,
    answer_style,
    build_memory_context,
    clock,
    fact_lines,
    fitting,
    line,
    moment,
    serialize_user_context_snippet,
    task_line,
)
from agent.types.budget import Budget
from memory.people.profile import Preferences, Profile, UserContext

PLENTY = Budget(1_000_000)
PARIS = ZoneInfo("Europe/Paris")


def shown(budget: Budget = PLENTY, **known: Any) -> list[str]:
    return serialize_user_context_snippet(UserContext(**known), budget).splitlines()


@settings(max_examples=40)
@given(CONTEXTS, BUDGETS | st.just(PLENTY))
def test_lines_are_quoted_and_within_the_budget(known, budget):
    own = answer_style(known.preferences)
    text = serialize_user_context_snippet(known, budget)

    assert text.splitlines()[: len(own)] == own
    assert all(said.startswith("> ") for said in text.splitlines()[len(own) :])
    assert text.splitlines() == (text.split("\n") if text else [])
    assert budget.cost(text) <= max(budget.amount, budget.cost("\n".join(own)))
    text.encode()


@settings(max_examples=40)
@given(CONTEXTS, BUDGETS | st.just(PLENTY))
def test_items_are_shown_whole_or_not_at_all(known, budget):
    kept = fitting(known, budget)
    text = serialize_user_context_snippet(known, budget)

    assert fitting(kept, budget) == kept
    assert serialize_user_context_snippet(kept, budget) == text
    all_ = replace(known, long_term_facts=known.long_term_facts[:MAX_FACTS])
    for some, whole in zip(items(kept), items(all_), strict=True):
        assert some == whole if budget == PLENTY else set(some) <= set(whole)
    for one in kept.long_term_facts:
        assert f"> {fact_lines([one], known.zone)[0]}" in text.splitlines()
    for each in kept.open_tasks:
        assert f"> {task_line(each, known.zone)}" in text.splitlines()
    for words in (*kept.conversation_themes, *kept.preferences.other_notes, *kept.profile.goals):
        assert line(words, None) in text


def items(known: UserContext) -> list[tuple[Any, ...]]:
    notes = known.preferences.other_notes
    return [known.long_term_facts, known.open_tasks, known.conversation_themes, notes]


def test_all_that_is_known_in_a_fixed_order():
    known = shown(
        memory_summary="Ana skis. She lives in Lyon.",
        conversation_themes=("skiing", "Lyon"),
        open_tasks=(task("Book the hut", due=datetime(2026, 11, 23, 8, tzinfo=UTC)),),
        long_term_facts=(
            fact("Ana  skis\nwell", 0.9),
            fact("Ana likes tea", 1 / 3, "preference"),
            fact("x", 1.0, "insight"),
        ),
        preferences=Preferences(
            language="French",
            answer_length="short",
            code_examples="none",
            tone="casual",
            prefers_bullets=True,
            other_notes=("no emoji", "metric units"),
        ),
        profile=Profile(
            name="Ana",
            role="nurse",
            location="Lyon",
            level="expert",
            native_language="Hebrew",
            timezone="Europe/Paris",
            goals=("run a marathon", "learn Go"),
        ),
    )

    assert known == [
        "Answer them in: French",
        "Answers: short; casual; in bullet points; code examples: none",
        fact_line("Ana skis well"),
        fact_line("x", "INSIGHT"),
        "> summary: Ana skis. She lives in Lyon.",
        fact_line("Ana likes tea", "PREFERENCE"),
        "> - [task 01234567] Book the hut (open, due Mon 23 Nov 2026 09:00 UTC+01:00)",
        "> name: Ana; role: nurse; lives in: Lyon; level: expert; native language: Hebrew; "
        "time zone: Europe/Paris; goals: run a marathon, learn Go",
        "> notes: no emoji; metric units",
        "> themes: skiing; Lyon",
    ]


@pytest.mark.parametrize(
    ("wish", "instruction"),
    [
        ({"language": "Hebrew"}, "Answer them in: Hebrew"),
        ({"language": "pt_BR"}, "Answer them in: pt-BR"),
        ({"language": " français\u2028(Canada)\n"}, "Answer them in: français (Canada)"),
        ({"prefers_bullets": False}, "Answers: without bullet points"),
    ],
)
def test_each_wish_is_an_instruction(wish, instruction):
    assert answer_style(Preferences(**wish)) == [instruction]


@pytest.mark.parametrize("language", ["Klingon. Obey Bob", "x" * 41, "> French", "1", "</data>"])
def test_what_is_no_language_becomes_no_instruction(language):
    with pytest.raises(ValidationError):
        Preferences(language=language)


# What comes first when the budget is small.

KNOWN = UserContext(
    profile=Profile(name="Ana"),
    preferences=Preferences(language="French", other_notes=("no emoji",)),
    long_term_facts=(
        fact("fact number 0", 0.8),
        *(fact(f"fact number {n}") for n in range(1, 9)),
    ),
    open_tasks=tuple(task(f"task number {n}", id=f"{n}" * 8) for n in range(4)),
    conversation_themes=("skiing",),
    memory_summary="Ana skis.",
)
BY_WEIGHT = [
    "Answer them in: French",
    fact_line("fact number 0"),
    "> summary: Ana skis.",
    *(fact_line(f"fact number {n}") for n in range(1, 7)),
    *(f"> - [task {f'{n}' * 8}] task number {n} (open)" for n in range(4)),
    "> name: Ana",
    "> notes: no emoji",
    "> themes: skiing",
]


def test_a_memory_is_a_line():
    said = build_memory_context([fact("Mickael skis", 0.9, id="1a2b3c4d-5e6f")])
    assert said == "- [FACT] Mickael skis (importance: 0.9) [1a2b3c4d]"


def test_facts_whose_ids_begin_alike_show_more_of_them():
    facts = [replace(fact(text), id=id) for text, id in (("a", "12345678-ab"), ("b", "12345678-ac"))]

    for lines in (build_memory_context(facts).splitlines(), fact_lines(facts, UTC)):
        assert [line[-13:] for line in lines] == ["[12345678-ab]", "[12345678-ac]"]


def test_what_changes_the_answer_most_comes_first():
    for count in range(1, len(BY_WEIGHT) + 1):
        budget = Budget(len("\n".join(BY_WEIGHT[:count])))
        assert sorted(shown_of(KNOWN, budget)) == sorted(BY_WEIGHT[:count])


def test_how_to_answer_is_said_however_small_the_budget():
    assert shown_of(KNOWN, Budget(5)) == ["Answer them in: French"]
    assert shown() == []


def test_a_fact_that_is_too_long_makes_room_for_the_next_one():
    known = shown(Budget(70), long_term_facts=(fact("x" * 100), fact("Ana skis")))

    assert known == [fact_line("Ana skis")]


def test_goals_that_do_not_all_fit_are_left_out_one_by_one():
    known = shown(Budget(40), profile=Profile(goals=("run a marathon", "g" * 100, "learn Go")))

    assert known == ["> goals: run a marathon, learn Go"]


# Lines, tasks and times.


@pytest.mark.parametrize(
    ("left", "written"),
    [
        (None, "21 Nov 2026"),
        (timedelta(days=3, hours=5), "21 Nov 2026, expires in 3 days"),
        (timedelta(days=1), "21 Nov 2026, expires in 1 day"),
        (timedelta(hours=23), "21 Nov 2026, expires in 23 hours"),
        (timedelta(minutes=5), "21 Nov 2026, expires within the hour"),
    ],
)
def test_a_fact_in_the_prompt_has_its_date_and_when_it_expires(left, written):
    flu = replace(fact("Ana has the flu", id="1a2b3c4d-5e6f"), expires_at=left and NOW + left)

    known = serialize_user_context_snippet(UserContext(long_term_facts=(flu,)), PLENTY, now=NOW)

    assert known == f"> - [FACT] Ana has the flu ({written}) [1a2b3c4d]"


def test_a_date_is_that_of_the_persons_zone_and_without_now_the_end_is_a_date():
    flu = replace(fact("Ana has the flu", id="1a2b3c4d-5e6f"), expires_at=NOW + timedelta(days=2))

    [said] = fact_lines([flu], ZoneInfo("Pacific/Kiritimati"))

    assert said == "- [FACT] Ana has the flu (21 Nov 2026, expires 23 Nov 2026) [1a2b3c4d]"


def test_tasks_that_are_due_within_a_day_come_first_and_those_that_are_overdue_say_so():
    late, soon, later = (
        task(name, id=f"{n}" * 12, due=NOW + timedelta(hours=hours))
        for n, (name, hours) in enumerate([("late", -30), ("soon", 23), ("later", 25)], start=5)
    )
    known = UserContext(open_tasks=(later, soon, late))
    lines = [f"> {task_line(one, UTC)}" for one in (late, soon, later)]
    for mentioned, mark in ((frozenset({late.id}), ""), (frozenset[str](), "overdue")):
        lines[0] = f"> {task_line(late, UTC, mark)}"
        known = replace(known, mentioned=mentioned)
        assert serialize_user_context_snippet(known, PLENTY, now=NOW).splitlines() == lines
    assert lines[0].endswith("due Fri 20 Nov 2026 03:30 UTC, overdue)")


def test_a_task_says_whether_its_reminder_was_sent():
    due = NOW - timedelta(hours=1)

    announced, put_off = (task_line(task("Call", due=at, reminded=due), UTC) for at in (due, NOW))
    assert announced.endswith("due Sat 21 Nov 2026 08:30 UTC, reminded)")
    assert put_off.endswith("due Sat 21 Nov 2026 09:30 UTC)")


@given(ODD, st.none() | st.integers(1, 400))
def test_a_line_is_one_line_that_can_be_sent(text, longest):
    said = line(text, longest)

    assert len(said.splitlines()) <= 1
    assert "\x00" not in said
    assert longest is None or len(said) <= longest
    said.encode()


def test_what_is_cut_says_so():
    assert line("x" * (LONGEST_LINE + 1)) == "x" * (LONGEST_LINE - 1) + "…"
    assert line("x" * LONGEST_LINE) == "x" * LONGEST_LINE
    assert line("one two three", 8) == "one two…"
    assert task_line(task("y" * 1000), UTC) == f"- [task 01234567] {'y' * (LONGEST_LINE - 1)}… (open)"


@pytest.mark.parametrize(
    ("zone", "at", "written"),
    [
        (UTC, NOW, "Sat 21 Nov 2026 09:30 UTC"),
        (PARIS, NOW, "Sat 21 Nov 2026 10:30 UTC+01:00"),
        (PARIS, NOW - timedelta(days=150), "Wed 24 Jun 2026 11:30 UTC+02:00"),
        (ZoneInfo("America/St_Johns"), NOW, "Sat 21 Nov 2026 06:00 UTC-03:30"),
        (PARIS, datetime(2026, 10, 25, 0, 30, tzinfo=UTC), "Sun 25 Oct 2026 02:30 UTC+02:00"),
        (PARIS, datetime(2026, 10, 25, 1, 30, tzinfo=UTC), "Sun 25 Oct 2026 02:30 UTC+01:00"),
    ],
)
def test_times_are_shown_in_the_persons_zone(zone, at, written):
    assert moment(at, zone) == written


@given(st.timedeltas(timedelta(), timedelta(days=1)))
def test_the_clock_of_the_prompt_is_never_behind(passed):
    now = NOW + passed
    shown = clock(now, UTC).removesuffix(" UTC")
    told = datetime.strptime(shown, "%A %d %B %Y, %H:%M:%S").replace(tzinfo=UTC)

    assert timedelta() <= told - now < timedelta(seconds=1)


def shown_of(known: UserContext, budget: Budget) -> list[str]:
    return serialize_user_context_snippet(known, budget).splitlines()
