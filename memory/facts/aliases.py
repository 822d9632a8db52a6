"""One person, several names: "dev is really called Mickael", "call me Mick".

A link between two names belongs to the memory that says so: it holds for those who may read that memory, and
ends when it is deleted, replaced or undone. `linked` reads plain sentences in English, French, Hebrew,
Spanish and German; models are told to write "A is also called B" for anything else. Nobody links a name that
somebody else bears there (`names_of_others`).
"""

import re

from sqlalchemy import ColumnElement, or_, select, union
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import Place
from memory.sql.tables import context_entries, memories, messages
from memory.text.names import fold

_NAME = r"(?P<{0}>[^\W\d_][\w'’.-]*(?: [^\W\d_][\w'’.-]*){{0,2}}?)"
_A, _B = _NAME.format("a"), _NAME.format("b")
_END = (
    r"(?=\s*(?:$|[.,;:!?)\]…]|and\b|et\b|y\b|und\b|but\b|mais\b|please\b|from now on|from today|désormais))"
)

_ABOUT_OTHERS = tuple(
    re.compile(rf"(?:^|[.,;:!?(]\s*|\b(?:and|et|y|und|that|que)\s+){pattern}{_END}", re.IGNORECASE)
    for pattern in (
        # English
        rf"{_A}(?: is|'s|’s| was) (?:really |actually |also |in fact |in reality )?(?:called|named) {_B}",
        rf"{_A}(?: is|'s|’s) (?:also|better) known as {_B}",
        rf"{_A}(?:'s|’s) (?:real|actual|full|first|other|nick) ?name is (?:really |actually )?{_B}",
        rf"{_A}(?: is|'s|’s) (?:short for|a nickname for|the nickname of|another name for) {_B}",
        rf"{_A} (?:goes by|prefers to be called|likes to be called|wants to be called) {_B}",
        rf"(?:people|everyone|everybody|we all|we|they|friends) calls? {_A} {_B}",
        rf"{_A} and {_B} are (?:really |actually )?(?:the same person|one and the same)",
        # French
        rf"{_A} s['’]appelle (?:en réalité|en fait|vraiment|aussi|réellement) {_B}",
        rf"le (?:vrai |sur)?(?:nom|prénom) (?:de |d['’]){_A},? (?:est|c['’]est) (?:en fait )?{_B}",
        rf"{_A} est (?:le surnom de|le diminutif de|aussi connue? sous le nom de) {_B}",
        rf"on (?:appelle|surnomme) {_A} {_B}",
        rf"{_A} se fait appeler {_B}",
        # Hebrew
        rf"{_A} (?:נקראת?|קוראים לו|קוראים לה) (?:בעצם|באמת|גם|למעשה) {_B}",
        rf"קוראים ל[-־]?{_A} (?:בעצם|באמת|גם|למעשה) {_B}",
        rf"(?:השם האמיתי|הכינוי|השם) של {_A} (?:הוא|זה) (?:בעצם )?{_B}",
        # Spanish, German
        rf"{_A} se llama (?:en realidad|realmente|también) {_B}",
        rf"{_A} heißt (?:eigentlich|in wirklichkeit|auch) {_B}",
    )
)
_ABOUT_ME = tuple(
    re.compile(rf"(?:^|[.,;:!?(]\s*|\b(?:and|but|just|please|et|so)\s+){pattern}{_END}", re.IGNORECASE)
    for pattern in (
        rf"(?:you can |please )?call me {_B}",
        rf"(?:my friends|people|everyone|everybody|they|friends) calls? me {_B}",
        rf"my (?:real |actual |full |nick|other )?name is {_B}",
        rf"i(?: am|'m|’m) also (?:called|known as) {_B}",
        rf"i (?:go by|prefer to be called|want to be called|like to be called) {_B}",
        rf"(?:tu peux m['’]appeler|appelle[sz]?[- ]moi|vous pouvez m['’]appeler) {_B}",
        rf"on m['’](?:appelle|a surnommée?) {_B}",
        rf"(?:mon (?:vrai nom|surnom|vrai prénom|nom|prénom),? (?:est|c['’]est)|je m['’]appelle) {_B}",
        rf"תקר(?:א|אי|או) לי {_B}",
        rf"(?:(?:כולם |החברים )?קוראים לי(?: גם| בעצם)?|השם שלי(?: הוא)?|שמי) {_B}",
        rf"(?:llámame|puedes llamarme|me llaman|me llamo) {_B}",
        rf"(?:nenn mich|nennt mich|man nennt mich|ich heiße) {_B}",
    )
)

