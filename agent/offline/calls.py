"""Which tools the stand-in calls for what was said, as pure functions of the scene and the results so far."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agent.offline.due import due
from agent.offline.facts import corrected, naming
from agent.offline.grammar import Fact, Question, Todo
from agent.offline.known import found_for, known_as
from agent.offline.prompt import OpenTask
from agent.offline.recall import (
    is_about_people,
    is_first_person,
    is_general,
    keys_of,
    query,
    wider_query,
)
from agent.offline.scene import MOST_FACTS, Scene
from agent.offline.words import alike, key_words

MOST_QUESTIONS = 3
RECENT = 10


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call; equal when the tool and the arguments are."""

    name: str
    arguments: str
    """As JSON with sorted keys."""

    @classmethod
    def of(cls, name: str, **arguments: Any) -> "Call":
        return cls(name, json.dumps(arguments, ensure_ascii=False, sort_keys=True))


Results = Mapping[Call, dict[str, Any]]


def wanted(scene: Scene, results: Results) -> Iterator[Call]:
    """Every call this scene needs, as far as the results so far tell; those already made among them."""
    for fact in facts(scene):
        yield from remembering(scene, fact, results)
    for todo in todos(scene):
        yield task_call(scene, todo)
    for question in questions(scene):
        yield from searching(scene, question, results)


def facts(scene: Scene) -> list[Fact]:
    facts = []
    for thing in scene.said:
        if isinstance(thing, Todo) and thing.otherwise and not _open_task(scene, thing):
            thing = thing.otherwise
        if isinstance(thing, Fact):
            facts.append(thing)
    return facts[:MOST_FACTS]


def todos(scene: Scene) -> list[Todo]:
    todos = [thing for thing in scene.said if isinstance(thing, Todo)]
    return [todo for todo in todos if not todo.otherwise or _open_task(scene, todo)][:MOST_FACTS]


def questions(scene: Scene) -> list[Question]:
    return [thing for thing in scene.said if isinstance(thing, Question)][:MOST_QUESTIONS]


def remembering(scene: Scene, fact: Fact, results: Results) -> Iterator[Call]:
    arguments = scene.draft(fact).arguments()
    first = Call.of("remember", **arguments)
    yield first
    result = results.get(first, {})
    close = [entry for entry in result.get("close") or [] if isinstance(entry, dict)]
    if fact.correction and result.get("action") == "add" and close:
        old = corrected(str(arguments["content"]), close)
        if old:
            yield Call.of("remember", **arguments, replaces=old)


def _open_task(scene: Scene, todo: Todo) -> OpenTask | None:
    """The open task that a description means: the one that shares most of its key words, half at least."""
    keys = key_words(todo.description)
    best, most = None, 0.0
    for task in scene.prompt.tasks:
        theirs = key_words(task.description)
        shared = sum(any(alike(key, word) for word in theirs) for key in keys)
        if keys and shared * 2 >= min(len(keys), len(theirs) or 1) and shared > most:
            best, most = task, shared
    return best


def task_call(scene: Scene, todo: Todo) -> Call:
    task = _open_task(scene, todo) if todo.status == "done" else None
    description = task.description if task else todo.description
    when = due(description, scene.prompt.now) if todo.status == "open" else None
    more = {"due": when.isoformat()} if when else {}
    return Call.of(
        "update_task", id=task.id if task else None, description=description, status=todo.status, **more
    )


ASKS_FOR_TASKS = re.compile(
    r".*\b(?:my (?:tasks?|to-?dos?|list)|to-?do list|have to do|need to do|open tasks|mes tâches|ma liste|"
    r"dois faire|"
    r"à faire)\b|.*(?:המשימות|הרשימה) שלי|.*מה אני צריכה? לעשות",
    re.IGNORECASE | re.DOTALL,
)


def searching(scene: Scene, question: Question, results: Results) -> Iterator[Call]:
    asker, text = scene.asker, question.text
    if ASKS_FOR_TASKS.match(text):
        if scene.prompt.more_tasks:
            yield Call.of("get_recent_memories", limit=1)
        return
    general = is_general(text, asker)
    if not general and not keys_of(text, asker):
        return
    yield _search(query(text, asker))
    if general:
        yield Call.of("get_recent_memories", limit=RECENT)
    if not scene.named and not scene.shared and is_first_person(text):
        yield _search(naming(asker.language), limit=3)
    if (
        _search(query(text, asker)) not in results
        or general
        or found_for(scene, question, results.values()).sure
    ):
        return
    yield _search(wider_query(text, known_as(scene, results.values())))
    if not is_about_people(text):
        yield Call.of("search_knowledge", query=query(text, asker))


def _search(query: str, **limit: int) -> Call:
    return Call.of("search_memories", query=query, **limit)
