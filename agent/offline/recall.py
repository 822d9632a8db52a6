"""From a question to queries, and from what was found to the lines of an answer."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agent.offline.person import quoted, second_person
from agent.offline.phrases import is_own, say
from agent.offline.words import Language, alike, key_words, related, relatives, straight, words

LINES = 4
LONGEST_LINE = 240
LONGEST_QUERY = 300
FAINT = 0.3
"""Below this score a hit that shares no word with the question is not even offered as the closest."""
CLOSE_TO_BEST = 0.75

# "What do you know about me?", "what did we talk about?": no key word, but one of these.
_MEMORY_WORDS = frozenset(
    words(
        "know remember told tell talk talked talking said say discuss discussed mention about remind sais "
        "souviens rappelles rappelle parlé dit raconté connais appris sabes recuerdas weißt erinnerst יודע "
        "יודעת זוכר זוכרת דיברנו אמרתי סיפרתי עליי עלי"
    )
)
_WHO_AM_I = re.compile(r"who am i\b|qui suis-je|je suis qui|מי אני|quién soy|wer bin ich", re.I)
_FIRST_PERSON = re.compile(
    r"\b(?:i|me|my|mine|myself|i'm|i've|we|our|us|je|moi|mon|ma|mes|nous|yo|mi|mis|ich|mich|mein\w*)\b|"
    r"\b[jm]'|"
    r"\b(?:אני|לי|שלי|אותי|עליי|עלי|איתי|\w+תי|\w{2,}נו)\b",
    re.I,
)
_PEOPLE = re.compile(r"\b(?:he|she|him|his|her|they|their|il|elle|lui|son|sa)\b|\b(?:הוא|היא)\b", re.I)
_HOW_TO = re.compile(
    r"(?:how (?:do|can|should) (?:i|we|you)|how to|comment (?:faire|on|puis-je|je)|איך)\b", re.I
)


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks, and how they may be called in what is remembered."""

    name: str | None
    names: tuple[str, ...]
    language: Language
    """The one they write in."""
    wished: Language | None = None
    """The one they want to be answered in, where they said so."""

    @property
    def speaks(self) -> Language:
        return self.wished or self.language


@dataclass(frozen=True, slots=True)
class Answer:
    lines: tuple[str, ...] = ()
    sure: bool = True
    """Whether a line shares something with the question beyond its place in the search."""


def keys_of(question: str, asker: Asker) -> list[str]:
    own = set(words(" ".join(asker.names)))
    return [word for word in key_words(question) if word not in own or word in words(question[1:])]


def is_first_person(question: str) -> bool:
    return bool(_FIRST_PERSON.search(straight(question)))


def is_general(question: str, asker: Asker) -> bool:
    """Whether it asks for whatever is known rather than for something."""
    if _WHO_AM_I.search(question):
        return True
    return not keys_of(question, asker) and not _MEMORY_WORDS.isdisjoint(words(question))


def is_about_people(question: str) -> bool:
    """Whether only memory can answer it: it asks for the speaker, or for somebody just spoken of."""
    if _HOW_TO.match(question):
        return False
    return is_first_person(question) or bool(_PEOPLE.search(question))


def query(question: str, asker: Asker) -> str:
    """The question as a search: memories name the person who asks, not "me"."""
    text = " ".join(question.split())[:LONGEST_QUERY].strip("?？؟¿ ")
    if not asker.name or not is_first_person(text):
        return text
    named = re.sub(r"\bmy\b", f"{asker.name}'s", text, flags=re.I)
    named = re.sub(r"\b(?:I|me|myself)\b", asker.name, named) if asker.language == "en" else named
    return named if named != text else f"{text} {asker.name}"


def wider_query(question: str, asker: Asker) -> str:
    """The key words with words that often stand in the answer."""
    keys = keys_of(question, asker)
    more = [word for key in keys for word in relatives(key)]
    return " ".join(dict.fromkeys([*(asker.name or "").split(), *keys, *more[:12]]))[:LONGEST_QUERY]


def answer(
    question: str,
    hits: list[dict[str, Any]],
    asker: Asker,
    heard: str,
    also: frozenset[str] = frozenset(),
) -> Answer:
    """The lines that answer, best first; `heard` is the message that asks, which is no answer to itself.
    `also` are further names of whoever the question names."""
    candidates = [hit for hit in hits if _is_evidence(hit, heard)]
    if is_general(question, asker):
        return Answer(_lines(_newest_first(candidates, lambda hit: not _own(hit, asker)), asker))
    weights = {id(hit): _weight(hit, question, asker, also) for hit in candidates}
    facts = [weights[id(hit)] for hit in candidates if _rank(hit) == 0]
    best_fact, best = max(facts, default=0.0), max(weights.values(), default=0.0)
    if not best and not is_about_people(question):
        return Answer(sure=False)
    if not best:
        faint = sorted((h for h in candidates if _score(h) >= FAINT), key=_score, reverse=True)
        return Answer(_lines(faint[:2], asker)[:1], sure=False)
    relevant = [
        hit
        for hit in candidates
        if weights[id(hit)] >= CLOSE_TO_BEST * best and (_rank(hit) == 0 or weights[id(hit)] > best_fact)
    ]
    return Answer(_lines(_newest_first(relevant), asker))