_NO_NAME = frozenset(
    # Words in the place of a name that are none: "it is called", "call me back", "we call it", "Ana's dog".
    """a an the my your his her its our their this that these those it he she they we you i me him them
    us who which what where there here one someone somebody nobody everyone everybody people not no
    never always just back later tomorrow today tonight now soon again maybe when if at on in after
    before asap anytime sometimes crazy old please up out by for to of and or but with from le la les
    l un une des mon ma mes ton ta tes son sa ses notre votre leur ce cet cette ces il elle on nous
    vous tu je ça cela demain ce soir plus tard quand si au à aujourd'hui bientôt vite זה זו הוא היא
    אני אתה את שלי מחר היום אחר כך el los las mi tu su mañana luego der die das mein meine dein sein
    ihr morgen später""".split()
)


def linked(text: str, speaker: str | None = None) -> tuple[tuple[str, str], ...]:
    """Pairs of names that the text gives to one person. `speaker` is the "me" of "call me Mick"."""
    pairs = [
        (match["a"], match["b"]) for pattern in _ABOUT_OTHERS for match in pattern.finditer(_one_line(text))
    ]
    if speaker and _is_name(speaker):
        pairs += [
            (speaker, match["b"]) for pattern in _ABOUT_ME for match in pattern.finditer(_one_line(text))
        ]
    clean = [(_bare(a), _bare(b)) for a, b in pairs]
    return tuple(
        dict.fromkeys((a, b) for a, b in clean if _is_name(a) and _is_name(b) and fold(a) != fold(b))
    )


def _one_line(text: str) -> str:
    return " ".join(text[:2_000].split())


def _bare(name: str) -> str:
    return name.strip(" .'’-")


def _is_name(name: str) -> bool:
    """Whether the word is a name: it has letters, no excluded word and no possessive. If it has several
    words, each needs a capital, where the script has capitals."""
    words = name.split()
    if not words or any(word.casefold() in _NO_NAME or word.endswith(("'s", "’s")) for word in words):
        return False
    return len(words) == 1 or all(not word[0].islower() for word in words)


async def names_of_others(connection: AsyncConnection, place: Place, user: str) -> frozenset[str]:
    """The names, folded, of the people other than `user` who speak or are known in this place, the places
    around it and those inside it: account names, display names, told names, and each part of one. Empty in
    private."""
    if place.private:
        return frozenset()
    known = union(
        select(messages.c.author.label("name")).where(
            messages.c.user_id != user, messages.c.role == "user", _in_reach(messages.c.place, place)
        ),
        select(messages.c.user_id).where(messages.c.user_id != user, _in_reach(messages.c.place, place)),
        select(memories.c.user_id).where(memories.c.user_id != user, _told_in_reach(place)),
        select(context_entries.c.value).where(
            context_entries.c.user_id != user,
            context_entries.c.field == "profile.name",
            _in_reach(context_entries.c.place, place),
        ),
    )
    names = (await connection.execute(known)).scalars()
    return frozenset(part for name in names for part in _with_parts(name))


async def links_of(
    connection: AsyncConnection, place: Place, user: str, content: str
) -> list[tuple[str, str]]:
    """The pairs of names that a fact of `user` links. A pair with the name of somebody else who speaks there
    is none: the fact stays text."""
    pairs = linked(content)
    if not pairs:
        return []
    others = await names_of_others(connection, place, user)
    return [pair for pair in pairs if not any(bears(name, others) for name in pair)]


def bears(name: str, names: frozenset[str]) -> bool:
    return fold(name) in names


def _in_reach(column: ColumnElement[str], place: Place) -> ColumnElement[bool]:
    around = [outer.key for outer in place.containing()]
    return or_(column.in_(around), column.startswith(f"{place.key}/", autoescape=True))


def _told_in_reach(place: Place) -> ColumnElement[bool]:
    """`memories.place` holds the place as text, such as ``acme/general``."""
    around = [str(outer) for outer in place.containing()]
    return or_(memories.c.place.in_(around), memories.c.place.startswith(f"{place}/", autoescape=True))


def _with_parts(name: str) -> set[str]:
    folded = fold(name)
    return {folded, *re.findall(r"[^\W_]{2,}", folded)}
