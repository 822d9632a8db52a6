"""What the stand-in knows once tools have answered: what they brought, and what the prompt tells already."""

import re
from collections.abc import Collection
from dataclasses import replace
from typing import Any

from agent.offline.grammar import Question, sentences
from agent.offline.phrases import told_of_profile
from agent.offline.recall import Answer, Asker, answer, is_general
from agent.offline.scene import Scene
from agent.offline.words import clean, words

LONGEST_HIT = 2_000
"""Characters of a hit that are read."""

Found = Collection[dict[str, Any]]
"""The answers of tools."""


def found_for(scene: Scene, question: Question, results: Found) -> Answer:
    """From what the tools brought and the prompt tells, and where that does not answer, from what was said a
    moment ago, and then from the profile."""
    asker, general = known_as(scene, results), is_general(question.text, scene.asker)
    hits, also = _hits(scene, results, general=general), _other_names(results)
    found = answer(question.text, hits, asker, scene.heard, also)
    if found.sure and found.lines and not general:
        return found
    brought = {hit["content"] for hit in hits}
    told = [
        {"kind": "memory", "content": content, "score": 1.0, "created_at": f"{place:04}"}
        for place, content in enumerate(scene.before)
        if content not in brought
    ]
    found = answer(question.text, [*hits, *told], asker, scene.heard, also)
    if found.sure and found.lines:
        return found
    profile = [
        {"kind": "memory", "content": told_of_profile(asker.speaks, label, value), "score": 0.0}
        for label, value in scene.prompt.profile
    ]
    other = answer(question.text, profile, asker, scene.heard)
    return other if other.sure and other.lines else found


def _other_names(results: Found) -> frozenset[str]:
    """Further names of those the question names, as words: the searches tell."""
    told = [name for result in results for name in result.get("also_known_as") or []]
    return frozenset(words(" ".join(name for name in told if isinstance(name, str))))


def _hits(scene: Scene, results: Found, *, general: bool = False) -> list[dict[str, Any]]:
    """All that was found and all that the prompt tells, each thing once; of a long message its beginning.

    When a fact of the prompt was learned is not told. It bears on the question, so it comes first; where
    everything is asked for, the newest facts do, and it is none of them unless it is recent."""
    hits: dict[str, dict[str, Any]] = {}
    digests = [scene.prompt.digest]
    for result in results:
        for hit in result.get("memories") or []:
            if isinstance(hit, dict) and isinstance(hit.get("content"), str):
                content = clean(hit["content"][:LONGEST_HIT])
                if hit.get("kind") == "summary":
                    digests.append(tuple(sentences(content)))
                else:
                    hits.setdefault(_plain(content), {"kind": "memory", **hit, "content": content})
    for place, content in enumerate(scene.prompt.facts):
        at = "" if general else "9999"
        known = {"kind": "memory", "content": content, "score": 1 - place / 100, "created_at": at}
        hits.setdefault(_plain(content), known)
    for sentence in dict.fromkeys(sentence for digest in digests for sentence in digest):
        hits.setdefault(_plain(sentence), _told(sentence))
    return list(hits.values())


def _plain(content: str) -> str:
    return " ".join(content.split()).rstrip(".")


def _told(sentence: str) -> dict[str, Any]:
    """A sentence of a summary; "Anna: We rent." is what Anna said."""
    said = re.match(r"([^\W\d_][^:\n]{0,79}): (?=\S)", sentence)
    if said is None:
        return {"kind": "summary", "content": sentence, "score": 0.0}
    return {"kind": "message", "content": sentence[said.end() :], "author": said[1], "score": 0.0}


def known_as(scene: Scene, results: Found) -> Asker:
    """Who asks, with the names that memories give them: "The user's name is …", and other spellings."""
    asker = scene.asker
    if scene.shared:
        return asker
    label = "|".join(map(re.escape, asker.names))
    naming_form = re.compile(rf"(?:{label})(?:'s name is| s'appelle| נקרא בשם) (.+?)\.?$", re.IGNORECASE)
    own, learned = words(asker.name or ""), dict[str, None]()
    for hit in _hits(scene, results):
        if found := naming_form.match(hit["content"]):
            learned[found[1]] = None
        learned |= {word: None for word in re.findall(r"\w+", hit["content"][:200]) if [*words(word)] == own}
    names = tuple(dict.fromkeys([*asker.names, *learned]))
    return replace(asker, name=asker.name or next(iter(learned), None), names=names)