def _newest_first(
    hits: list[dict[str, Any]], later: Callable[[dict[str, Any]], bool] = lambda hit: False
) -> list[dict[str, Any]]:
    """Facts before messages, the newest first and of equals the best; those to come `later` do so."""
    newest = sorted(hits, key=lambda hit: (str(hit.get("created_at", "")), _score(hit)), reverse=True)
    return sorted(newest, key=lambda hit: (_rank(hit), later(hit)))


def _rank(hit: dict[str, Any]) -> int:
    """A fact before what somebody said, and that before what a summary says of it."""
    return {"message": 1, "summary": 2}.get(str(hit.get("kind")), 0)


def _is_evidence(hit: dict[str, Any], heard: str) -> bool:
    text = str(hit.get("content", "")).strip()
    if not text or hit.get("kind") != "message":
        return bool(text)
    told_by_us = str(hit.get("author", "")).lower() in ("assistant", "hachi") or is_own(text)
    return not told_by_us and not text.endswith(("?", "？", "؟")) and text != heard.strip()


def _score(hit: dict[str, Any]) -> float:
    score = hit.get("score")
    return float(score) if isinstance(score, int | float) else 0.0


def _weight(hit: dict[str, Any], question: str, asker: Asker, also: frozenset[str]) -> float:
    """How much a hit shares with the question: a name 3, a word 2, a related word 1.5.

    Nothing if it is silent on the thing that is asked about: "my name" does not answer "my dog's name".
    """
    found = words(str(hit["content"]))
    thing = _thing_of(question)
    if thing and not any(alike(thing, word) or related(thing, word) for word in found):
        return 0.0
    names = words(" ".join(re.findall(r"(?<!^)\b[A-ZÀ-Ý][\w-]+", question)))
    if not also.isdisjoint(found):
        found = [*found, *names]
    weight = 0.0
    for key in keys_of(question, asker):
        if any(alike(key, word) for word in found):
            weight += 3 if key in names else 2
        elif any(related(key, word) for word in found):
            weight += 1.5
    own = _rank(hit) == 0 and is_first_person(question) and _own(hit, asker)
    return weight + 1 if weight and own else weight


_MY = re.compile(
    r"\b(?:my|mon|ma|mes) (?:(?:favou?rite|new|old|older|younger|little|big|best|first|last) )?([^\W\d_]+)",
    re.I,
)


def _thing_of(question: str) -> str | None:
    """The dog of "my dog's name"."""
    found = _MY.search(question)
    return words(found[1])[0] if found else None


def _own(hit: dict[str, Any], asker: Asker) -> bool:
    """Whether it is about the person who asks, and not about their sister."""
    if hit.get("kind") == "message":
        return str(hit.get("author", "")).casefold() in {name.casefold() for name in asker.names}
    text = str(hit["content"])
    return any(re.match(rf"{re.escape(name)}(?:'s name)?(?!'s)\b", text, re.I) for name in asker.names)


def _lines(hits: list[dict[str, Any]], asker: Asker) -> tuple[str, ...]:
    lines: list[str] = []
    told: set[str] = set()
    for hit in hits:
        keys = key_words(str(hit["content"]))
        known = sum(any(alike(key, word) for word in told) for key in keys)
        if _rank(hit) and keys and known * 2 >= len(keys):
            continue
        line = _line(hit, asker)
        if line not in lines:
            lines.append(line)
            told.update(keys)
        if len(lines) == LINES:
            break
    return tuple(lines)


def _line(hit: dict[str, Any], asker: Asker) -> str:
    text = shortened(str(hit["content"]))
    if hit.get("kind") == "message":
        author = str(hit.get("author") or "")
        if _own(hit, asker) or not author:
            return say(asker.speaks, "you said", text)
        return say(asker.speaks, "said", author, text)
    return spoken_to(text, asker)


def spoken_to(content: str, asker: Asker) -> str:
    """A memory, said to the person who asks where it is about them."""
    if words_of_theirs := quoted(content, asker.names):
        return say(asker.speaks, "you said", words_of_theirs)
    return second_person(content, asker.names, asker.language) or content


def shortened(text: str, most: int = LONGEST_LINE) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else text[:most].rsplit(" ", 1)[0] + " …"


def passage(question: str, chunks: list[dict[str, Any]], asker: Asker) -> tuple[str, str] | None:
    """The source and the sentences of the first chunk that shares a word with the question."""
    keys = keys_of(question, asker)
    for chunk in chunks:
        sentences = re.split(r"(?<=[.!?])\s+|\n+", str(chunk.get("text", ""))[:4_000])
        shares = [sum(any(alike(key, word) for word in words(part)) for key in keys) for part in sentences]
        if any(shares):
            start = shares.index(max(shares))
            return str(chunk.get("source", "")), shortened(" ".join(sentences[start:]), 300)
    return None
