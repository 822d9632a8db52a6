"""Refuses a fact that the message it came from cannot have stated. Pure functions.

They refuse only what is proven: a greeting states no fact, and a question does not state what none of its words
say about nobody in the conversation. Everything else is left to the model.
"""

import re
from collections.abc import Iterable

from memory.facts.candidate import Provenance
from memory.search.names import fold

GREETING = "a greeting is no fact"
FROM_GREETING = "the message is a greeting and states no fact"
FROM_QUESTION = "the message only asks, and the fact is about nobody here"

_GREETINGS = frozenset(
    fold(word)
    for word in """hi hello hey hiya howdy yo there again good morning afternoon evening night day bye goodbye
    thanks thank you thx cheers so very much many welcome hallo guten morgen tag abend nacht moin servus tschüss
    danke schön vielen dank bonjour bonsoir salut coucou merci beaucoup bonne nuit hola buenos días buenas
    tardes noches gracias adiós ciao grazie olá obrigado obrigada bom dia привет здравствуйте спасибо שלום היי
    תודה רבה בוקר טוב ערב こんにちは おはよう こんばんは ありがとう 你好 谢谢 مرحبا شكرا""".split()
)
_TELLING = frozenset("the a user person speaker hachi said says say greeted greets to me wished wishes".split())
_WORD = re.compile(r"[^\W\d_]+|\d+")


def refusal(content: str, origin: Provenance) -> str | None:
    """Return why the fact is refused, or None. Only statements of the current turn are examined."""
    people = _words(f"{origin.user} {origin.speaker}")
    if _words(content) <= _GREETINGS | _TELLING | people:
        return GREETING
    if not origin.live or not origin.said:
        return None
    if _words(origin.said) <= _GREETINGS | people | {"hachi"}:
        return FROM_GREETING
    return None


def is_own_knowledge(content: str, origin: Provenance, names: Iterable[str]) -> bool:
    """Whether the message only asks and the fact is the model's answer to it: it names neither the speaker
    (`names` are further names of the speaker) nor the user, and adds words to those of the question."""
    question = origin.said.strip()
    if not origin.live or not question.endswith(("?", "？", "؟")) or re.search(r"[.!。！]\s", question):
        return False
    fact, asked = _words(content), _words(question)
    about = _words(" ".join((origin.user, origin.speaker, *names))) | {"user", "i", "my"}
    return fact.isdisjoint(about) and bool(fact & asked) and not fact <= asked


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(fold(text)))
