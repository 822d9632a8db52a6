"""Whether a later statement ends an earlier one.

Replacing takes the earlier statement out of sight, so this asks for proof: the later one says itself that
something ended, moved or was put off; it denies the very same thing; or both give another value to what a
person has but one of.
"""

from collections.abc import Sequence

from memory.compare.statements import Token
from memory.compare.vocabulary import Vocabulary

_ASIDE = frozenset(
    {"like", "hate", "work", "job", "have", "be", "of", "in", "on", "as", "do", "!ended", "hobby"}
)
_FAVOURITES = frozenset({"favourite", "préféré", "préférée", "favori"})
_ONE_EACH = frozenset(
    {"email", "e-mail", "address", "password", "passport", "surname", "nickname", "adresse", "mail"}
)
_ALSO = frozenset({
    "also", "too", "part-time", "sometimes", "weekend", "weekends", "evening", "evenings", "summer", "winter",
    "aussi", "parfois", "été", "hiver", "week-end", "was", "before", "until", "avant", "formerly", "used",
    "second", "other", "half", "occasionally", "volunteer", "temporarily",
})  # fmt: skip


def conflict(earlier: Sequence[Token], later: Sequence[Token], words: Vocabulary) -> str | None:
    """What makes `later` end `earlier`, or None where nothing proves it."""
    if not earlier or not later or earlier[0].key != later[0].key or earlier[0].kind in ("weak", "negation"):
        return None
    for check in (_ended, _moved, _put_off, _now_otherwise, _denied, _one_valued):
        if reason := check(earlier, later, words):
            return reason
    return None


def _ended(earlier: Sequence[Token], later: Sequence[Token], words: Vocabulary) -> str | None:
    """*No longer drinks coffee* after *drinks three cups of coffee*: all that ended was said before."""
    at = _place(later, "!ended")
    if at is None or _denies(earlier) or any(token.boundary for token in earlier[2:]):
        return None  # what says more than one thing may still be true in the other
    end = next((place for place in range(at + 1, len(later)) if later[place].boundary), len(later))
    if not _same_habit(earlier, later[1:end], words):
        return None
    ended = [token for token in later[1:end] if token.key not in _ASIDE and token.kind != "preposition"]
    if "any" in later[at].surface:  # not … any more
        ended = [token for token in ended if token.kind != "negation"]
    job = any(token.key in ("work", "job") for token in later[at:end])
    known = earlier[1:] if job else _what(earlier)
    if not ended or not all(any(_same_thing(token, other) for other in known) for token in ended):
        return None
    theirs = later[0].possessive and earlier[1].key == "have"
    if earlier[0].possessive != later[0].possessive and not theirs:
        return None
    return f"says that it ended: {later[at].surface!r}"


def _same_habit(earlier: Sequence[Token], ended: Sequence[Token], words: Vocabulary) -> bool:
    """Whether what ended is what was done: who likes coffee no longer may still drink it."""
    done = [token for token in earlier[1:3] if token.key in words.states or token.loose & words.states]
    stopped = [token for token in ended if token.key in words.states or token.loose & words.states]
    if stopped:
        return any(token.matches(other) for token in stopped for other in done)
    if any(token.key == "job" for token in ended):
        return any(token.key == "work" for token in done)
    return bool(done) and done[0].key not in ("like", "fear")


def _same_thing(one: Token, other: Token) -> bool:
    same_kind = (one.kind == "name") == (other.kind == "name")
    return same_kind and one.possessive == other.possessive and one.matches(other)


def _what(tokens: Sequence[Token]) -> Sequence[Token]:
    """What someone does and to what, without where and with whom."""
    joints = [
        place
        for place in range(3, len(tokens))
        if tokens[place].kind == "preposition" or tokens[place].key == "in"
    ]
    return tokens[1 : joints[0]] if joints else tokens[1:]


def _moved(earlier: Sequence[Token], later: Sequence[Token], words: Vocabulary) -> str | None:
    if len(earlier) < 3 or earlier[1].key != "live" or _qualified(earlier) or _anyone(earlier, later):
        return None
    if not (earlier[2].key == "in" or earlier[2].kind == "name" or earlier[2].surface[0] == "ב"):
        return None
    if len(later) < 3 or later[1].key != "!moved" or _qualified(later):
        return None
    place = next(token for token in later[2:] if token.key != "in" or token is later[-1])
    if any(place.matches(token) for token in earlier) or place.kind == "number":
        return None
    if any(token.key in words.regions for token in (*earlier, *later)):
        return None
    return f"says that it changed: {later[1].surface!r}"


def _put_off(earlier: Sequence[Token], later: Sequence[Token], words: Vocabulary) -> str | None:
    at = _place(later, "!shifted")
    if at is None or at + 1 >= len(later) or later[at + 1].kind != "number" or _denies(earlier):
        return None
    known = [token.key for token in earlier]
    event = [token.key for token in later[:at]]
    owners = [token.possessive for token in earlier[:at]] == [token.possessive for token in later[:at]]
    dated = any(token.kind == "number" and token.key != later[at + 1].key for token in earlier[at:])
    return (
        f"says that it was put off to {later[at + 1].surface}"
        if known[:at] == event and owners and dated
        else None
    )


