"""Which tools the stand-in calls for what was said, as pure functions of the scene and the results so far."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agent.offline.due import due
from agent.offline.facts import corrected, naming
from agent.offline.grammar import Fact, Question, Todo
from agent.offline.recall import (
    Answer,
    Asker,
    answer,
    is_about_people,
    is_first_person,
    is_general,
    keys_of,
    query,
    wider_query,
)
from agent.offline.scene import MOST_FACTS, OpenTask, Scene
from agent.offline.words import alike, clean, key_words, words

MOST_QUESTIONS = 3
RECENT = 10
LONGEST_HIT = 2_000
"""Characters of a hit that are read."""


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
    for task in scene.tasks:
        theirs = key_words(task.description)
        shared = sum(any(alike(key, word) for word in theirs) for key in keys)
        if keys and shared * 2 >= min(len(keys), len(theirs) or 1) and shared > most:
            best, most = task, shared
    return best


def task_call(scene: Scene, todo: Todo) -> Call:
    task = _open_task(scene, todo) if todo.status == "done" else None
    description = task.description if task else todo.description
    when = due(description, scene.now) if todo.status == "open" else None
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
        return
    general = is_general(text, asker)
    if not general and not keys_of(text, asker):
        return
    yield _search(query(text, asker))
    if general:
        yield Call.of("get_recent_memories", limit=RECENT)
    if not scene.named and not scene.shared and is_first_person(text):
        yield _search(naming(asker.language), limit=3)
    if _search(query(text, asker)) not in results or general or found_for(scene, question, results).sure:
        return
    yield _search(wider_query(text, _known_as(scene, results)))
    if not is_about_people(text):
        yield Call.of("search_knowledge", query=query(text, asker))


def _search(query: str, **limit: int) -> Call:
    return Call.of("search_memories", query=query, **limit)


def found_for(scene: Scene, question: Question, results: Results) -> Answer:
    """From what the tools brought, and where that does not answer, from what was said a moment ago."""
    asker, hits = _known_as(scene, results), _hits(results)
    also = _other_names(results)
    found = answer(question.text, hits, asker, scene.heard, also)
    if found.sure and found.lines and not is_general(question.text, asker):
        return found
    brought = {hit["content"] for hit in hits}
    told = [
        {"kind": "memory", "content": content, "score": 1.0, "created_at": f"{place:04}"}
        for place, content in enumerate(scene.before)
        if content not in brought
    ]
    return answer(question.text, [*hits, *told], asker, scene.heard, also)


def _other_names(results: Results) -> frozenset[str]:
    """Further names of those the question names, as words: the searches tell."""
    told = [name for result in results.values() for name in result.get("also_known_as") or []]
    return frozenset(words(" ".join(name for name in told if isinstance(name, str))))


def _hits(results: Results) -> list[dict[str, Any]]:
    """All that was found, each thing once; of a long message its beginning."""
    hits: dict[str, dict[str, Any]] = {}
    for result in results.values():
        for hit in result.get("memories") or []:
            if isinstance(hit, dict) and isinstance(hit.get("content"), str):
                content = clean(hit["content"][:LONGEST_HIT])
                hits.setdefault(content, {"kind": "memory", **hit, "content": content})
    return list(hits.values())


def _known_as(scene: Scene, results: Results) -> Asker:
    """Who asks, with the names that memories give them: "The user's name is …", and other spellings."""
    asker = scene.asker
    if scene.shared:
        return asker
    label = "|".join(map(re.escape, asker.names))
    naming_form = re.compile(rf"(?:{label})(?:'s name is| s'appelle| נקרא בשם) (.+?)\.?$", re.IGNORECASE)
    own, learned = words(asker.name or ""), dict[str, None]()
    for hit in _hits(results):
        if found := naming_form.match(hit["content"]):
            learned[found[1]] = None
        learned |= {word: None for word in re.findall(r"\w+", hit["content"][:200]) if [*words(word)] == own}
    names = tuple(dict.fromkeys([*asker.names, *learned]))
    return Asker(asker.name or next(iter(learned), None), names, asker.language)
