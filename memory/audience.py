"""Decide who may read what.

A memory has owners, each a key: ``user:U``, ``place:P`` or ``global``. A reader has an `Audience`, the keys
it may read; every read takes one. Places nest, outermost first: ``place:acme/general/thread-7`` lies in
``place:acme/general``.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from urllib.parse import quote, unquote

GLOBAL = "global"
NOTHING_BESIDES: Mapping[str, str] = MappingProxyType({})


def user_key(user: str) -> str:
    return f"user:{user}"


@dataclass(frozen=True, slots=True)
class Place:
    """A place where people talk: its names, outermost first. Empty means a private conversation."""

    path: tuple[str, ...] = ()
    name: str = field(default="", compare=False)
    """What people call it, where the path has only ids."""

    @classmethod
    def parse(cls, text: str | None) -> "Place":
        """Read a place: ``acme/general`` is the channel general in acme. Only ``None``, ``""`` and ``dm`` are
        private."""
        if text is None or text.strip().lower() in {"", "dm"}:
            return cls()
        names = tuple(unquote(name) for name in (part.strip() for part in text.split("/")) if name)
        return cls(names or (text.strip(),))

    @property
    def private(self) -> bool:
        return not self.path

    @property
    def key(self) -> str:
        """Return the owner key, ``place:acme/general``, with names percent-encoded."""
        return "place:" + "/".join(quote(name, safe="") for name in self.path)

    @property
    def stored(self) -> str:
        """Return the text in the database: the key, or "" for private. `of_key` parses it."""
        return "" if self.private else self.key

    @classmethod
    def of_key(cls, key: str) -> "Place":
        """Return the place with this owner key; the empty key is private."""
        names = key.removeprefix("place:")
        return cls(tuple(unquote(name) for name in names.split("/")) if names else ())

    def containing(self) -> tuple["Place", ...]:
        """Return this place and each that contains it, innermost first."""
        return tuple(Place(self.path[:depth]) for depth in range(len(self.path), 0, -1))

    def __str__(self) -> str:
        """Return the text that `parse` reads back to this place."""
        if not self.path:
            return "dm"
        text = "/".join(name.replace("%", "%25").replace("/", "%2F") for name in self.path)
        return f"%{ord(text[0]):02X}{text[1:]}" if text.lower() == "dm" else text


PRIVATE = Place()


@dataclass(frozen=True, slots=True)
class Audience:
    """The owner keys that a reader may read. With no keys, as in an anonymous turn, nothing can be read."""

    keys: frozenset[str]
    besides: Mapping[str, str] = field(default_factory=dict, compare=False)
    """The keys that are not the reader's own, each with a label: their linked accounts, and places that they
    may read in private."""

    @classmethod
    def of(
        cls, user: str | None, place: Place | None = None, besides: Mapping[str, str] = NOTHING_BESIDES
    ) -> "Audience":
        """Return the audience of `user` in `place` (None: in private). The keys in `besides` count only in
        private."""
        if user is None:
            return cls(frozenset())
        if place is None or place.private:
            return cls(frozenset({user_key(user), GLOBAL, *besides}), besides)
        return cls(frozenset({p.key for p in place.containing()} | {GLOBAL}))

    @property
    def without_places(self) -> "Audience":
        """Return the audience without the places that are read in private."""
        people = {key: name for key, name in self.besides.items() if not key.startswith("place:")}
        return Audience(self.keys - (self.besides.keys() - people.keys()), people)

    def may_read(self, owners: Iterable[str]) -> bool:
        return not self.keys.isdisjoint(owners)

    def origin(self, owners: Iterable[str]) -> str:
        """Return the label of the linked account or other place that these owners are; "" for rows of the
        reader, of everybody, or of the place they are in."""
        named = sorted(owners)
        if not (self.keys - self.besides.keys()).isdisjoint(named):
            return ""
        return next((self.besides[owner] for owner in named if owner in self.besides), "")


def owners_of(user: str, place: Place | None = None) -> frozenset[str]:
    """Return the owner keys of a memory that was learned from `user` in `place`."""
    if place is None or place.private:
        return frozenset({user_key(user)})
    return frozenset({place.key, user_key(user)})
