"""What the stand-in says once the tools have answered."""

import json
from collections.abc import Mapping
from typing import Any

from agent.offline.calls import (
    ASKS_FOR_TASKS,
    Call,
    Results,
    facts,
    questions,
    remembering,
    searching,
    task_call,
    todos,
)
from agent.offline.facts import is_bad_news
from agent.offline.grammar import READ, Courtesy, Fact, Question, Todo
from agent.offline.known import found_for
from agent.offline.person import quoted
from agent.offline.recall import Answer, Asker, is_general, keys_of, passage, spoken_to
from agent.offline.scene import MOST_FACTS, Scene
from agent.offline.words import bag, clean, key_words, language_of


def reply(scene: Scene, results: Results) -> tuple[str, list[dict[str, object]]]:
    """The message, and the memories that no tool has kept yet."""
    parts = [scene.say(kind, **_greeted(scene, kind)) for kind in _courtesies(scene)]
    parts += _acknowledged(scene, results)
    parts += [_task_reply(scene, todo, results) for todo in todos(scene)]
    parts += [_answered(scene, question, results) for question in questions(scene)]
    left = [scene.draft(fact).arguments() for fact in facts(scene)]
    left = [arguments for arguments in left if Call.of("remember", **arguments) not in results]
    if not parts:
        parts = [scene.say("as you wish")] if scene.wished else []
    if not parts:
        parts = [scene.say("unclear" if key_words(scene.heard[:READ]) else "listening")]
    return clean("\n".join(dict.fromkeys(parts))), left


def _courtesies(scene: Scene) -> list[str]:
    kinds = list(dict.fromkeys(thing.kind for thing in scene.said if isinstance(thing, Courtesy)))
    if all(isinstance(thing, Courtesy) for thing in scene.said):
        return kinds
    left_out = ("greeting", "listening", "thanks", "goodbye", "well")
    return [kind for kind in kinds if kind not in left_out[: None if scene.prompt.wishes.short else 2]]


def _greeted(scene: Scene, kind: str) -> dict[str, str]:
    name = scene.asker.name
    return {"name": f", {name}" if name else ""} if kind in ("greeting", "goodbye") else {}


def _acknowledged(scene: Scene, results: Results) -> list[str]:
    """What became of the facts: one line for those kept, one for those known, and so on."""
    asker, groups, errors = scene.asker, dict[str, list[str]](), list[str]()
    for fact in facts(scene):
        result = [results[call] for call in remembering(scene, fact, results) if call in results]
        outcome = result[-1] if result else {"action": "add"}
        content = scene.draft(fact).content
        if "error" in outcome:
            errors.append(_failed(scene, outcome))
        elif outcome.get("action") == "ignore" and not outcome.get("id"):
            groups.setdefault("dropped", []).append(str(outcome.get("reason") or content))
        elif fact.about == "name" and outcome.get("action") == "add":
            groups.setdefault("nice", []).append(asker.name or fact.value)
        else:
            kind = {"ignore": "known", "replace": "changed"}.get(str(outcome.get("action")), "kept")
            groups.setdefault(kind, []).append(_in_a_sentence(content, asker))
    order = ("nice", "kept", "changed", "known", "dropped")
    lines = [_grouped(scene, kind, groups[kind]) for kind in order if kind in groups]
    bad_news = any(is_bad_news(fact.text) for fact in facts(scene)) and {"kept", "changed"} & set(groups)
    if bad_news and not scene.prompt.wishes.short:
        lines.insert(0, scene.say("sorry"))
    if sum(isinstance(thing, Fact) for thing in scene.said) > MOST_FACTS:
        lines.append(scene.say("many", MOST_FACTS))
    between = "\n" if scene.prompt.wishes.bullets else " "
    return [between.join(lines), *errors] if lines else errors


def _grouped(scene: Scene, kind: str, contents: list[str]) -> str:
    if scene.prompt.wishes.bullets and len(contents) > 1:
        return _listed(scene, scene.say(kind, "").rstrip(" ."), contents)
    return scene.say(kind, (" ; " if scene.asker.speaks == "fr" else "; ").join(contents))


def _in_a_sentence(content: str, asker: Asker) -> str:
    """After a colon, "you broke …" begins small; a name keeps its capital."""
    if own_words := quoted(content, asker.names):
        return f"“{own_words}”"
    spoken = spoken_to(content, asker).rstrip(".")
    named = spoken.split(" ", 1)[0].endswith(",")
    return spoken if named or spoken == content.rstrip(".") else spoken[0].lower() + spoken[1:]


def _failed(scene: Scene, result: Mapping[str, Any]) -> str:
    return scene.say("failed", " ".join(str(result["error"]).split())[:200])


def _task_reply(scene: Scene, todo: Todo, results: Results) -> str:
    call = task_call(scene, todo)
    result = results.get(call, {})
    if "error" in result:
        return _failed(scene, result)
    if call not in results:
        return scene.say("failed", call.name)
    description = json.loads(call.arguments)["description"]
    return scene.say("noted" if todo.status == "open" else "finished", description.rstrip("."))


def _answered(scene: Scene, question: Question, results: Results) -> str:
    if ASKS_FOR_TASKS.match(question.text):
        brought = [task for result in results.values() for task in result.get("open_tasks") or []]
        tasks = [str(task.get("description")) for task in brought if isinstance(task, dict)]
        tasks = tasks or [task.description for task in scene.prompt.tasks]
        return _listed(scene, scene.say("tasks", "").rstrip(), tasks) or scene.say("free")
    calls = [call for call in searching(scene, question, results) if call in results]
    if not calls and not keys_of(question.text, scene.asker) and not is_general(question.text, scene.asker):
        return scene.say("cannot")
    found = found_for(scene, question, results.values())
    if found.sure and found.lines:
        return _told(scene, found, "found")
    chunks = [
        chunk for call in calls for chunk in results[call].get("chunks") or [] if isinstance(chunk, dict)
    ]
    if quote := passage(question.text, chunks, scene.asker):
        return scene.say("knowledge", source=quote[0], text=quote[1])
    if found.lines:
        return _told(scene, found, "closest")
    broken = next((results[call] for call in calls if "error" in results[call]), None)
    return _failed(scene, broken) if broken else scene.say("nothing")


def _told(scene: Scene, found: Answer, kind: str) -> str:
    lines = [_ended(line) for line in found.lines]
    opening = scene.say(kind, "").rstrip()
    if found.sure and (scene.prompt.wishes.short or (len(lines) == 1 and _is_answer(lines[0], scene.asker))):
        opening = ""
    return f"{opening} {lines[0]}".lstrip() if len(lines) == 1 else _listed(scene, opening, lines)


_SPOKEN_TO = bag("You Your Tu Ton Ta Tes אמרת Me Du")
"""First words of a line that is an answer by itself."""


def _is_answer(line: str, asker: Asker) -> bool:
    """Whether a line needs no opening: it speaks to the person, and in the language they wish."""
    understood = asker.wished is None or language_of(line) in (None, asker.wished)
    return understood and line.split(" ", 1)[0] in _SPOKEN_TO


def _ended(line: str) -> str:
    return line if line.endswith((".", "!", "?", "…", "”", "»", "“")) else f"{line}."


def _listed(scene: Scene, opening: str, lines: list[str]) -> str:
    """A line each, unless they asked for no such lists."""
    if scene.prompt.wishes.bullets is False:
        return " ".join([opening, *map(_ended, lines)]).strip() if lines else ""
    return "\n".join([opening, *(f"- {line}" for line in lines)]).strip() if lines else ""
