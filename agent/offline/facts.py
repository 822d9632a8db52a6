"""A fact as it is remembered: its wording, subjects, how long it holds and how much it matters."""

import re
from dataclasses import dataclass, replace
from datetime import datetime

from agent.offline.due import dated
from agent.offline.grammar import Fact
from agent.offline.person import SPEAKER, quotation, third_person
from agent.offline.person_en import is_past
from agent.offline.words import Language, bag, key_words, straight, words

SUBJECTS = 5

_NAMED: dict[Language, tuple[str, str]] = {
    "en": ("{}'s name is {}", "{} is also called {}"),
    "fr": ("{} s'appelle {}", "{} se fait appeler {}"),
    "he": ("{} נקרא בשם {}", "{} נקרא גם {}"),
}

# How long a passing state holds; the first that fits. States need a verb in the present, times a sentence
# that does not tell of something that is over.
_HAVE = r"\b(?:am|is|are|'m|'re|have|has|got|feel|feels|feeling|getting|caught)\b[\w' ]{0,25}?\b"
_STATES = (
    ("1d", rf"{_HAVE}(?:tired|hungry|thirsty|sleepy|exhausted|hungover|headache|bored|stressed|nervous)\b"),
    ("7d", rf"{_HAVE}(?:ill\b|sick\b(?! of)|unwell|(?:a|the|bad) (?:cold|flu|fever|cough|sore throat)|flu|"
           rf"fever|sad|"
           r"(?:very |really |quite )?busy)\b"),
    ("14d", rf"{_HAVE}(?:on (?:holiday|vacation|leave))\b"),
    ("1d", r"\b(?:fatiguée?|épuisée?|faim|soif|sommeil|mal de tête)\b|עייפה?|רעבה?|צמאה?|כאב ראש"),
    ("7d", r"\b(?:malade|enrhumée?|un rhume|la grippe|de la fièvre|débordée?|triste)\b|\bחולה\b|מצוננת?|"
           r"\bחום\b"),
    ("14d", r"\ben (?:vacances|congés?)\b|בחופשה"),
)  # fmt: skip
_TIMES = (
    ("1d", r"\b(?:today|tonight|this (?:morning|afternoon|evening)|right now|at the moment|ce (?:soir|matin)|"
           r"aujourd'hui|cet après-midi|en ce moment|היום|הערב|הבוקר|כרגע|hoy|heute)\b"),
    ("2d", r"\b(?:tomorrow|demain|מחר|mañana|morgen)\b"),
    ("7d", r"\b(?:this (?:week|weekend)|until (?:mon|tues|wednes|thurs|fri|satur|sun)day|cette semaine|ce "
           r"week-end|"
           r"השבוע|esta semana|diese woche)\b"),
    ("14d", r"\b(?:next week|la semaine prochaine|בשבוע הבא)\b"),
    ("30d", r"\b(?:this month|ce mois-ci|החודש)\b"),
)  # fmt: skip
_OVER = re.compile(
    r"\bj'ai \w+(?:é|u|is|it)\b|\bje (?:me |ne |n')?suis \w+(?:é|ée|u|ue|i|ie)\b|\b\w{2,}תי\b|\bwas\b|"
    r"\bwere\b|\bin (?:19|20)\d\d\b"
)
_PREFERENCE = re.compile(
    r"\b(?:loves?|hates?|prefers?|enjoys?|adores?|dislikes?|(?<!would )(?<!feel )likes?|favou?rite|can't "
    r"stand|aime|déteste|préfère|préférée?s?|gusta|odio|mag|liebe|lieblings\w*)\b|אוהבת?|שונאת?|מעדיפה?|אהוב",
    re.I,
)
_TOPICS = {
    "health": "shoulder arm leg knee back head hand foot ankle wrist rib doctor hospital allergic allergy "
    "ill sick flu cold épaule bras jambe genou malade allergique médecin כתף יד רגל ברך רופא חולה אלרגי "
    "אלרגית",
    "home": "live lives moved address habite vis déménagé adresse גר גרה עברתי כתובת",
    "work": "work works job boss office colleague travaille travail métier bureau עובד עובדת עבודה",
    "family": "sister brother mother father mum mom dad wife husband son daughter sœur frère mère père "
    "femme mari fils fille אחותי אחי אשתי בעלי אמא אבא",
    "pet": "dog cat chien chat כלב כלבה חתול חתולה",
    "food": "eat vegetarian vegan mange végétarien אוכל אוכלת",
}
_THINGS: dict[Language, str] = {
    "en": r"\b(?:my|an?|the) (?:(?:favou?rite|new|old|small|big|little|best|first|last) )?([^\W\d_]{3,})",
    "fr": r"\b(?:(?:mon|ma|mes|une?|le|la|les|du|des) |l')(?:(?:nouvelle|nouveau|petite?) )?([^\W\d_]{3,})",
}
_NO_SUBJECTS = bag(
    "i i'm i've monday tuesday wednesday thursday friday saturday sunday january february march april may "
    "june "
    "july august september october november december"
)
_TOPIC_OF = {word: topic for topic, group in _TOPICS.items() for word in words(group)}


