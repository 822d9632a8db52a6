"""A made-up world for measuring at size: people with 200 facts each, and questions about them.

Every sentence comes from a template filled with names, places, things and numbers by a seeded generator, so
that the same size is the same world again, words are as rare and as frequent as in talk, and no two facts of
a person are the same.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

PER_USER = 200
NOW = datetime(2026, 11, 21, 9, tzinfo=UTC)
EXPIRING = 100
"""Every so many facts one holds for a week only."""
CIRCLE = 12
"""How many people somebody speaks of."""

NAMES = (
    "Ana Ben Carla David Elif Farid Greta Hugo Ines Jonas Kira Liam Mina Noor Oscar Paula Quinn Rosa Samir "
    "Tara Ugo Vera Wanda Xenia Yusuf Zoe Amina Bruno Celine Diego Emma Felix Gita Hanna Ivan Julia Karim "
    "Leila Marco Nadia Omar Petra Rafael Sofia Tomas Ulla Viktor Willa Yara Zeno"
).split()
PLACES = (
    "Lyon Porto Haifa Ghent Turin Bergen Seville Krakow Leeds Tartu Basel Malmo Split Nantes Bilbao Cork "
    "Graz Trieste Oulu Bath Lille Aarhus Cadiz Brno York Rouen Utrecht Siena Gdansk Faro Tampere Metz "
    "Leiden Parma Evora Ulm Namur Lugano Zadar Toledo"
).split()
THINGS = (
    "bicycle|guitar|telescope|kayak|sewing machine|typewriter|piano|camera|tent|violin|drum kit|kite|canoe|"
    "chess set|microscope|record player|loom|greenhouse|easel|accordion|skateboard|beehive|aquarium|harp|"
    "pottery wheel|espresso machine|sailing boat|fountain pen|folding bike|rocking chair"
).split("|")
FOODS = (
    "lentil soup|olives|goat cheese|pistachio ice cream|grilled aubergine|rye bread|mango|black tea|"
    "oat porridge|ginger biscuits|pickled herring|mushroom risotto|dark chocolate|spicy noodles|figs|"
    "pumpkin pie|miso|walnuts|fennel salad|cherry jam"
).split("|")
JOBS = (
    "nurse|carpenter|translator|geologist|baker|librarian|pilot|cellist|beekeeper|optician|tailor|welder|"
    "botanist|referee|archivist|potter|radiologist|surveyor|puppeteer|locksmith"
).split("|")
HOBBIES = (
    "climbing|rowing|knitting|fencing|birdwatching|calligraphy|salsa dancing|orienteering|pottery|judo|"
    "stargazing|mountain biking|choir singing|archery|bookbinding|cross-country skiing|juggling|diving"
).split("|")
KIN = "sister brother mother father cousin aunt uncle neighbour flatmate boss grandmother trainer".split()
ANIMALS = "cat dog parrot rabbit hamster tortoise pony canary gecko ferret".split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = "January March April May June July August September October November".split()
COLOURS = "green red blue yellow black white grey orange purple brown".split()

SHORT = "Bobo Mimi Jojo Kiki Lulu Didi Toto Nini Coco Fifi Riri Zuzu".split()

NICKNAME = ("{a} is also called {short}.", "What is {short} really called?")
"""Said once of everybody: one person of their circle goes by two names."""
FORMS = (
    ("{a}'s {kin} {b} lives in {place}.", "Where does {a}'s {kin} live?"),
    ("{a} bought a {colour} {thing} for {n} euros in {month}.", "What did {a} pay for the {thing}?"),
    ("{a} likes {food} but cannot stand {food2}.", "Which food does {a} not like?"),
    ("{a} worked as a {job} in {place} until {year}.", "What was {a}'s job in {place}?"),
    ("{a} goes {hobby} every {day} with {b}.", "Who goes {hobby} with {a}?"),
    ("{a} has had a {animal} named {pet} for {n2} years.", "What is the name of {a}'s {animal}?"),
    ("{a} keeps {n} books about {hobby} on the shelf.", "How many books about {hobby} has {a} got?"),
    ("{a} flies to {place} on {n2} {month} to see {b}.", "When does {a} fly to {place}?"),
    ("{a} is allergic to {food} since the holiday in {place}.", "What is {a} allergic to?"),
    ("{a} wants to learn {hobby} before turning {n3}.", "What does {a} want to learn?"),
    ("{b} lent {a} a {thing} and wants it back in {month}.", "What did {b} lend to {a}?"),
    ("{a} met {b} at a {hobby} course in {place} in {year}.", "How did {a} meet {b}?"),
    ("The {kin} of {a} trains as a {job} with {b}.", "Whose {kin} trains as a {job}?"),
    ("{a} takes bus {n} to work because the {thing} is broken.", "Which bus does {a} take?"),
    ("{a} painted the kitchen {colour} after {b} moved to {place}.", "Which colour is {a}'s kitchen?"),
    ("{a} has an appointment with the {job} on {day} at {n4} o'clock.", "When does {a} see the {job}?"),
    ("{a} and {b} share a garden in {place} where {food} grows well.", "Who shares a garden with {a}?"),
    ("{a} won {n} points in the {hobby} contest of {year}.", "How did the {hobby} contest go for {a}?"),
    ("{a} promised {b} to repair the {colour} {thing} on {day}.", "What is {a} to repair for {b}?"),
    ("{a} reads {n3} pages an evening, mostly about {place} and {hobby}.", "What does {a} read about?"),
)


@dataclass(frozen=True, slots=True)
class Fact:
    user: str
    text: str
    question: str
    names: tuple[str, str] | None
    """Two names of one person, where the fact says so."""
    subjects: tuple[str, ...]
    said_at: datetime
    expires_at: datetime | None


def users(size: int) -> int:
    return max(1, size // PER_USER)


def facts(size: int, seed: int = 1) -> Iterator[Fact]:
    """`size` facts, a person's 200 one after the other."""
    for person in range(users(size)):
        yield from _told(person, min(PER_USER, size), f"{seed}/{person}")


