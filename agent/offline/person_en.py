"""English sentences, from the first person to the third and from the third to the second."""

import re

from agent.offline.words import bag, straight

_IRREGULAR = {"am": "is", "'m": "is", "have": "has", "'ve": "has", "'ll": "will", "do": "does", "go": "goes"}
_IRREGULAR |= {"don't": "doesn't", "haven't": "hasn't", "'d": "would"}
_SECOND = {"is": "are", "was": "were", "has": "have", "does": "do", "goes": "go"}
_SECOND |= {"isn't": "aren't", "wasn't": "weren't", "doesn't": "don't", "hasn't": "haven't"}

# Forms that are the same in every person.
_PAST = bag(
    "was wasn't were had hadn't did didn't went got bought saw met lost won made took came ate began broke "
    "fell "
    "found forgot gave grew heard hurt kept knew left led lent lay paid put ran read rode rang rose said "
    "sang sat "
    "sent slept sold sought spent spoke stole stood stuck swam swore taught thought threw told tore "
    "understood "
    "woke wore wrote became caught chose cut drank drew drove felt flew fought froze hid hit held quit set "
    "shut "
    "bit blew brought built dug dealt dreamt beat bent lit let meant shot shook slid tried"
)
_MODAL = bag(
    "can can't cannot could couldn't will won't would wouldn't should shouldn't may might must mustn't used "
    "ought 'll 'd"
)
_ED_IN_PRESENT = bag("need feed bleed breed speed seed weed succeed proceed exceed shed wed embed")
_ADVERBS = bag(
    "also always already almost never ever often seldom sometimes usually still just now only even rarely "
    "currently once twice not soon recently finally quite"
)
# Verbs that are recognised after "and", where a noun might stand as well.
_COMMON = bag(
    "live work love like hate play have study speak want need eat drink run walk read write teach learn own "
    "drive "
    "travel sing dance cook paint enjoy prefer go do know collect sleep keep make take swim ski"
)
_INSIDE = {"i": "they", "me": "them", "my": "their", "mine": "theirs", "myself": "themselves"}
_INSIDE |= {"i'm": "they're", "i've": "they've", "i'll": "they'll", "i'd": "they'd"}
_OUTSIDE = {"they": "you", "them": "you", "their": "your", "theirs": "yours", "themselves": "yourself"}
_OUTSIDE |= {"they're": "you're", "they've": "you've", "they'll": "you'll", "they'd": "you'd"}
_OTHERS = bag("they them their theirs themselves you your yours we us our ours")

_WORD = re.compile(r"[\w'-]+")
_LEAD = (
    r"(?:(?:on|in|at|last|next|this|every|yesterday|today|tonight|tomorrow|since|when|after|before|during|"
    r"as|one|two|three|every)\b[^,]{0,50}?,?\s+)?"
)
_I = re.compile(rf"(?P<lead>{_LEAD})i(?P<verb>'m|'ve|'ll|'d|\s+(?=[a-z]))(?P<rest>.*)$", re.I | re.S)
_MY = re.compile(rf"(?P<lead>{_LEAD})my\s+(?P<rest>.+)$", re.I | re.S)


def is_past(sentence: str) -> bool:
    """Whether an English sentence in the first person tells of something that is over."""
    found = _I.match(straight(sentence))
    if not found or found["verb"].strip():
        return False
    verb = _verb(found["rest"])[1].lower()
    return verb in _PAST or (verb.endswith("ed") and verb not in _ED_IN_PRESENT)


def is_verb(word: str) -> bool:
    """Whether an English word after a name looks like a verb in the third person."""
    low = word.lower()
    return low in _PAST or low in _MODAL or low in _ADVERBS or low.endswith(("s", "ed", "n't"))


def _verb(rest: str) -> tuple[str, str, str]:
    """What stands before the verb, the verb and what follows it."""
    end = 0
    for found in _WORD.finditer(rest):
        word = found[0].lower()
        if word not in _ADVERBS and not word.endswith("ly"):
            return rest[: found.start()], found[0], rest[found.end() :]
        end = found.end()
    return rest[:end], "", rest[end:]


def _third(verb: str) -> str:
    low = verb.lower()
    if low in _IRREGULAR:
        return _IRREGULAR[low]
    if not low or low in _PAST or low in _MODAL or (low.endswith("ed") and low not in _ED_IN_PRESENT):
        return verb
    if low.endswith("y") and low[-2:-1] not in "aeiou":
        return verb[:-1] + "ies"
    return verb + ("es" if low.endswith(("s", "sh", "ch", "x", "z", "o")) else "s")


def _bare(verb: str) -> str:
    low = verb.lower()
    if low in _SECOND:
        return _SECOND[low]
    if low in _PAST or low in _MODAL or not low.endswith("s") or low.endswith(("ss", "us")) or len(low) < 4:
        return verb
    if low.endswith("ies") and len(low) > 4:
        return verb[:-3] + "y"
    return verb[:-2] if low.endswith(("sses", "shes", "ches", "xes", "zes", "oes")) else verb[:-1]


def _swap(text: str, table: dict[str, str], now: str) -> str:
    """Replace pronouns; `now` is the pronoun after which "am" and "was" become "are" and "were"."""

    def one(found: re.Match[str]) -> str:
        return table.get(found[0].lower(), found[0])

    swapped = _WORD.sub(one, text)
    return re.sub(rf"\b{now} (am|was)\b", lambda m: f"{now} {'are' if m[1] == 'am' else 'were'}", swapped)


def _also(text: str, change: dict[str, str]) -> str:
    """The verbs of "and works", "and have two cats"."""
    return re.sub(
        r"\b(and|but|or) ((?:also )?)(\w+)",
        lambda m: f"{m[1]} {m[2]}{change.get(m[3].lower(), m[3])}",
        text,
    )


def english_third(sentence: str, name: str) -> str | None:
    sentence = straight(sentence)
    if _OTHERS & {word.lower() for word in _WORD.findall(sentence)} or re.match(
        r"my [\w' ]{1,25} and i\b", sentence, re.I
    ):
        return None
    if found := _I.match(sentence):
        if found["verb"].strip():
            before, verb, rest = " ", found["verb"], found["rest"]
            verb = "had" if verb == "'d" and rest.strip().startswith("been") else _third(verb)
        else:
            before, first, rest = _verb(" " + found["rest"])
            verb = _third(first)
            if verb != first and first.lower() in _COMMON | {"am"}:
                rest = _also(rest, {word: _third(word) for word in _COMMON})
        subject = f"{name}{before}{verb}"
    elif found := _MY.match(sentence):
        subject, rest = f"{name}'s", " " + found["rest"]
    else:
        return None
    lead = found["lead"]
    return _swap(lead, _INSIDE, "they") + subject + _swap(rest, _INSIDE, "they")


def english_second(content: str, name: str) -> str | None:
    found = re.match(rf"(?P<lead>{_LEAD}){re.escape(name)}(?P<own>'s)?\s(?P<rest>.+)$", content, re.I | re.S)
    if not found or (not found["own"] and re.search(r"\b(?:he|she|his|her|him)\b", found["rest"], re.I)):
        return None
    rest = " " + found["rest"]
    if not found["own"] and not rest.startswith(" and "):
        before, verb, after = _verb(rest)
        plain = _bare(verb)
        if plain != verb:
            after = _also(after, {_third(word): word for word in _COMMON})
        rest = before + plain + after
    you = ("your" if found["lead"] else "Your") if found["own"] else ("you" if found["lead"] else "You")
    return _swap(found["lead"], _OUTSIDE, "you") + you + _swap(rest, _OUTSIDE, "you")
