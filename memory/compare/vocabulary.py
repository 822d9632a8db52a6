"""The words the comparison knows, by language: English, French and Hebrew.

A statement in any other language has an empty vocabulary, and without one nothing is ever proved the same.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Literal

from memory.compare.normalise import tidy

Language = Literal["english", "french", "hebrew", ""]
KNOWN: tuple[Language, Language] = ("english", "french")
"""Those that are told apart by their words; Hebrew shows in its letters."""

# Enough of the neighbours to notice that a statement is in one of them. A word both know counts for both.
_NEIGHBOURS = (
    "el los las una un es tiene vive trabaja le gusta con por para del y su muy está en la que se de a no "
    "al come toma",
    "der die das ist und nicht mit ein eine einen dem den zu von wohnt im am in an arbeitet trinkt seine "
    "ihre sein mag",
    "il lo gli la le è ha vive lavora con per della di che un una sua suo non nel in si a piace beve "
    "mangia e",
    "o a os as um uma é tem mora trabalha com por para do da de e não no em seu sua chama na",
    "el la els les de a en un una amb no és té viu per que i seu seva",
    "de het een is en niet met van op voor in woont werkt heeft zijn haar houdt drinkt elke nooit geen",
    "en et er ikke og med på for bor har som den det ei aldri av i til hun han",
    "är och inte med av på för bor har som sin hans hennes den det ett en i aldrig",
    "are un o și nu în cu la de pe este a lui din care",
    "jest nie się na do mieszka pracuje lubi jego jej ma z w o i",
    "nu kein keine keinen nunca nadie nada ingen ikke inte ei yok değil tidak bukan nem não nooit nessuno "
    "mai nic niets",
)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What words are, in one language. Phrases are tuples of words, articles left out."""

    phrases: Mapping[tuple[str, ...], str]
    """To one key for all that mean the same; the keys of changes begin with ``!``."""
    longest: Mapping[str, int]
    """First word of a phrase: the length of the longest phrase that begins so."""
    articles: frozenset[str]
    weak: frozenset[str]
    """Keys that only hold a sentence together."""
    prepositions: frozenset[str]
    negations: frozenset[str]
    starts_clause: frozenset[str]
    because: frozenset[str]
    adverbs: frozenset[str]
    doubts: frozenset[str]
    """An addition with one of these may take back what was said, wherever it stands."""
    alters: frozenset[str]
    """An addition with one of these changes what it stands with: former, wants, all."""
    relations: frozenset[str]
    modifies: frozenset[str]
    """What changes only the noun beside it: half (a brother), oat (milk)."""
    numbers: Mapping[str, str]
    months: Mapping[str, str]
    weekdays: Mapping[str, str]
    states: frozenset[str]
    """Predicates that last until they end."""
    covers: Mapping[str, frozenset[str]]
    """The general word: the special ones."""
    partitives: frozenset[str]
    regions: frozenset[str]
    """Places that contain other places."""
    cues: frozenset[str]
    """Words that show a text is in this language."""


@cache
def vocabulary(language: Language) -> Vocabulary:
    if not language:
        return _empty()
    lists = import_module(f"memory.compare.words_{language}")
    words = {name: frozenset(tidy(getattr(lists, name)).split()) for name in _PLAIN}
    weak = _weak(lists.WEAK)
    groups = _groups(lists.CHANGES)
    for name, spellings in (*_groups(lists.SAME).items(), *weak.items()):
        groups[name] = groups.get(name, []) + spellings
    phrases = _phrases(groups, words["ARTICLES"], language)
    longest: dict[str, int] = {}
    for phrase in phrases:
        longest[phrase[0]] = max(len(phrase), longest.get(phrase[0], 0))
    return Vocabulary(
        phrases=phrases,
        longest=longest,
        articles=words["ARTICLES"],
        weak=frozenset(weak),
        prepositions=words["PREPOSITIONS"],
        negations=words["NEGATIONS"],
        starts_clause=words["STARTS_CLAUSE"],
        because=words["BECAUSE"],
        adverbs=words["ADVERBS"],
        doubts=words["DOUBTS"],
        alters=words["ALTERS"],
        relations=words["RELATIONS"],
        modifies=words["MODIFIES"],
        numbers=_numbered(lists.NUMBERS),
        months=_listed(lists.MONTHS, "month"),
        weekdays=_listed(lists.WEEKDAYS, "weekday"),
        states=words["STATES"],
        covers={name: frozenset(" ".join(found).split()) for name, found in _groups(lists.COVERS).items()},
        partitives=words["PARTITIVES"],
        regions=words["REGIONS"],
        cues=_cues(words, phrases, weak, [*_numbered(lists.NUMBERS), *_listed(lists.MONTHS, "")]),
    )


