"""What holds for whom, as plain Python: the table "what happens to a fact" of docs/architecture.md.

A link is a fact and an owner. It holds unless it is hidden, its fact has expired, or something that replaced
it for this owner still does.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime

from memory.audience import Audience, Place, owners_of, user_key

WHILE, PAST, ALWAYS = "while it holds", "past its expiry", "always"
AGAIN = "told again"
"""As `WHILE`, by a fact in the same words."""


@dataclass(eq=False)
class Fact:
    word: str
    teller: str
    until: datetime | None
    created: datetime
    id: str = ""
    links: set[str] = field(default_factory=set)
    stated_by: set[str] = field(default_factory=set)

    def told_by(self, owners: Collection[str]) -> set[str]:
        return {owner for owner in owners if owner.startswith("user:")} | {user_key(self.teller)}


Link = tuple[Fact, str]


@dataclass
class Forgetting:
    person: str
    links: set[Link]
    messages: set[str]
    until: datetime | None
    """When it is purged; None: never."""


@dataclass
class Model:
    now: Callable[[], datetime]
    facts: list[Fact] = field(default_factory=list)
    pairs: dict[tuple[Fact, Fact, str], str] = field(default_factory=dict)
    """(old, new, owner): how long new replaces old for this owner."""
    messages: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    """Who wrote each message that is left, and where."""
    forgettings: dict[str, Forgetting] = field(default_factory=dict)

    # What holds.

    def holds(self, fact: Fact, owner: str, without: Fact | None = None) -> bool:
        """Whether the link holds; with `without`, whether it would if that one were taken back."""
        if owner not in fact.links or self.is_hidden(fact, owner) or self.expired(fact):
            return False
        news = self.news(fact, owner)
        return not any(
            self.still(new, owner, lasts)
            for new, lasts in news.items()
            if new is not without or lasts == AGAIN
        )

    def still(self, new: Fact, owner: str, lasts: str) -> bool:
        lives = not self.is_hidden(new, owner) and (lasts == PAST or not self.expired(new))
        return lasts == ALWAYS or lives

    def news(self, fact: Fact, owner: str) -> dict[Fact, str]:
        return {
            new: lasts for (old, new, whose), lasts in self.pairs.items() if (old, whose) == (fact, owner)
        }

    def olds(self, fact: Fact, owner: str) -> dict[Fact, str]:
        return {
            old: lasts for (old, new, whose), lasts in self.pairs.items() if (new, whose) == (fact, owner)
        }

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
        owners, same = owners_of(new.teller, Place.parse(place)), self.worded(new.word)
        known = {owner: fact for owner in owners for fact in same if self.holds(fact, owner)}
        here = [fact for fact in self.readable(new.teller, place) if fact.word == new.word]
        for fact in {*known.values(), *here}:
            fact.stated_by.add(message)
        if not here:
            self.add(new, owners - known.keys(), message)
        for owner in owners - known.keys() if here else ():  # it is theirs, whatever happened to it before
            for one in self.forgettings.values():
                one.links.discard((here[0], owner))
            self.pairs = {pair: one for pair, one in self.pairs.items() if pair[::2] != (here[0], owner)}
            here[0].links.add(owner)
            for fact in same:
                if fact is not here[0] and owner in fact.links:
                    self.replace(fact, here[0], owner, AGAIN)

    def add(self, new: Fact, owners: Collection[str], message: str, never: Collection[str] = ()) -> None:
        """A new fact, which takes the place of the same words, but for those for whom it `never` held."""
        new.stated_by.add(message)
        new.links |= set(owners)
        for fact in self.worded(new.word):
            for owner in fact.links & set(owners) - set(never):
                self.replace(fact, new, owner, AGAIN)
        self.facts.append(new)

    def correct(self, new: Fact, old: Fact, place: str | None, lasts: str, message: str) -> None:
        """Nobody speaks for somebody else. With `ALWAYS`, the new fact is the older statement."""
        owners, held, own = owners_of(new.teller, Place.parse(place)), self.owners(old), user_key(new.teller)
        theirs = owners & (held if old.told_by(held) == {own} else held & {own})
        for owner in theirs:
            self.replace(*((new, old) if lasts == ALWAYS else (old, new)), owner, lasts)
        self.add(new, owners, message, never=theirs if lasts == ALWAYS else ())

    def replace(self, old: Fact, new: Fact, owner: str, lasts: str) -> None:
        """Also what led to the old one, by all that the new one led to, with the flag of each last hop."""
        after = {new: lasts} | self.news(new, owner)
        for before in (old, *self.olds(old, owner)):
            for later, flag in after.items():
                if before is not later:
                    self.pairs.setdefault((before, later, owner), flag)

    def undo(self, person: str, place: str | None, new: Fact) -> bool:
        """Take the fact back for all for whom that brings something back. False if there is nobody."""
        own, held = user_key(person), self.owners(new)
        owners = {one for one in Audience.of(person, Place.parse(place)).keys if self.brings_back(new, one)}
        owners = owners if new.told_by(held) == {own} else owners & {own}
        for owner in owners | {own} if owners else ():
            back = self.brings_back(new, owner)
            for old, lasts in self.olds(new, owner).items() if back else ():
                if lasts not in (ALWAYS, AGAIN):
                    del self.pairs[old, new, owner]
            for old in back:
                self.replace(new, old, owner, ALWAYS)
        return bool(owners)

    def brings_back(self, new: Fact, owner: str) -> list[Fact]:
        olds = self.olds(new, owner).items() if self.holds(new, owner) else ()
        return [old for old, lasts in olds if lasts != ALWAYS and self.holds(old, owner, new)]

    def lost(self, facts: Iterable[Fact], person: str) -> set[Link]:
        """What goes of these facts with the person: all, or, where somebody else still says so, their own."""
        own, found = user_key(person), set[Link]()
        for fact in facts:
            tellers, places = (
                fact.told_by(fact.links),
                {one for one in fact.links if one.startswith("place:")},
            )
            still = {one for one in tellers - {own} if not self.gave_up(fact, one, places)}
            gone = fact.links if tellers == {own} else {own} | (set() if still else places)
            found |= {(fact, owner) for owner in gone & fact.links if own in tellers}
        return found

    def gave_up(self, fact: Fact, teller: str, places: set[str]) -> bool:
        news = self.news(fact, teller).items()
        return any(new.links & places and self.still(new, teller, lasts) for new, lasts in news)

    def forget(self, id: str, person: str, fact: Fact, until: datetime | None, among: str = "") -> None:
        """A fact goes with what it had replaced, for each owner; `among`: for those that begin so."""
        named = {link for link in self.lost([fact], person) if link[1].startswith(among)}
        olds = {(old, owner) for _, owner in named for old in self.olds(fact, owner)}
        links = named | (olds & self.lost({old for old, _ in olds}, person))
        whole = {one for one, _ in links if one is fact or all((one, owner) in links for owner in one.links)}
        said = {message for one in whole for message in one.stated_by} if until else set()
        theirs = {message for message in said if self.messages.get(message, ("",))[0] == person}
        self.forgettings[id] = Forgetting(person, links, theirs, until)

    def forget_message(self, id: str, person: str, message: str, until: datetime | None) -> None:
        """A message goes with what it alone states. Without an end it is an edit: other places keep it."""
        left = set(self.visible(person)) - {message}
        alone = [fact for fact in self.facts if message in fact.stated_by and not fact.stated_by & left]
        there = owners_of(person, Place.parse(self.messages[message][1]))
        links = {link for link in self.lost(alone, person) if until or link[1] in there}
        self.forgettings[id] = Forgetting(person, links, {message}, until)

    def make_private(self, id: str, person: str, fact: Fact) -> bool:
        owners, own = self.owners(fact), user_key(person)
        if fact.told_by(owners) != {own} or not any(owner.startswith("place:") for owner in owners):
            return False
        if not any(self.holds(one, own) for one in self.worded(fact.word)):
            fact.links.add(own)
            for one in self.worded(fact.word):
                if one is not fact and own in one.links:
                    self.replace(one, fact, own, AGAIN)
        self.forget(id, person, fact, None, among="place:")
        return True

    def erase(self, person: str) -> None:
        self.delete(self.lost(self.facts, person), person)
        self.messages = {id: said for id, said in self.messages.items() if said[0] != person}
        self.forgettings = {id: one for id, one in self.forgettings.items() if one.person != person}

    def purge(self) -> None:
        """Delete what has expired, and what was forgotten and can no longer be undone."""
        for fact in self.facts:
            if self.expired(fact):
                fact.links.clear()
        for id in [id for id, one in self.forgettings.items() if one.until and one.until <= self.now()]:
            one = self.forgettings.pop(id)
            self.delete(one.links, one.person)
            self.messages = {id: said for id, said in self.messages.items() if id not in one.messages}

    def delete(self, links: Collection[Link], person: str) -> None:
        """Delete links; whoever else told a fact is its teller then."""
        for (old, new, owner), lasts in list(self.pairs.items()):
            if (old, owner) in links or ((new, owner) in links and lasts != ALWAYS):
                del self.pairs[old, new, owner]
        for fact, owner in links:
            fact.links.discard(owner)
        for fact in {fact for fact, _ in links}:
            people = [(bool(self.news(fact, one)), one) for one in fact.links if one.startswith("user:")]
            if fact.teller == person and user_key(person) not in fact.links and people:
                fact.teller = min(people)[1].removeprefix("user:")

    def worded(self, word: str) -> list[Fact]:
        return [fact for fact in self.facts if fact.word == word]
