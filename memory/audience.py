"""Who may read what.

A memory has owners, each a key: ``user:U``, ``place:P`` or ``global``. A reader has an `Audience`: the
keys it may read. A memory is readable when one of its owners is among them, and every read takes an
`Audience`; there is no read without one.

Places nest, outermost first, so ``place:acme/general/thread-7`` lies in ``place:acme/general``.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote, unquote

GLOBAL = "global"


def user_key(user: str) -> str:
    return f"user:{user}"


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is said: the names from the outermost in. Empty means in private."""

    path: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str | None) -> "Place":
        """``None``, ``""`` and ``dm`` are private; ``acme/general`` is the channel general in acme. Nothing
        else is private, be it ever so odd a name."""
        if text is None or text.strip().lower() in {"", "dm"}:
            return cls()
        names = tuple(unquote(name) for name in (part.strip() for part in text.split("/")) if name)
        return cls(names or (text.strip(),))

    @property
    def private(self) -> bool:
        return not self.path

    @property
    def key(self) -> str:
        """The owner key. Names are quoted so that no name can pretend to be a path."""
        return "place:" + "/".join(quote(name, safe="") for name in self.path)

    @property
    def stored(self) -> str:
        """As the database stores it: the key, or the empty string in private. `of_key` reads it."""
        return "" if self.private else self.key

    @classmethod
    def of_key(cls, key: str) -> "Place":
        """The place of an owner key; the empty one is private."""
        names = key.removeprefix("place:")
        return cls(tuple(unquote(name) for name in names.split("/")) if names else ())

    def containing(self) -> tuple["Place", ...]:
        """This place and each that contains it, innermost first."""
        return tuple(Place(self.path[:depth]) for depth in range(len(self.path), 0, -1))

    def __str__(self) -> str:
        """As `parse` reads it."""
        if not self.path:
            return "dm"
        text = "/".join(name.replace("%", "%25").replace("/", "%2F") for name in self.path)
        return f"%{ord(text[0]):02X}{text[1:]}" if text.lower() == "dm" else text


PRIVATE = Place()


@dataclass(frozen=True, slots=True)
class Audience:
    """The owner keys a reader may read. Nobody's is empty: an anonymous turn reads nothing."""

    keys: frozenset[str]

    @classmethod
    def of(cls, user: str | None, place: Place | None = None) -> "Audience":
        """What may be read when `user` speaks in `place` (private by default)."""
        if user is None:
            return cls(frozenset())
        if place is None or place.private:
            return cls(frozenset({user_key(user), GLOBAL}))
        return cls(frozenset({p.key for p in place.containing()} | {GLOBAL}))

    def may_read(self, owners: Iterable[str]) -> bool:
        return not self.keys.isdisjoint(owners)


def owners_of(user: str, place: Place | None = None) -> frozenset[str]:
    """Whose a memory is that was learned from `user` in `place`."""
    if place is None or place.private:
        return frozenset({user_key(user)})
    return frozenset({place.key, user_key(user)})
