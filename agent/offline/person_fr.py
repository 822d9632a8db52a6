"""French sentences, from the first person to the third and from the third to the second."""

import re

from agent.offline.words import straight

# First, third and second person singular where the endings below do not give them.
_FORMS = (
    "suis est es, ai a as, vais va vas, fais fait fais, peux peut peux, veux veut veux, dois doit dois, "
    "sais sait sais, vis vit vis, viens vient viens, tiens tient tiens, prends prend prends, mets met mets, "
    "apprends apprend apprends, vends vend vends, perds perd perds, attends attend attends"
)
_THIRD = {first: third for first, third, _ in (forms.split() for forms in _FORMS.split(", "))}
_SECOND = {third: second for _, third, second in (forms.split() for forms in _FORMS.split(", "))}
_VOWELS = "aeiouhéèêàâôîœ"
_THEIRS = {"mon": "son", "ma": "sa", "mes": "ses"}
_YOURS = {"son": "ton", "sa": "ta", "ses": "tes"}
_ARTICLE = {"mon": "le", "ma": "la", "mes": "les"}
_OTHERS = re.compile(
    r"\b(?:je|me|moi|tu|te|toi|son|sa|ses|lui|nous|vous|notre|nos|votre|vos|leurs?)\b|\b[jmt]'", re.I
)
_CLITICS = r"(?:(?:ne|me|se|te|le|la|les|lui|leur|en|y)\s+|[nmstl]')*"
_JE = re.compile(rf"j(?:e\s+|')(?P<before>{_CLITICS})(?P<verb>[\w-]+)(?P<rest>.*)$", re.I | re.S)
_VERBS = (
    r"(?:ne |n'|s')?(?:est|a|sont|ont|appelle|habite|vit|travaille|aime|adore|déteste|était|fait|va|vient|"
    r"étudie|"
    r"parle|joue|arrive|part|viennent|habitent|s'appellent)\b"
)
_MON = re.compile(
    rf"(?P<whose>mon|ma|mes)\s+(?P<what>[\w-]+(?: préférée?s?)?)(?: (?P<name>[A-ZÀ-Ý][\w-]+))? "
    rf"(?P<rest>{_VERBS}.*)$",
    re.S,
)


def _third(verb: str) -> str | None:
    low = verb.lower()
    if low in _THIRD:
        return _THIRD[low]
    if low.endswith("ais"):
        return verb[:-1] + "t"
    if low.endswith("ai"):
        return verb[:-1]
    if low.endswith("e"):
        return verb
    return verb[:-1] + "t" if low.endswith("s") else None


def _second(verb: str) -> str:
    low = verb.lower()
    if low in _SECOND:
        return _SECOND[low]
    return verb[:-1] + "s" if low.endswith("t") else verb + "s"


def _swap(text: str, table: dict[str, str]) -> str:
    return re.sub(r"\b(?:mon|ma|mes|son|sa|ses)\b", lambda m: table.get(m[0].lower(), m[0]), text, flags=re.I)


def _elided(text: str) -> str:
    return re.sub(rf"\b([nst])e (?=[{_VOWELS}])", r"\1'", text, flags=re.I)


def _of(name: str) -> str:
    return f"d'{name}" if name[0].lower() in _VOWELS else f"de {name}"


def french_third(sentence: str, name: str) -> str | None:
    sentence = straight(sentence)
    sentence = sentence[:1].lower() + sentence[1:]
    if found := _JE.match(sentence):
        verb = _third(found["verb"])
        if verb is None or _OTHERS.search(found["rest"]):
            return None
        before = re.sub(r"\bm(?=e\b|')", "s", found["before"])
        return f"{name} {_elided(before + verb)}{_swap(found['rest'], _THEIRS)}"
    found = _MON.match(sentence)
    if not found or _OTHERS.search(found["rest"]):
        return None
    what = found["what"]
    whose = f"{_ARTICLE[found['whose']]} {what} {_of(name)}"
    if found["whose"] != "mes" and what[0] in _VOWELS:
        whose = f"l'{what} {_of(name)}"
    rest = _swap(found["rest"], _THEIRS)
    return f"{found['name']}, {whose}, {rest}" if found["name"] else f"{whose} {rest}"


def french_second(content: str, name: str) -> str | None:
    label = re.escape(name)
    pattern = (
        rf"(?P<who>[\w-]+, )?(?:(?P<article>le|la|les) |l')(?P<what>.{{1,40}}?) d(?:e |')"
        rf"{label}(?P<rest>\b.*)$"
    )
    if found := re.match(pattern, content, re.I | re.S):
        yours = {"la": "ta", "les": "tes"}.get((found["article"] or "").lower(), "ton")
        text = f"{found['who'] or ''}{yours} {found['what']}{_swap(found['rest'], _YOURS)}"
        return text[0].upper() + text[1:]
    found = re.match(rf"{label} (?P<before>{_CLITICS})(?P<verb>[\w-]+)(?P<rest>.*)$", content, re.I | re.S)
    if not found:
        return None
    before = re.sub(r"\bs(?=e\b|')", "t", found["before"])
    verb = _second(found["verb"])
    return f"Tu {_elided(before + verb)}{_swap(found['rest'], _YOURS)}"