def new_facts(size: int, count: int, seed: int = 2) -> list[Fact]:
    """Facts of people in that world, spread over them, that it does not hold yet."""
    people = random.Random(seed).choices(range(users(size)), k=count)
    return [next(_told(person, 1, f"{seed}/{place}/new", known=False)) for place, person in enumerate(people)]


def questions(size: int, count: int, seed: int = 3) -> list[Fact]:
    """Facts of that world, spread over its people: each with its question."""
    rng = random.Random(seed)
    people = [rng.randrange(users(size)) for _ in range(count)]
    kept = {person: list(_told(person, min(PER_USER, size), f"1/{person}")) for person in set(people)}
    return [rng.choice(kept[person]) for person in people]


def _told(person: int, count: int, seed: str, *, known: bool = True) -> Iterator[Fact]:
    rng = random.Random(seed)
    circle = rng.sample(NAMES, CIRCLE)
    seen: set[str] = set()
    while len(seen) < count:
        slots = _slots(rng, circle)
        form, question = rng.choice(FORMS) if seen or not known else NICKNAME
        text = form.format_map(slots)
        if text in seen:
            continue
        seen.add(text)
        ends = known and len(seen) % EXPIRING == 0
        yield Fact(
            f"user-{person}",
            text,
            question.format_map(slots),
            (str(slots["a"]), str(slots["short"])) if form == NICKNAME[0] else None,
            (str(slots["a"]).lower(),),
            NOW - timedelta(minutes=rng.randrange(1_000_000)),
            NOW + timedelta(days=7) if ends else None,
        )


def _slots(rng: random.Random, circle: list[str]) -> dict[str, str | int]:
    a, b = rng.sample(circle, 2)
    food, food2 = rng.sample(FOODS, 2)
    return {
        "a": a, "b": b, "food": food, "food2": food2,
        "short": rng.choice(SHORT), "pet": rng.choice(NAMES), "kin": rng.choice(KIN),
        "place": rng.choice(PLACES),
        "thing": rng.choice(THINGS), "job": rng.choice(JOBS), "hobby": rng.choice(HOBBIES),
        "animal": rng.choice(ANIMALS), "day": rng.choice(DAYS), "month": rng.choice(MONTHS),
        "colour": rng.choice(COLOURS), "year": rng.randrange(1985, 2026), "n": rng.randrange(11, 1000),
        "n2": rng.randrange(2, 29), "n3": rng.randrange(30, 90), "n4": rng.randrange(7, 19),
    }  # fmt: skip
