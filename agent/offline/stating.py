"""What a person states of themselves for the companion: "answer me in French", "my name is Anna", "I live in
Lyon".

Read cautiously: a clause must say it and nothing else. What somebody else said, what is not so ("if …"),
questions, quotations and pasted text state nothing, and a wish beside a request about a text ("write me a
poem, keep it short") is for that text alone, unless it is said to hold "from now on".
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from agent.offline import stating_en as en
from agent.offline import stating_fr as fr
from agent.offline import stating_he as he
from agent.offline.grammar import LONGEST, READ, Question, clauses, read, sentences
from agent.offline.stating_values import LISTED, read_value
from agent.offline.tongues import TONGUES, VERBATIM
from agent.offline.words import clean, language_of, straight

MOST_SENTENCES = 60
MOST_PARTS = 6
"""Of one clause, between its commas and its "and"."""
WISHES = frozenset({"language", "answer_length", "tone", "prefers_bullets", "code_examples"})
"""Keys that say how to answer; the others say who somebody is."""


@dataclass(frozen=True, slots=True)
class _Stated:
    key: str
    values: tuple[str, ...]
    standing: bool
    """Whether it is said to hold from now on."""
    to_me: bool
    """Whether it says to whom: "answer me in French" beside a question is not about that question alone."""

    def stays(self, *, about_a_text: bool, asked: bool) -> bool:
        """Beside a request about a text, or a question, a wish is for that one alone."""
        if self.key not in WISHES or self.standing:
            return True
        return not about_a_text and (not asked or (self.key == "language" and self.to_me))


def _any(*patterns: str) -> str:
    return "|".join(patterns)


_ROWS = [
    (key, value, re.compile(pattern, re.I)) for key, value, pattern in (*en.ENGLISH, *fr.FRENCH, *he.HEBREW)
]
_STANDING = _any(en.STANDING, fr.STANDING, he.STANDING)
_POLITE = _any(en.POLITE, fr.POLITE, he.POLITE)
_LEAD = re.compile(
    rf"(?:(?P<standing>{_STANDING})|(?P<polite>{_POLITE})|{_any(en.LEAD, fr.LEAD, he.LEAD)})"
    r"(?:[\s,!:.…–-]+|$)",
    re.I,
)
_TAIL = re.compile(rf"(?:[\s,]+|^)(?:(?P<standing>{_STANDING})|{_any(en.TAIL, fr.TAIL, he.TAIL)})$", re.I)
_REPORTED = re.compile(rf"(?<!\w)(?:{_any(en.REPORTED, fr.REPORTED, he.REPORTED)})(?!\w)", re.I)
_ABOUT_A_TEXT = re.compile(
    rf"(?<!\w)(?:{_any(en.ABOUT_A_TEXT, fr.ABOUT_A_TEXT, he.ABOUT_A_TEXT)})(?!\w)", re.I
)
_PASTE = re.compile(rf"(?:{_any(en.PASTE, fr.PASTE, he.PASTE)})(?!\w)", re.I)
_OF_ONESELF = re.compile(r"(?:i|i'm|my|je|mon|ma|mes)\b|j'|אני\b", re.I)
_TO_ME = re.compile(r"\b(?:me|moi)\b|\bm'|(?<!\w)(?:לי|איתי|אליי|אלי)(?!\w)", re.I)
_QUOTED = re.compile(
    r"(?s:```.*?(?:```|\Z))|“[^”]{0,2000}”|«[^»]{0,2000}»|„[^“”]{0,2000}[“”]|"
    r'(?<!\w)"[^"]{0,2000}"(?!\w)|^[ \t]*>.*$',
    re.MULTILINE,
)
_BETWEEN = re.compile(
    r"\s*[,;]\s*(?:(?:and|but|so|et|mais|donc|אבל)\s+)?|\s+(?:and|but|so|et|mais|donc|אבל)\s+|\s+ו(?=[א-ת])",
    re.I,
)
_ENDS = " .!…。,;:?？؟"


def stated(text: str, said_at: datetime) -> list[tuple[str, str]]:
    """(key, value) pairs in the order they were said; of a key that holds one value, the last."""
    found: list[_Stated] = []
    about_a_text = asked = False
    for sentence in _own_sentences(text):
        told = list(_in_sentence(sentence, text, said_at))
        found += told
        about_a_text = about_a_text or (not told and bool(_ABOUT_A_TEXT.search(sentence)))
        asked = asked or (not told and _is_question(sentence))
        if sentence.endswith((":", "：")) or _PASTE.match(_without_leads(sentence)):
            break
    kept = [one for one in found if one.stays(about_a_text=about_a_text, asked=asked)]
    pairs = [(one.key, value) for one in kept for value in one.values]
    last = {key: place for place, (key, _) in enumerate(pairs)}
    return [
        pair for place, pair in enumerate(pairs) if (pair[0] in LISTED and pair not in pairs[:place])
        or (pair[0] not in LISTED and last[pair[0]] == place)
    ]  # fmt: skip


def _own_sentences(text: str) -> Iterator[str]:
    own = _QUOTED.sub(" ◌ ", straight(clean(text)[:READ]))
    for _, sentence in zip(range(MOST_SENTENCES), sentences(own), strict=False):
        yield " ".join(sentence.lstrip("-*• ").split())


def _is_question(sentence: str) -> bool:
    """A real one, and not "how are you?"."""
    return any(isinstance(thing, Question) for thing in read(sentence, language_of(sentence) or "en"))


def _in_sentence(sentence: str, text: str, said_at: datetime) -> Iterator[_Stated]:
    if len(sentence) > LONGEST or _REPORTED.search(sentence) or _PASTE.match(_without_leads(sentence)):
        return
    question = sentence.endswith(("?", "？", "؟"))
    tongue = TONGUES.get(language_of(sentence) or "en", VERBATIM)
    at_start, of_oneself = True, False
    for clause, _ in clauses(sentence, tongue):
        for part, told in _in_clause(clause, text, said_at, question):
            if told is None:
                at_start = at_start and not _without_leads(part).strip(_ENDS)
                of_oneself = of_oneself or bool(_OF_ONESELF.match(_without_leads(part)))
            elif told.key not in WISHES or at_start or (told.key == "language" and of_oneself):
                yield told


def _in_clause(
    clause: str, text: str, said_at: datetime, question: bool
) -> Iterator[tuple[str, _Stated | None]]:
    """Its parts one after the other, each with what it states; what belongs together is one part."""
    cuts = [(0, 0), *(found.span() for found in _BETWEEN.finditer(clause))][:MOST_PARTS]
    starts, ends = [end for _, end in cuts], [*(start for start, _ in cuts[1:]), len(clause)]

    def told(first: int, last: int) -> _Stated | None:
        return _match(clause[starts[first] : ends[last]], text, said_at, question)

    first = 0
    while first < len(starts):
        own = next((last for last in range(first, len(starts)) if told(first, last)), None)
        if own is None:
            yield clause[starts[first] : ends[first]], None
            first += 1
            continue
        last = own
        while last + 1 < len(starts) and told(first, last + 1) and not told(last + 1, last + 1):
            last += 1
        yield clause[starts[first] : ends[last]], told(first, last)
        first = last + 1


def _match(clause: str, text: str, said_at: datetime, question: bool) -> _Stated | None:
    for core, polite, standing in _bared(clause):
        for key, value, rule in _ROWS:
            found = rule.fullmatch(core)
            if found is None or (question and not (key in WISHES and polite)):
                continue
            to_me = bool(_TO_ME.search(core))
            if question and key == "language" and not (standing or to_me):
                continue
            values = (value,) if value else read_value(key, found, text, said_at)
            if values:
                return _Stated(key, values, standing, to_me)
    return None


def _bared(clause: str) -> Iterator[tuple[str, bool, bool]]:
    """The clause with ever less around it, whether that asked politely, and whether for good."""
    polite = standing = False
    core = clause.strip(_ENDS)
    while True:
        ended, lasting = core, standing
        yield ended, polite, lasting
        while tail := _TAIL.search(ended):
            lasting = lasting or bool(tail["standing"])
            ended = ended[: tail.start()].rstrip(_ENDS)
            yield ended, polite, lasting
        lead = _LEAD.match(core)
        if lead is None:
            return
        polite, standing = polite or bool(lead["polite"]), standing or bool(lead["standing"])
        core = core[lead.end() :]


def _without_leads(sentence: str) -> str:
    core = sentence
    while found := _LEAD.match(core):
        core = core[found.end() :]
    return core
