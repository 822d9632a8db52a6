"""The languages of the stand-in's grammar: three of their own, and all others in their own words."""

import re

from agent.offline.tongue import NEVER, Tongue, rule, table
from agent.offline.tongue_en import ENGLISH
from agent.offline.tongue_fr import FRENCH
from agent.offline.tongue_he import HEBREW
from agent.offline.words import Language

_SPANISH_QUESTIONS = rule(r"¿|(?:qué|quién|dónde|cuándo|cómo|cuál|cuánto|por qué|recuerdas|sabes)\b")
_GERMAN_QUESTIONS = rule(r"(?:was|wer|wo|wann|wie|warum|welche\w*|weißt du|erinnerst du|kennst du)\b")


def _verbatim(greetings: str, thanks: str, goodbyes: str, question: re.Pattern[str]) -> Tongue:
    """A language whose statements are kept in their own words."""
    return Tongue(
        lead=NEVER,
        requests=table(
            ("greeting", rf"¡?(?:{greetings})(?:,? \w+){{0,2}}$"),
            ("thanks", rf"¡?(?:{thanks})\b.{{0,30}}$"),
            ("goodbye", rf"¡?(?:{goodbyes})\b.{{0,30}}$"),
        ),
        question=question,
        statements=table(("quote", r"\S+\s+\S+|[^\x00-\u024f]{4}")),
        cut=NEVER,
        subordinate=NEVER,
    )


VERBATIM = _verbatim(
    "ciao|buongiorno|olá|oi|bom dia|hoi|hallo|"
    "привет|здравствуйте|مرحبا|السلام عليكم|こんにちは|你好|您好|안녕하세요|안녕",
    "grazie|obrigad[oa]|dank je|спасибо|شكرا|ありがとう|谢谢|감사합니다",
    "arrivederci|tchau|adeus|doei|пока|до свидания|さようなら|再见",
    rule(
        r"(?:dove|chi|quando|onde|quem|waar|wie|что|кто|где|когда|как|почему|ما|من|أين|متى|هل|何|誰|谁|什么|哪里)\b"
    ),
)
TONGUES: dict[Language, Tongue] = {
    "en": ENGLISH,
    "fr": FRENCH,
    "he": HEBREW,
    "es": _verbatim(
        "hola|buenos días|buenas tardes|buenas noches|buenas", "gracias|muchas gracias", "adiós|hasta luego|"
                                                                                         "chao",
        _SPANISH_QUESTIONS,
    ),
    "de": _verbatim(
        "hallo|guten (?:morgen|tag|abend)|moin|servus", "danke|vielen dank", "tschüss|auf wiedersehen|gute "
                                                                             "nacht",
        _GERMAN_QUESTIONS,
    ),
    "other": VERBATIM,
}  # fmt: skip
