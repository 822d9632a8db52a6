"""Upkeep where no model does it: the digest of a conversation, and what people state of themselves.

Both are pure, take any text in any script, and say less rather than something doubtful.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from agent.offline.due import dated
from agent.offline.grammar import READ, sentences
from agent.offline.phrases import is_own
from agent.offline.recall import shortened
from agent.offline.stating import stated
from agent.offline.weighing import Worth, worth
from agent.offline.words import clean, key_words, language_of, words
from memory.records import Message

MOST_SENTENCES = 5
FEW_SENTENCES = 2
"""Up to so many, what the companion said and what was asked are good enough."""
LONGEST_SUMMARY = 700
"""Characters of a digest."""
LONGEST_SENTENCE = 240
LONGEST_NAME = 40
MOST_READ = 200
"""Sentences of one message."""
BEST_REMARKS = 2
"""Of what no word list knows, so many of the longest new sentences come before older ones."""
MOST_UPDATES = 10


# The digest ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Sentence:
    """One that may stay."""

    name: str
    """Who said it; empty where a digest does not say."""
    text: str
    worth: Worth
    by_person: bool
    at: int
    """The higher the newer; below 0 it was in the previous digest."""

    @property
    def shown(self) -> str:
        return f"{self.name}: {self.text}" if self.name else self.text


def plain_summary(previous: str, messages: Sequence[Message]) -> str:
    """Two to five whole sentences out of the previous digest and the newest messages, "Anna: We rent.": what
    was decided first, then plans and goals, then facts; of equals the newest. The previous one unchanged
    where nothing new is worth a place; empty where nothing at all is.
    """
    before = list(_digested(previous, _companions(messages)))
    chosen = _chosen([*before, *_said(messages)])
    known = {_key(sentence) for sentence in before}
    if len(previous) <= LONGEST_SUMMARY and all(_key(sentence) in known for sentence in chosen):
        return previous
    return " ".join(sentence.shown for sentence in chosen)


def _said(messages: Sequence[Message]) -> Iterator[_Sentence]:
    """Every sentence of the messages that says something, oldest first."""
    at = 0
    for message in messages:
        text = clean(message.text)[:READ]
        by_person = message.role == "user"
        if not by_person and is_own(text):
            continue
        language = language_of(text) or "en"
        name = _name(message)
        for _, sentence in zip(range(MOST_READ), sentences(text), strict=False):
            at += 1
            told = _one_sentence(_dated(sentence, message.sent_at))
            value = worth(sentence, language) if told else Worth.NOTHING
            if value is not Worth.NOTHING:
                yield _Sentence(name, told, value, by_person, at)


_MARKS = ".!?…。！？؟۔।"
_LABEL = re.compile(rf"([^\s:{_MARKS}][^:{_MARKS}]{{0,{LONGEST_NAME - 1}}}): (?=\S)")
_NEXT = re.compile(rf"(?:(?<=[{_MARKS}])|(?<=[{_MARKS}][\"'”’»)\]])) (?={_LABEL.pattern})")


def _digested(previous: str, companions: frozenset[str]) -> Iterator[_Sentence]:
    """The sentences of a digest; in one of ours what is first is newest among its like."""
    pieces = [piece for part in sentences(clean(previous)[:READ]) for piece in _pieces(part)]
    for place, piece in enumerate(pieces[:MOST_READ]):
        label = _LABEL.match(piece)
        name, text = (label[1], piece[label.end() :]) if label else ("", piece)
        value = worth(text, language_of(text) or "en")
        value = Worth.REMARK if value is Worth.NOTHING else value  # it was found worth keeping once
        if told := _one_sentence(text):
            yield _Sentence(name, told, value, name.casefold() not in companions, -1 - place)


def _pieces(text: str) -> list[str]:
    """Cut before the name of a speaker, which "vitamin C. Bob: …" hides from the grammar."""
    starts = [0, *(found.end() for found in _NEXT.finditer(text)), len(text)]
    return [text[start:end].strip() for start, end in pairwise(starts)]


def _companions(messages: Sequence[Message]) -> frozenset[str]:
    own = {_name(message).casefold() for message in messages if message.role == "assistant"}
    return frozenset({"hachi", "assistant", *own})


def _name(message: Message) -> str:
    """A name that can be told from what was said: none that looks like the end of a sentence."""
    name = " ".join(re.sub(rf"[:{_MARKS}]", " ", clean(message.author)).split())[:LONGEST_NAME].strip()
    return name or ("Hachi" if message.role == "assistant" else "Somebody")


def _one_sentence(text: str) -> str:
    """On one line, with one end, and without a colon that could make a word of it a speaker."""
    flat = " ".join(text.split()).strip(" -–*•>#")
    flat = re.sub(rf"[{_MARKS}]+(?=[\"'”’»)\]]?\s)", "", flat)
    flat = re.sub(r":(?=\s|$)", " –", flat).replace("  ", " ").rstrip(" ,;–")
    flat = shortened(flat, LONGEST_SENTENCE)
    if not any(c.isalnum() for c in flat):
        return ""
    return flat if flat.rstrip("\"'”’»)]").endswith(tuple(_MARKS)) else f"{flat}."


def _dated(sentence: str, said_at: datetime) -> str:
    try:
        return dated(sentence, said_at)
    except OverflowError:  # on the last day of time there is no tomorrow
        return sentence


def _chosen(candidates: Sequence[_Sentence]) -> list[_Sentence]:
    """What stays, the best first; nothing twice."""
    chosen: list[_Sentence] = []
    room = LONGEST_SUMMARY
    for sentence in _ranked(candidates):
        filler = not sentence.by_person or sentence.worth is Worth.QUESTION
        full = len(chosen) >= (FEW_SENTENCES if filler else MOST_SENTENCES)
        if not full and len(sentence.shown) < room and not any(_repeats(sentence, kept) for kept in chosen):
            chosen.append(sentence)
            room -= len(sentence.shown) + 1
    return chosen


def _ranked(candidates: Sequence[_Sentence]) -> list[_Sentence]:
    """Best first. Where there are more decisions than places, the last place is for what else there is."""
    newest = {_key(sentence): sentence for sentence in sorted(candidates, key=lambda sentence: sentence.at)}
    telling = [sentence for sentence in newest.values() if sentence.worth is Worth.REMARK and sentence.at > 0]
    telling.sort(key=lambda sentence: (-len(key_words(sentence.text)), -sentence.at))
    said_best = {_key(sentence) for sentence in telling[:BEST_REMARKS]}

    def rank(sentence: _Sentence) -> tuple[int, int, int]:
        group = (
            int(sentence.worth) if sentence.by_person else Worth.QUESTION - (sentence.worth < Worth.QUESTION)
        )
        return group, _key(sentence) not in said_best, -sentence.at

    ranked = sorted(newest.values(), key=rank)
    decided = [sentence for sentence in ranked if sentence.worth is Worth.DECISION and sentence.by_person]
    other = next((s for s in ranked if s.by_person and Worth.DECISION < s.worth < Worth.QUESTION), None)
    if other and len(decided) >= MOST_SENTENCES:
        ranked.remove(other)
        ranked.insert(MOST_SENTENCES - 1, other)
    return ranked


def _key(sentence: _Sentence) -> tuple[str, str]:
    return sentence.name.casefold(), " ".join(words(sentence.text))


def _repeats(sentence: _Sentence, kept: _Sentence) -> bool:
    """Whether it says nothing that a newer or weightier one of the same person does not say."""
    keys = set(key_words(sentence.text))
    return sentence.name.casefold() == kept.name.casefold() and keys <= set(key_words(kept.text))


# What is stated --------------------------------------------------------------------------------------


def plain_updates(text: str, said_at: datetime) -> list[tuple[str, str]]:
    """What somebody states in plain words, in English, French or Hebrew: (key, value) pairs for their user
    context, such as ("language", "French"), ("prefers_bullets", "true") or ("goals", "learn Rust"). Values
    are those that the context takes, a line of at most 120 characters; `MOST_UPDATES` pairs at most."""
    return stated(text, said_at)[-MOST_UPDATES:]
