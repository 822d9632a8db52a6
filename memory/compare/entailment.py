"""Whether one statement says all that another does.

Containing every word is not enough: *Ann's mother likes tea* contains *Ann likes tea*. So the words of the
poorer statement must all come back in the same order, and nothing that stands between them in the richer one
may change whom or what they are about. Each check that fails is a reason to keep both.
"""

from collections.abc import Sequence

from memory.compare.alignment import Alignment
from memory.compare.statements import Token
from memory.compare.vocabulary import Vocabulary

_TIMES = frozenset({
    "every", "daily", "weekly", "often", "named", "atnight", "everymorning", "everyevening", "whenever",
    "near", "today", "tomorrow", "yesterday", "day", "week", "month", "year", "again", "twice", "outdoors",
    "abroad", "professionally", "together", "alone",
})  # fmt: skip


def obstacle(found: Alignment, subject: int) -> str | None:
    """Why the richer statement does not say what the poorer one does, though it has all its words.

    `subject` is how many tokens of the poorer one name what it is about.
    """
    for check in _CHECKS:
        if reason := check(found, subject):
            return reason
    return None


def _subject(found: Alignment, subject: int) -> str | None:
    if found.pairs[0] != (0, 0):
        return "about someone or something else"
    named = [pair for pair in found.pairs if pair[0] < subject]
    last = named[-1]
    following = next((there for here, there in found.pairs if here > last[0]), len(found.rich))
    gap = found.rich[last[1] + 1 : following]
    if gap and following < len(found.rich) and gap[0].boundary and found.rich[following].boundary:
        gap = ()  # an aside between commas
    elif [token.key for token in gap] in (["work", "as"], ["work"]) and _is_one(found, last[0]):
        gap = ()
    for place in range(last[1] + 1, last[1] + 1 + len(gap)):
        token = found.rich[place]
        apposed = token.kind == "name" and found.poor[last[0]].kind != "name"
        if not apposed and token.key not in found.words.adverbs and not _dates(found.rich, place):
            return f"puts {token.surface!r} between who and what"
    if any(there - here != named[0][1] for here, there in named):
        return "about someone or something else"
    return None


def _is_one(found: Alignment, last: int) -> bool:
    """Whether the poorer one says what someone is, as *works as a cook* does too."""
    is_one = last + 2 < len(found.poor) and found.poor[last + 1].key == "be"
    return is_one or "כ" in {token.surface[0] for token in found.rich[last + 2 : last + 3]}


def _dates(tokens: Sequence[Token], place: int) -> bool:
    """Whether this is the *on* of a date."""
    return tokens[place].key in ("in", "on") and any(
        token.kind == "number" for token in tokens[place + 1 : place + 2]
    )


def _owners(found: Alignment, subject: int) -> str | None:
    for here, there in found.pairs:
        one, other = found.poor[here], found.rich[there]
        if one.possessive == other.possessive:
            continue
        has = here + 1 < len(found.poor) and found.poor[here + 1].key == "have"
        if not (other.possessive and has and (here + 2, there + 1) in found.pairs):
            return f"about what belongs to {one.surface}"
    return None


def _joints(found: Alignment, subject: int) -> str | None:
    """A word must hang on the same preposition: *likes tea* is not *likes the smell of tea*."""
    before = (-1, -1)
    for here, there in found.pairs:
        token = found.rich[there]
        if not token.carries or token.kind == "preposition" or token.key in _TIMES or _weekday(token):
            continue
        poor = _last_joint(found.poor[before[0] + 1 : here], found.words)
        rich = _last_joint(found.rich[before[1] + 1 : there], found.words)
        dated = token.kind == "number" and {poor, rich} <= {"in", "on", None}
        if rich not in (None, poor, "as") and not dated:
            return f"{token.surface!r} stands with another word"
        before = (here, there)
    return None


def _weekday(token: Token) -> bool:
    return token.key.startswith("weekday")


def _last_joint(tokens: Sequence[Token], words: Vocabulary) -> str | None:
    last = None
    for token, previous in zip(tokens, [None, *tokens], strict=False):
        if token.kind == "preposition" or token.key in ("in", "on", "as"):
            last = token.key
        elif token.kind == "name" and not token.possessive:
            last = None  # the word belonged to the name
        elif token.key == "of" and (previous is None or previous.key not in words.partitives):
            last = token.key
    return last


def _numbers(found: Alignment, subject: int) -> str | None:
    """A number must still count the same thing."""
    used = found.used
    for _, there in found.pairs:
        token = found.rich[there]
        if token.kind != "number" or not (token.key[0].isdigit() and token.key[-1].isdigit()):
            continue
        if there and there - 1 not in used and found.rich[there - 1].kind == "number":
            return f"another number before {token.surface}"
        following, second = found.after(there), found.after(there + 1)
        if following is None or following.boundary:
            continue
        if there + 1 not in used and following.kind in ("word", "number"):
            return f"{token.surface} counts something else"
        if there + 2 not in used and second is not None and second.key.isdigit() and not second.boundary:
            return f"{token.surface} goes on with {second.surface}"
    return None


