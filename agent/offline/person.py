"""From the first person to the third, to remember, and from the third to the second, to answer.

    I broke my shoulder   →   Mickael broke their shoulder   →   You broke your shoulder
    j'ai cassé mon vélo   →   Mickael a cassé son vélo       →   Tu as cassé ton vélo

Where that cannot be done safely, as in a language without a table here, the sentence is kept as a quotation:
`Mickael said: "we live in Paris"`.
"""

import re

from agent.offline.person_en import english_second, english_third
from agent.offline.person_fr import french_second, french_third
from agent.offline.words import Language, language_of, straight

SPEAKER: dict[Language, str] = {
    "en": "the user",
    "fr": "l'utilisateur",
    "he": "המשתמש",
    "es": "el usuario",
    "de": "der Benutzer",
    "other": "the user",
}
"""What somebody is called whose name is not known."""

_SAID: dict[Language, str] = {
    "en": '{} said: "{}"',
    "fr": "{} a dit : « {} »",
    "he": '{}: "{}"',
    "es": '{} dijo: "{}"',
    "de": '{} sagte: "{}"',
    "other": '{}: "{}"',
}


def third_person(sentence: str, name: str | None, language: Language) -> str:
    """What somebody said of themselves, as it is remembered."""
    label = name or SPEAKER[language]
    rewrite = {"en": english_third, "fr": french_third}.get(language)
    content = rewrite(sentence, label) if rewrite else None
    return _capital(content or quotation(sentence, label, language))


def quotation(sentence: str, label: str, language: Language) -> str:
    return _capital(_SAID[language].format(label, sentence))


def quoted(content: str, names: tuple[str, ...]) -> str | None:
    """The words of a quotation, where one of `names` said them."""
    label = "|".join(map(re.escape, names))
    found = re.match(
        rf"(?:{label})(?: said| a dit ?| dijo| sagte)?\s?: ?[\"«“]\s?(.+?)\s?[\"»”]$", content, re.I | re.S
    )
    return found[1] if found else None


def second_person(content: str, names: tuple[str, ...], language: Language) -> str | None:
    """A remembered sentence said to the person it is about, None where it is about somebody else.

    `language` is that of the conversation, for a sentence that does not show its own.
    """
    content = straight(content)
    rewrite = french_second if (language_of(content) or language) == "fr" else english_second
    for name in names:
        if said := rewrite(content, name):
            return said
    return None


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