def _now_otherwise(earlier: Sequence[Token], later: Sequence[Token], words: Vocabulary) -> str | None:
    """*Now works as a guide* after *works as a cook*."""
    at = _place(later, "!now")
    if at is None or _anyone(earlier, later) or _qualified(earlier):
        return None
    rest = [token for token in later if token.kind != "change"]
    if len(earlier) < 3 or len(rest) < 3 or not earlier[1].key == rest[1].key in ("live", "work"):
        return None
    if earlier[2].key != rest[2].key:
        return None  # where one works is not as what
    if at > 2 and not later[at].boundary and at != len(later) - 1:
        return None
    regional = any(token.key in words.regions for token in (*earlier, *later))
    differs = not any(rest[-1].matches(token) for token in earlier)
    return f"says that it is so now: {later[at].surface!r}" if differs and not regional else None


def _denied(earlier: Sequence[Token], later: Sequence[Token], words: Vocabulary) -> str | None:
    """The same statement with a *not*, or *likes* for *hates*, right after whom it is about."""
    one, other = _plain(earlier), _plain(later)
    if _owned(one) != _owned(other):
        return None
    if len(one) == len(other) and len(one) > 2:
        changed = [place for place in range(len(one)) if not one[place].matches(other[place])]
        if len(changed) == 1 and {one[changed[0]].key, other[changed[0]].key} == {"like", "hate"}:
            return "the opposite is said now"
    bare = [[token for token in tokens if token.kind != "negation"] for tokens in (one, other)]
    flipped = {len(one) - len(bare[0]), len(other) - len(bare[1])} == {0, 1}
    same = len(bare[0]) == len(bare[1]) and all(a.matches(b) for a, b in zip(*bare, strict=True))
    if not (flipped and same and len(bare[0]) > 1):
        return None
    longer = one if len(one) > len(other) else other
    place = next(at for at, token in enumerate(longer) if token.kind == "negation")
    plainly = longer[place].surface.casefold() in _PLAIN_NOT and place <= 2
    return "the opposite is said now" if plainly else None


def _one_valued(earlier: Sequence[Token], later: Sequence[Token], words: Vocabulary) -> str | None:
    """Both give a value to what one has but one of, and not the same."""
    head = 0
    while head < min(len(earlier), len(later)) and _alike(earlier[head], later[head]):
        head += 1
    values = (earlier[head:], later[head:])
    if not all(values) or any(token.kind in ("negation", "change") for token in (*earlier, *later)):
        return None
    if _qualified(earlier) or _qualified(later):
        return None
    keys = [token.key for token in earlier[:head]]
    reason = f"one value only: {values[0][0].surface!r} / {values[1][0].surface!r}"
    if keys[-1:] == ["be"] and _FAVOURITES & set(keys) and earlier[head - 1].surface.casefold() in _SINGULAR:
        return reason
    if keys[-1:] == ["be"] and len(keys) == 3 and earlier[0].possessive and keys[1] in _ONE_EACH:
        return reason
    if _anyone(earlier, later) or _regional(values, words):
        return None
    named = all(token.kind == "name" for value in values for token in value)
    if keys[1:] in (["live", "in"], ["married"], ["married", "in"]) and named:
        return reason
    if keys[1:] == ["weigh"] and _weights(values):
        return reason
    return reason if keys[1:] == ["work", "as"] else None


_SINGULAR = frozenset({"is", "est"})
_PLAIN_NOT = frozenset({"not", "pas", "לא", "n't"})


def _alike(one: Token, other: Token) -> bool:
    same_joint = one.kind != "weak" or one.surface.casefold() == other.surface.casefold()
    return one.key == other.key and one.possessive == other.possessive and same_joint


def _place(tokens: Sequence[Token], key: str) -> int | None:
    return next((place for place, token in enumerate(tokens) if token.key == key), None)


def _plain(tokens: Sequence[Token]) -> list[Token]:
    """Without what only holds a sentence together: *does not eat* and *eats* differ in the *not*."""
    return [token for token in tokens if token.carries and token.key not in ("do", "ne", "n'")]


def _owned(tokens: Sequence[Token]) -> list[str]:
    return [token.key for token in tokens if token.possessive]


def _denies(tokens: Sequence[Token]) -> bool:
    return any(token.kind in ("negation", "change") or token.key == "hate" for token in tokens)


def _qualified(tokens: Sequence[Token]) -> bool:
    """Whether it holds at some time, or beside something else."""
    return any(
        token.surface.casefold() in _ALSO or (token.kind == "number" and not token.key[0].isdigit())
        for token in tokens
    ) or any(token.key.isdigit() and len(token.key) == 4 for token in tokens)


def _anyone(earlier: Sequence[Token], later: Sequence[Token]) -> bool:
    """Whether it is about someone who is not named, but told by whose relative they are."""
    return any(token.possessive for token in (earlier[0], later[0])) or earlier[0].key != later[0].key


def _regional(values: tuple[Sequence[Token], ...], words: Vocabulary) -> bool:
    return any(token.key in words.regions for value in values for token in value)


def _weights(values: tuple[Sequence[Token], ...]) -> bool:
    numbers = all(value[0].kind == "number" for value in values)
    return numbers and [token.key for token in values[0][1:]] == [token.key for token in values[1][1:]]
