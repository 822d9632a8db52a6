"""Read the conversations for the benchmark of recall; all sets have the same format.

A file is a conversation, {"messages": […], "questions": […]}, in one of two forms: messages with "author" and
"sent_at", or a talk with an assistant, whose messages have "role" and "day". A question has its "evidence",
the ids of messages, and its class as "kind" or "category"; "again" is a second search, as a model would word
it after the first result. A file that is a list of {"cue", "later"} has no conversation of its own. Each cue,
a message with its reply, is inserted into another conversation; the later message is the question.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count, pairwise
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

CATEGORIES = {1: "several messages", 2: "time", 3: "inference", 4: "one message", 5: "adversarial"}
"""LoCoMo's numbers for the classes of questions."""
UNANSWERED = {"abstention"}
"""Classes whose questions have no answer. Questions of other classes without evidence are skipped, because
their evidence was not recorded."""
FAR_FROM_MEMORY = (
    "What is the capital of Peru?",
    "How many bones does a human have?",
    "Who painted the Mona Lisa?",
    "What is the boiling point of nitrogen?",
    "Translate 'good morning' into Swahili.",
    "Which planet has the most moons?",
    "How does photosynthesis work?",
    "When did the Roman Empire fall?",
    "Quelle est la capitale du Pérou ?",
    "Wie hoch ist der Kilimandscharo?",
)
"""Questions that no conversation answers."""


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    kind: str
    evidence: frozenset[str] = frozenset()
    """Ids of the messages that answer it; empty if none does."""
    again: str = ""
    """A second search in the words of the evidence, as a model would write it."""


@dataclass(frozen=True, slots=True)
class Talk:
    name: str
    """The user's name, who reads nothing else."""
    messages: Sequence[Mapping[str, Any]]
    questions: Sequence[Question]


def read_sets(paths: Sequence[Path], into: Sequence[Path], part: str) -> dict[str, list[Talk]]:
    """Return the conversations of each set. A set is named after its folder or its file of cues."""
    sets: dict[str, list[Talk]] = {}
    for path in _files(paths):
        written = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(written, list):
            half = len(written) // 2
            cues = {"first": written[:half], "second": written[half:], "all": written}[part]
            hosts = [json.loads(host.read_text(encoding="utf-8")) for host in _files(into)]
            sets[path.stem] = list(_with_cues(path.stem, cues, hosts))
        else:
            name = f"{path.parent.name}-{path.stem}"
            questions = [q for given in written["questions"] if (q := _question(given, name))]
            questions += [Question(text, "far from memory") for text in FAR_FROM_MEMORY]
            talk = Talk(name, list(_messages(written["messages"], name)), questions)
            sets.setdefault(path.parent.name, []).append(talk)
    return sets


def sent_at(text: str) -> datetime:
    """Parse ISO 8601, or the formats of LoCoMo and BEAM: ``1:56 pm on 8 May, 2023``, ``March-15-2024``."""
    for form in ("%I:%M %p on %d %B, %Y", "%B-%d-%Y"):
        try:
            return datetime.strptime(f"{text} +0000", f"{form} %z")
        except ValueError:
            continue
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _files(paths: Sequence[Path]) -> list[Path]:
    return [file for path in paths for file in (sorted(path.glob("*.json")) if path.is_dir() else [path])]


def _messages(given: Sequence[Mapping[str, Any]], talk: str) -> Iterator[dict[str, Any]]:
    """Yield messages to import. Those of one day or session are a minute apart."""
    day, minutes = "", count()
    for message in given:
        written = message.get("sent_at") or message["day"]
        if written != day:
            day, minutes = written, count(0 if "sent_at" in message else 9 * 60)
        role = message.get("role", "user")
        yield {
            "id": _id(talk, message["id"]),
            "role": role,
            "author": message.get("author") or {"user": "Sam", "assistant": "hachi"}[role],
            "text": message["text"],
            "sent_at": sent_at(written) + timedelta(minutes=next(minutes)),
        }


def _question(given: Mapping[str, Any], talk: str) -> Question | None:
    kind = given.get("kind") or CATEGORIES.get(given.get("category", 0), "other")
    evidence = frozenset(_id(talk, id) for id in given["evidence"])
    asked = Question(given["question"], kind, evidence, given.get("again", ""))
    return asked if evidence or kind in UNANSWERED else None


def _with_cues(
    name: str, cues: Sequence[Mapping[str, str]], hosts: Sequence[Mapping[str, Any]]
) -> Iterator[Talk]:
    """Yield the host conversations with the cues, spread evenly over them and over the sessions of each."""
    for at, host in enumerate(hosts):
        mine = cues[at :: len(hosts)]
        talk, messages = f"{name}-{at}", list(_messages(host["messages"], f"{name}-{at}"))
        authors = list(dict.fromkeys(message["author"] for message in messages))
        every = len(messages) / (len(mine) + 1)
        questions = []
        for number, cue in reversed([*enumerate(mine)]):
            place = round(every * (number + 1))
            spoken = [_line(line) for line in re.split(r"\\n|\n", cue["cue"])]
            exchange = [
                {
                    "id": _id(talk, f"cue {number} {n}"),
                    "role": "user",
                    "author": authors["AB".index(who)],
                    "text": text,
                    "sent_at": messages[place - 1]["sent_at"] + timedelta(seconds=10 * (n + 1)),
                }
                for n, (who, text) in enumerate(spoken)
            ]
            messages[place:place] = exchange
            evidence = frozenset({exchange[0]["id"]})
            questions.append(Question(_line(cue["later"])[1], cue.get("relation", "cue"), evidence))
        yield Talk(talk, messages, questions)


def _line(written: str) -> tuple[str, str]:
    who, _, text = written.strip().partition(":")
    return who.strip(), text.strip()


def _id(talk: str, id: object) -> str:
    return str(uuid5(NAMESPACE_URL, f"{talk} {id}"))


def neighbours(messages: Sequence[Mapping[str, Any]]) -> set[frozenset[str]]:
    """Return the pairs of people's messages that follow each other."""
    ids = [message["id"] for message in messages if message["role"] == "user"]
    return {frozenset(pair) for pair in pairwise(ids)}
