"""One statement laid along another, word by word, in order."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memory.compare.statements import Token
from memory.compare.vocabulary import Vocabulary

_EXISTS = frozenset({"have", "be", "own", "play", "drive", "raise", "take", "joue"})
_VAGUE = frozenset({"sometimes", "parfois", "לפעמים"})


@dataclass(frozen=True, slots=True)
class Alignment:
    """The poorer statement laid along the richer one."""

    poor: Sequence[Token]
    rich: Sequence[Token]
    pairs: tuple[tuple[int, int], ...]
    """Places in `poor` and `rich` that match, rising in both."""
    words: Vocabulary

    @property
    def used(self) -> frozenset[int]:
        """Places in `rich` that `poor` has too."""
        return frozenset(there for _, there in self.pairs)

    @property
    def extra(self) -> list[int]:
        """Places in `rich` that `poor` says nothing of."""
        used = self.used
        return [place for place in range(len(self.rich)) if place not in used]

    def after(self, place: int) -> Token | None:
        """What follows in `rich`."""
        return self.rich[place + 1] if place + 1 < len(self.rich) else None


def align(poor: Sequence[Token], rich: Sequence[Token], words: Vocabulary) -> Alignment | None:
    """None where `rich` lacks something of `poor`, or has it in another order."""
    anchors: list[tuple[int, int]] = []
    # Who has a dog has a pet; who is allergic to almonds need not be to nuts.
    existing = any(token.key in _EXISTS for token in poor)
    place = 0
    for here, token in enumerate(poor):
        if not token.carries or _told_exactly(token, rich, words):
            continue
        found = _find(rich, place, token, words, existing)
        if found is None:
            return None
        anchors.append((here, found))
        place = found + 1
    if not anchors:
        return None
    return Alignment(poor, rich, tuple(_with_weak(poor, rich, anchors)), words)


def _told_exactly(token: Token, rich: Sequence[Token], words: Vocabulary) -> bool:
    """Whether the richer one says when, where this says *sometimes*."""
    if token.key not in _VAGUE or any(there.matches(token) for there in rich):
        return False
    return any(_says(there, token, words) for there in rich)


def _all_of(general: Token, rich: Sequence[Token], at: int) -> bool:
    """Whether the general word means all of its kind, and the special one a single thing: children, a son."""
    several = general.surface.casefold().endswith(("s", "children"))
    counted = at > 0 and rich[at - 1].kind == "number"
    return several and not counted and not rich[at].surface.casefold().endswith("s")


def _find(rich: Sequence[Token], start: int, token: Token, words: Vocabulary, existing: bool) -> int | None:
    """Where the richer one says it, rather in the same word than in a special one."""
    plainly = next((at for at in range(start, len(rich)) if rich[at].matches(token)), None)
    if plainly is not None:
        return plainly
    if not token.key.startswith("month") and not existing:
        return None
    counted = [at for at in range(start, len(rich)) if _says(rich[at], token, words)]
    return next((at for at in counted if not _all_of(token, rich, at)), None)


def _with_weak(
    poor: Sequence[Token], rich: Sequence[Token], anchors: list[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """The anchors, and between each two the joining words that both have."""
    before = (-1, -1)
    for anchor in [*anchors, (len(poor), len(rich))]:
        free = list(range(before[1] + 1, anchor[1]))
        for here in range(before[0] + 1, anchor[0]):
            same = [there for there in free if rich[there].key == poor[here].key]
            if same:
                there = same[-1] if poor[here].key in ("in", "on", "as", "of") else same[0]
                yield here, there
                free = [place for place in free if place > there]
        if anchor[0] < len(poor):
            yield anchor
        before = anchor


def _says(special: Token, general: Token, words: Vocabulary) -> bool:
    if general.key.startswith("month"):
        return special.key.startswith(f"date{general.key[5:]}-")
    if general.kind == "name" or special.kind == "name":
        return False
    return any(
        special.key == known
        or known in special.loose
        or (known == "weekday" and special.key.startswith(known))
        for known in words.covers.get(general.key, ())
    )
