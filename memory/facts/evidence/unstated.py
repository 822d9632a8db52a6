"""Refuses a fact that the message it came from cannot have stated. Pure functions.

They refuse only what is proven: a greeting states no fact, and a question does not state its own answer.
Anything else is left to the model.
"""

import re
from collections.abc import Iterable

from memory.facts.candidate import Provenance
from memory.text.names import fold

GREETING = "a greeting is no fact"
FROM_GREETING = "the message is a greeting and states no fact"
FROM_QUESTION = "the message only asks, and the fact is about nobody here"

_GREETINGS = frozenset(
    fold(word)
    for word in """hi hello hey hiya howdy yo there again good morning afternoon evening night day bye goodbye
    thanks thank you thx cheers so very much many welcome hallo guten morgen tag abend nacht moin servus
    tschüss danke schön vielen dank bonjour bonsoir salut coucou merci beaucoup bonne nuit hola
    buenos días buenas tardes noches gracias adiós ciao grazie olá obrigado obrigada bom dia привет
    здравствуйте спасибо שלום היי תודה רבה בוקר טוב ערב こんにちは おはよう こんばんは
    ありがとう 你好 谢谢 مرحبا شكرا""".split()
)
_TELLING = frozenset(
    "the a user person speaker hachi said says say greeted greets to me wished wishes".split()
)
_WORD = re.compile(r"[^\W\d_]+|\d+")
_VALUE = re.compile(r"\b(?:\d+|[A-ZÀ-ÖØ-Þ][^\W\d_]{3,})")
"""A number, or a capitalised word of four letters or more."""
_ASKS = ("?", "？", "؟")
_SENTENCE_END = re.compile(r"[.!。！]\s")


def refusal(content: str, origin: Provenance) -> str | None:
    """Return why the fact is refused, or None. The message counts only for facts of the current turn."""
    people = _words(f"{origin.user} {origin.speaker}")
    if _words(content) <= _GREETINGS | _TELLING | people:
        return GREETING
    if not origin.live or not origin.said:
        return None
    if _words(origin.said) <= _GREETINGS | people | {"hachi"}:
        return FROM_GREETING
    return None


def is_own_knowledge(content: str, origin: Provenance, names: Iterable[str] = ()) -> bool:
    """Whether the message only asks, and the fact is the model's own answer to it: the fact shares a word
    with the question, adds a name or a number to it, and names neither the user nor the speaker (`names` are
    further names of the speaker)."""
    question = origin.said.strip()
    if not origin.live or not question.endswith(_ASKS) or _SENTENCE_END.search(question):
        return False
    about = _words(" ".join((origin.user, origin.speaker, *names))) | {"user", "i", "my"}
    fact, asked = _words(content), _words(question)
    added = {fold(value) for value in _VALUE.findall(content)} - asked
    return bool(added) and bool(fact & asked) and fact.isdisjoint(about)


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(fold(text)))
