"""What should hold for whom, as plain Python: the table "what happens to a fact" of docs/architecture.md.

A link is a fact and an owner. It holds unless it is hidden, its fact has expired, or something that replaced
it for this owner still does.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime

from memory.audience import Audience, Place, owners_of, user_key

WHILE, PAST, ALWAYS = "while it holds", "past its expiry", "always"


@dataclass(eq=False)
class Fact:
    word: str
    teller: str
    until: datetime | None
    created: datetime
    id: str = ""
    links: set[str] = field(default_factory=set)
    stated_by: set[str] = field(default_factory=set)
    """Ids of messages."""

    @property
    def tellers(self) -> set[str]:
        return {owner for owner in self.links if owner.startswith("user:")} | {user_key(self.teller)}


Link = tuple[Fact, str]


@dataclass
class Forgetting:
    person: str
    links: set[Link]
    messages: set[str]
    until: datetime | None = None
    """When it is purged; None: never."""


@dataclass
class Model:
    now: Callable[[], datetime]
    facts: list[Fact] = field(default_factory=list)
    pairs: dict[tuple[Fact, Fact, str], str] = field(default_factory=dict)
    """(old, new, owner): how long new replaces old for this owner."""
    told_again: set[tuple[Fact, Fact, str]] = field(default_factory=set)
    """The pairs of two facts in the same words."""
    messages: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    """Who wrote each message that is left, and where."""
    forgettings: dict[str, Forgetting] = field(default_factory=dict)

    # What holds.

    def holds(self, fact: Fact, owner: str, without: Fact | None = None) -> bool:
        """Whether the link holds; with `without`, whether it would if that fact replaced nothing."""
        there = owner in fact.links and not self.is_hidden(fact, owner) and not self.expired(fact)
        return there and not any(
            self._still(new, owner, lasts)
            for (old, new, whose), lasts in self.pairs.items()
            if old is fact and whose == owner and (new is not without or (old, new, owner) in self.told_again)
        )

    def _still(self, new: Fact, owner: str, lasts: str) -> bool:
        if lasts == ALWAYS:
            return True
        return not self.is_hidden(new, owner) and (lasts == PAST or not self.expired(new))

    def is_hidden(self, fact: Fact, owner: str) -> bool:
        return any((fact, owner) in one.links for one in self.forgettings.values())

    def expired(self, fact: Fact) -> bool:
        return fact.until is not None and fact.until <= self.now()

    def owners(self, fact: Fact) -> set[str]:
        return {owner for owner in fact.links if self.holds(fact, owner)}

    def readable(self, person: str, place: str | None) -> list[Fact]:
        keys = Audience.of(person, Place.parse(place)).keys
        return [fact for fact in self.facts if self.owners(fact) & keys]

    def visible(self, person: str) -> list[str]:
        """The person's messages that are not hidden."""
        hidden = {id for one in self.forgettings.values() for id in one.messages}
        return [id for id, (author, _) in self.messages.items() if author == person and id not in hidden]

    # What happens.

    def tell(self, new: Fact, place: str | None, message: str) -> None:
        owners = owners_of(new.teller, Place.parse(place))
        known = {
            owner: fact for owner in owners for fact in self._worded(new.word) if self.holds(fact, owner)
        }
        keys = Audience.of(new.teller, Place.parse(place)).keys
        here = next((fact for fact in known.values() if self.owners(fact) & keys), None)
        for fact in {*known.values(), *([here] if here else [])}:
            fact.stated_by.add(message)
        if here is None:
            self.add(new, owners - known.keys(), message)
        for owner in owners - known.keys() if here else ():
            self.link(here, owner)

    def add(self, new: Fact, owners: Collection[str], message: str, never: Collection[str] = ()) -> None:
        """A new fact; who had these words before has them from this one now, but those for whom it `never`
        held."""
        new.stated_by.add(message)
        new.links |= set(owners)
        for fact in self._worded(new.word):
            for owner in fact.links & set(owners) - set(never):
                self.replace(fact, new, owner, WHILE, again=True)
        self.facts.append(new)

    def link(self, fact: Fact, owner: str) -> None:
        """The fact is the owner's, whatever happened to it before."""
        for one in self.forgettings.values():
            one.links.discard((fact, owner))
        self.pairs = {pair: lasts for pair, lasts in self.pairs.items() if pair[::2] != (fact, owner)}
        fact.links.add(owner)

    def correct(self, new: Fact, old: Fact, place: str | None, lasts: str, message: str) -> None:
        """Nobody speaks for somebody else. With `ALWAYS`, the new fact is the older statement."""
        owners = owners_of(new.teller, Place.parse(place))
        theirs = self.decides(new.teller, old) & owners
        self.add(new, owners, message, never=theirs if lasts == ALWAYS else ())
        for owner in theirs:
            self.replace(*((new, old) if lasts == ALWAYS else (old, new)), owner, lasts)

    def decides(self, person: str, fact: Fact) -> set[str]:
        owners = self.owners(fact)
        others = {owner for owner in owners if owner.startswith("user:")} | {user_key(fact.teller)}
        return owners if others == {user_key(person)} else owners & {user_key(person)}

    def replace(self, old: Fact, new: Fact, owner: str, lasts: str, *, again: bool = False) -> None:
        """Also what led to the old one, by all that the new one led to, with the flag of each last hop."""
        after = {new: lasts} | {n: f for (o, n, whose), f in self.pairs.items() if (o, whose) == (new, owner)}
        for before in [old, *self.olds(old, owner)]:
            for later, flag in after.items():
                if before is not later and (before, later, owner) not in self.pairs:
                    self.pairs[before, later, owner] = flag
                    self.told_again |= {(before, later, owner)} if again else set()

    def olds(self, new: Fact, owner: str) -> list[Fact]:
        return [old for old, by, whose in self.pairs if (by, whose) == (new, owner)]

    def undo(self, person: str, place: str | None, new: Fact) -> bool:
        """Take the fact back for all for whom that brings something back. False if there is nobody."""
        own, keys = user_key(person), Audience.of(person, Place.parse(place)).keys
        owners = {owner for owner in keys if self._brings_back(new, owner)}
        if self.decides(person, new) != self.owners(new):
            owners &= {own}
        if not owners:
            return False
        for owner in owners | {own}:
            if back := self._brings_back(new, owner):
                for pair in [pair for pair in self.pairs if pair[1:] == (new, owner)]:
                    if self.pairs[pair] != ALWAYS and pair not in self.told_again:
                        del self.pairs[pair]
                for old in back:
                    self.replace(new, old, owner, ALWAYS)
        return True

    def _brings_back(self, new: Fact, owner: str) -> list[Fact]:
        if not self.holds(new, owner):
            return []
        pairs = [(old, new, owner) for old in self.olds(new, owner)]
        return [pair[0] for pair in pairs if self.pairs[pair] != ALWAYS and self.holds(pair[0], owner, new)]

    def lost(self, facts: Iterable[Fact], person: str) -> set[Link]:
        """What goes of these facts with the person: all, or, where somebody else still says so, their own."""
        own, found = user_key(person), set[Link]()
        for fact in facts:
            if own in fact.tellers:
                places = {owner for owner in fact.links if owner.startswith("place:")}
                still = {t for t in fact.tellers - {own} if not self._gave_up(fact, t, places)}
                gone = {own} | (set() if still else places) if fact.tellers != {own} else fact.links
                found |= {(fact, owner) for owner in gone & fact.links}
        return found

    def _gave_up(self, fact: Fact, teller: str, places: set[str]) -> bool:
        newer = [new for old, new, owner in self.pairs if old is fact and owner == teller]
        return any(new.links & {place for place in places if self.holds(fact, place)} for new in newer)

    def forget(self, id: str, person: str, fact: Fact, until: datetime, *, owners: str = "") -> bool:
        """A fact goes with what it had replaced, for each owner; `owners`: only for those that begin so."""
        named = {link for link in self.lost([fact], person) if link[1].startswith(owners)}
        olds = {(old, owner) for _, owner in named for old in self.olds(fact, owner)}
        links = named | (olds & self.lost({old for old, _ in olds}, person))
        whole = {one for one, _ in links if one is fact or all((one, owner) in links for owner in one.links)}
        said = {message for one in whole for message in one.stated_by}
        self.forgettings[id] = Forgetting(person, links, said & {*self._written_by(person)}, until)
        return bool(named)

    def forget_message(self, id: str, person: str, message: str, until: datetime | None) -> None:
        """A message goes with what it alone states. Without an end it is an edit: other places keep it."""
        left = set(self.visible(person)) - {message}
        alone = [fact for fact in self.facts if message in fact.stated_by and not fact.stated_by & left]
        links = self.lost(alone, person)
        if until is None:
            there = owners_of(person, Place.parse(self.messages[message][1]))
            links = {link for link in links if link[1] in there}
        self.forgettings[id] = Forgetting(person, links, {message}, until)

    def make_private(self, id: str, person: str, fact: Fact) -> bool:
        owners, own = self.owners(fact), user_key(person)
        alone = {owner for owner in owners if owner.startswith("user:")} | {user_key(fact.teller)} == {own}
        if not alone or not any(owner.startswith("place:") for owner in owners):
            return False
        if own not in fact.links and not any(self.holds(one, own) for one in self._worded(fact.word)):
            fact.links.add(own)
        self.forget(id, person, fact, self.now(), owners="place:")
        self.forgettings[id].messages, self.forgettings[id].until = set(), None
        return True

    def erase(self, person: str) -> None:
        self._delete(self.lost(self.facts, person), person)
        self.messages = {id: said for id, said in self.messages.items() if said[0] != person}
        self.forgettings = {id: one for id, one in self.forgettings.items() if one.person != person}

    def purge(self) -> None:
        """Delete what has expired, and what was forgotten and can no longer be undone."""
        for fact in self.facts:
            if self.expired(fact):
                fact.links.clear()
        for id in [id for id, one in self.forgettings.items() if one.until and one.until <= self.now()]:
            one = self.forgettings.pop(id)
            self._delete(one.links, one.person)
            self.messages = {id: said for id, said in self.messages.items() if id not in one.messages}

    def _delete(self, links: Collection[Link], person: str) -> None:
        self.pairs = {
            (old, new, owner): lasts
            for (old, new, owner), lasts in self.pairs.items()
            if (old, owner) not in links and ((new, owner) not in links or lasts == ALWAYS)
        }
        for fact, owner in links:
            fact.links.discard(owner)
        for fact in {fact for fact, _ in links}:
            if fact.teller == person and user_key(person) not in fact.links:
                heirs = sorted((not self.holds(fact, o), o) for o in fact.links if o.startswith("user:"))
                fact.teller = heirs[0][1].removeprefix("user:") if heirs else ""

    def _worded(self, word: str) -> list[Fact]:
        return [fact for fact in self.facts if fact.word == word]

    def _written_by(self, person: str) -> list[str]:
        return [id for id, (author, _) in self.messages.items() if author == person]