@dataclass(frozen=True, slots=True)
class Draft:
    """The arguments of `remember`, and of an entry of `memories[]`."""

    content: str
    subjects: tuple[str, ...]
    ttl: str | None
    type: str
    importance: float

    def arguments(self) -> dict[str, object]:
        return {
            "content": self.content,
            "subjects": list(self.subjects),
            "ttl": self.ttl,
            "type": self.type,
            "importance": self.importance,
        }


def draft(
    fact: Fact,
    name: str | None,
    language: Language,
    shared: bool = False,
    now: datetime | None = None,
) -> Draft:
    """How a fact is remembered that `name` said at `now`; in a `shared` place everybody is named."""
    content = _content(replace(fact, text=dated(fact.text, now)), name, language, shared)
    ttl = _ttl(fact)
    preference = fact.about != "name" and bool(_PREFERENCE.search(fact.text))
    subjects = _subjects(fact, name, language)
    lasting = fact.about in ("name", "nickname") or (ttl is None and not preference and subjects[1:])
    return Draft(
        content=content,
        subjects=subjects,
        ttl=ttl,
        type="preference" if preference else "fact",
        importance=0.9 if fact.about == "name" else 0.7 if lasting else 0.5 if ttl else 0.6,
    )


def _content(fact: Fact, name: str | None, language: Language, shared: bool) -> str:
    if fact.about in ("name", "nickname"):
        same = not name or name.casefold() == fact.value.casefold()
        whose = SPEAKER[language] if same and not shared else name or fact.value
        called = _NAMED.get(language, _NAMED["en"])[fact.about == "nickname"].format(whose, fact.value)
        return called[0].upper() + called[1:]
    if fact.about == "self":
        return third_person(fact.text, name, language)
    if fact.about == "quote":
        return quotation(fact.text, name or SPEAKER[language], language)
    return fact.text[0].upper() + fact.text[1:]


def _ttl(fact: Fact) -> str | None:
    text = straight(fact.text)
    if fact.about in ("name", "nickname") or is_past(text):
        return None
    states = next((ttl for ttl, sign in _STATES if re.search(sign, text, re.I)), None)
    if states or _OVER.search(text):
        return states
    return next((ttl for ttl, sign in _TIMES if re.search(sign, text, re.I)), None)


def _subjects(fact: Fact, name: str | None, language: Language) -> tuple[str, ...]:
    """The speaker, the topics, the names and the things spoken of, as lower-case tags."""
    found = [] if fact.about == "other" or not name else [name.lower()]
    if fact.value:
        found += [fact.value.lower(), "name"]
    else:
        keys = key_words(fact.text)
        found += [word.lower() for word in re.findall(r"(?<!^)\b[A-ZÀ-Ý][\w-]+", fact.text)]
        found += keys[:1] if fact.about == "other" else []
        if language != "other":
            found += re.findall(_THINGS.get(language, r"(?!)"), fact.text.lower()) or keys[-1:]
        found += [_TOPIC_OF[key] for key in keys if key in _TOPIC_OF]
    tags = [tag for tag in dict.fromkeys(found) if tag not in _NO_SUBJECTS and not tag.isdigit()]
    return tuple(tags[:SUBJECTS])


_BAD_NEWS = re.compile(
    r"\b(?:broke|broken|ill|sick|died|dead|hurt|injured|lost my|fired|stolen|crashed|sad|flu|fever|cassée?|"
    r"malade|morte?|décédée?|blessée?|triste|perdu mon)\b|שברתי|\bחולה\b|נפטרה?|נפצעתי|\bעצובה?\b",
    re.I,
)


def naming(language: Language) -> str:
    """How a memory begins that names somebody whose name is not known."""
    known: Language = language if language in _NAMED else "en"
    return _NAMED[known][0].format(SPEAKER[known], "").strip()


def is_bad_news(text: str) -> bool:
    return bool(_BAD_NEWS.search(text))


def corrected(content: str, close: list[dict[str, str]]) -> str | None:
    """The id of the close memory that says the same of the same person with another value.

    They must begin alike for at least half of the shorter one, as "Ana lives in Paris" and "Ana lives in "
                                                                                            "Lyon".
    """
    new = words(content)
    best, longest = None, 0
    for entry in close:
        old = words(str(entry.get("content", "")))
        alike = next(
            (i for i, (a, b) in enumerate(zip(new, old, strict=False)) if a != b), min(len(new), len(old))
        )
        if old != new and alike > longest and alike >= 2 and alike * 2 >= min(len(new), len(old)):
            best, longest = entry.get("id"), alike
    return best