def language_of(*counts: tuple[int, ...]) -> Language:
    """The language of texts with these `cue_counts`; none where another is as likely or nothing tells."""
    hebrew, english, french, *others = (sum(of_each) for of_each in zip(*counts, strict=True))
    if hebrew:
        return "hebrew"
    if max(english, french) <= max(*others, min(english, french)):
        return ""
    return "english" if english > french else "french"


def cue_counts(words: Iterable[str]) -> tuple[int, ...]:
    """How many of these case-folded words speak for Hebrew, English, French and each of their neighbours."""
    seen = list(words)
    hebrew = sum("\u05d0" <= letter <= "\u05ea" for word in seen for letter in word)
    known = (sum(_cue(word, name) for word in seen) for name in KNOWN)
    return hebrew, *known, *(sum(word in neighbour for word in seen) for neighbour in _neighbours())


def _cue(word: str, language: Language) -> bool:
    cues = vocabulary(language).cues
    return word in cues or base_of(word, language) in cues


def base_of(word: str, language: Language) -> str:
    """The word without its regular ending of plural or third person; irregular forms by list."""
    if language == "english":
        return _english_base(word)
    if language == "french" and len(word) > 4 and word[-1] in "sx" and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _english_base(word: str) -> str:
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is", "'s")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "zzes", "ches", "shes")):
        return word[:-2]
    return word[:-1]


_IRREGULAR = {
    "does": "do", "goes": "go", "children": "child", "feet": "foot", "teeth": "tooth", "men": "man",
    "women": "woman", "people": "person", "always": "always", "sometimes": "sometimes",
    "knives": "knife", "wives": "wife", "lives": "live", "shelves": "shelf", "leaves": "leave",
    "tomatoes": "tomato", "potatoes": "potato", "has": "have", "is": "be", "are": "be", "am": "be",
    "was": "was", "lens": "lens", "news": "news", "series": "series", "this": "this", "maths": "maths",
    "buses": "bus", "mice": "mouse",
}  # fmt: skip

_PLAIN = (
    "ARTICLES", "PREPOSITIONS", "NEGATIONS", "STARTS_CLAUSE", "BECAUSE", "ADVERBS", "DOUBTS", "ALTERS",
    "RELATIONS", "MODIFIES", "STATES", "PARTITIVES", "REGIONS", "FEATURED",
)  # fmt: skip


def _groups(text: str) -> dict[str, list[str]]:
    """``name: one, two three`` a line; a line that begins with a space goes on with the one before."""
    groups: dict[str, list[str]] = {}
    for line in text.replace(",\n ", ", ").replace("\n ", " ").splitlines():
        if not line.strip():
            continue
        name, _, spellings = tidy(line).partition(":")
        found = [spelling.strip() for spelling in (spellings or name).split(",")]
        groups.setdefault(name.strip(), []).extend(spelling for spelling in found if spelling)
    return groups


def _weak(text: str) -> dict[str, list[str]]:
    rows = [row.partition(":") for row in text.split("|")]
    return {name.strip(): [name.strip(), *spellings.split()] for name, _, spellings in rows}


def _phrases(
    groups: Mapping[str, list[str]], articles: frozenset[str], language: Language
) -> dict[tuple[str, ...], str]:
    phrases: dict[tuple[str, ...], str] = {}
    for name, spellings in groups.items():
        for spelling in spellings:
            spelt = spelling.replace("'", "' ") if language == "french" else spelling
            words = tuple(base_of(word, language) for word in spelt.split() if word not in articles)
            phrases.setdefault(words or (spelling,), name)
    return phrases


def _numbered(text: str) -> dict[str, str]:
    rows = [row.split() for row in text.replace("\n", " ").split("|")]
    return {spelling: row[0] for row in rows for spelling in row[1:]}


def _listed(text: str, name: str) -> dict[str, str]:
    rows = [row.split() for row in text.replace("\n", " ").split("|")]
    return {spelling: f"{name}{place}" for place, row in enumerate(rows, 1) for spelling in row}


def _cues(
    words: Mapping[str, frozenset[str]],
    phrases: Mapping[tuple[str, ...], str],
    weak: Mapping[str, list[str]],
    counted: Iterable[str],
) -> frozenset[str]:
    told = {phrase[0] for phrase in phrases if len(phrase) == 1}.union(*weak.values(), counted)
    telling = ("ARTICLES", "PREPOSITIONS", "NEGATIONS", "RELATIONS", "FEATURED", "ADVERBS", "STARTS_CLAUSE")
    return frozenset(told.union(*(words[name] for name in telling)))


@cache
def _neighbours() -> tuple[frozenset[str], ...]:
    return tuple(frozenset(line.split()) for line in _NEIGHBOURS)


@cache
def _empty() -> Vocabulary:
    none: frozenset[str] = frozenset()
    return Vocabulary(
        {},
        {},
        none,
        none,
        none,
        none,
        none,
        none,
        none,
        none,
        none,
        none,
        none,
        {},
        {},
        {},
        none,
        {},
        none,
        none,
        none,
    )