def _several(found: Alignment, subject: int) -> str | None:
    """*Loves dogs* and *loves her dog*; two dogs, though, are dogs, and a dog is one of two."""
    for here, there in found.pairs:
        counted = there and found.rich[there - 1].kind == "number"
        if here > subject and not counted and one_or_several(found.poor[here], found.rich[there]):
            return f"one or several: {found.poor[here].surface!r} / {found.rich[there].surface!r}"
    return None


def one_or_several(one: Token, other: Token) -> bool:
    """Whether two spellings of a noun differ in its number."""
    spellings = {token.surface.casefold() for token in (one, other)}
    if one.kind != "word" or other.kind != "word" or len(spellings) == 1 or one.key != other.key:
        return False
    shorter, longer = sorted(spellings, key=len)
    return longer in (shorter + "s", shorter + "es", shorter + "x", shorter[:-1] + "ies")


def _relations(found: Alignment, subject: int) -> str | None:
    last = found.pairs[-1][1]
    for place in found.extra:
        relation = found.rich[place].surface.casefold() in found.words.relations
        if relation and place < last and not _of_clause(found, place):
            return f"about {found.rich[place].surface!r}, whom the other does not name"
    return None


def _of_clause(found: Alignment, place: int) -> bool:
    """Whether it stands in an aside that ends before the next word both have."""
    before = max(there for there in found.used if there < place)
    after = min(there for there in found.used if there > place)
    opened = any(found.rich[at].boundary for at in range(before + 1, place + 1))
    return opened and found.rich[after].boundary


def _heads(found: Alignment, subject: int) -> str | None:
    """In English the last noun of several is what it is, in Hebrew the first: a dog walker is no dog."""
    if ("של",) in found.words.phrases:
        return _hebrew_heads(found)
    if "the" not in found.words.articles:
        return None
    used, apart = found.used, _TIMES | found.words.adverbs | found.words.starts_clause
    for here, there in found.pairs:
        following = found.after(there)
        verb = here == subject and len(found.poor) > subject + 1
        if found.rich[there].kind != "word" or here < subject or verb or following is None:
            continue
        plain = following.kind == "word" and not following.boundary and not following.key.endswith("ly")
        if plain and there + 1 not in used and following.key not in apart:
            return f"'{found.rich[there].surface} {following.surface}' is another thing"
    return None


def _hebrew_heads(found: Alignment) -> str | None:
    used = found.used
    for _, there in found.pairs[1:]:
        token, before = found.rich[there], found.rich[there - 1]
        plain = token.kind in ("word", "name") and not token.loose and not token.boundary
        counts = before.kind != "word" or before.key in found.words.partitives | _TIMES
        if there - 1 not in used and plain and not counts and token.key not in found.words.states | _TIMES:
            return f"'{before.surface} {token.surface}' is another thing"
    return None


def _names(found: Alignment, subject: int) -> str | None:
    """A name that grows may be another's: Chris and Chris T., York and New York."""
    used = found.used
    for _, there in found.pairs:
        token, following = found.rich[there], found.after(there)
        if token.kind != "name":
            continue
        before = [there - 1] if there and not token.boundary else []
        after = [there + 1] if following is not None and not following.boundary else []
        for beside in (*before, *after):
            if beside not in used and found.rich[beside].kind == "name":
                return f"{token.surface} may be another than with {found.rich[beside].surface}"
    return None


def _turned(found: Alignment, subject: int) -> str | None:
    """What denies, weakens or ends may only come in a clause of its own, after all that both say."""
    last = found.pairs[-1][1]
    for place in found.extra:
        token = found.rich[place]
        low = token.surface.casefold()
        excepted = token.key == "but" and found.rich[place - 1].surface.casefold() in _ALL
        if token.kind == "change" or low in found.words.doubts or excepted:
            return f"{token.surface!r} changes what is said"
        beside = {place + 1} if "the" in found.words.articles else {place - 1, place + 1}
        if low in found.words.modifies and beside & found.used:
            return f"{token.surface!r} makes it something else"
        if (token.kind != "negation" and low not in found.words.alters) or (low in _WITHOUT and place > last):
            continue
        own_clause = any(found.rich[at].boundary for at in range(last + 1, place + 1))
        if not own_clause:
            return f"{token.surface!r} changes what is said"
    return None


def _narrowed(found: Alignment, subject: int) -> str | None:
    """*Does not drive at night* says less than *does not drive*, though it has more words."""
    if not any(token.kind == "negation" or token.key in _DENYING for token in found.poor):
        return None
    extra = [place for place in found.extra if found.rich[place].carries]
    if not extra:
        return None
    last = found.pairs[-1][1]
    first = found.after(last)
    apart = first is not None and (first.boundary or first.key in found.words.because)
    return None if apart and extra[0] > last else "denies only a part of it"


_WITHOUT = frozenset({"without", "sans", "בלי", "ללא"})
_ALL = frozenset({"all", "everything", "everyone", "everybody", "anything", "anyone", "nothing", "nobody"})
_DENYING = frozenset({"hate", "noteat", "notdrink", "teetotal", "nonsmoker", "!ended"})
_CHECKS = (
    _subject, _owners, _joints, _numbers, _several, _relations, _heads, _names, _turned, _narrowed,
)  # fmt: skip
