"""Forty days of three people with a companion: a channel, private talks, and what changes meanwhile.

The model is scripted; the ids that it names are those that it is shown. What it consolidates, `consolidate`
derives from what the prompt quotes, as a capable model would.
"""

import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from agents.testing import function_call
from shown_ids import id_beside

from hachi import Companion
from hachi.testing import AnsweringModel
from memory.audience import Audience, Place

CHOIR = "harbour/choir"
PRIYA, MAREK, YUKI = "priya", "marek", "yuki"
SECRET = "Priya plans to leave the Lantern Theatre in spring 2027."


@dataclass(frozen=True)
class Says:
    """One turn of the story: what is said, and what the model makes of it."""

    day: int
    who: str
    place: str | None
    text: str
    reply: str
    memories: tuple[dict[str, Any], ...] = ()
    calls: tuple[dict[str, Any], ...] = ()
    """The arguments of tool calls before the reply, each with `tool`, one a model call."""
    forget: tuple[str, ...] = ()


def fact(content: str, importance: float = 0.7, **draft: Any) -> dict[str, Any]:
    return {"content": content, "importance": importance, "type": "fact", "ttl": None, **draft}


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tool": tool, **arguments}


LATEX = "Priya is allergic to latex and not to penicillin, as a doctor tested."
STORY = (
    Says(
        *(1, PRIYA, None, "Hi, I'm Priya. I live in Bergen and I design theatre sets."),
        "Welcome, Priya! Which set is on your table now?",
        (fact("Priya lives in Bergen."), fact("Priya designs theatre sets.")),
    ),
    Says(
        *(1, MAREK, CHOIR, "Marek here! My dog is called Fenna and I work at the observatory."),
        "Hello Marek, and hello Fenna.",
        (fact("Marek has a dog called Fenna."), fact("Marek works at the observatory.")),
    ),
    Says(
        *(2, YUKI, CHOIR, "Yuki, alto. And I'm a vegetarian, for the buffet."),
        "Noted for the buffet, Yuki.",
        (fact("Yuki sings alto."), fact("Yuki is a vegetarian.")),
    ),
    Says(
        *(3, PRIYA, CHOIR, "We rehearse on Tuesdays at 19:00 in the chapel."),
        "Tuesdays it is.",
        (fact("The choir rehearses on Tuesdays at 19:00 in the chapel."),),
    ),
    Says(
        *(4, PRIYA, None, "Careful: penicillin gives me a bad rash."),
        "I will keep that in mind.",
        (fact("Priya is allergic to penicillin.", 0.9),),
    ),
    Says(
        *(5, YUKI, None, "I have to renew my passport and book the ferry to Kiel."),
        "I have both on the list.",
        calls=(
            call("update_task", description="renew the passport", status="open"),
            call("update_task", description="book the ferry to Kiel", status="open"),
        ),
    ),
    Says(
        *(6, PRIYA, None, "Between us: I am going to leave the Lantern Theatre in spring."),
        "Leaving the Lantern Theatre in spring, then. It stays between us.",
        (fact(SECRET, 0.8),),
    ),
    Says(
        *(7, MAREK, CHOIR, "My brother Tomasz visits until the first of December."),
        "Have a good time, you two.",
        (
            fact("Marek has a brother called Tomasz."),
            fact("Marek's brother Tomasz visits Marek until 1 December 2026.", ttl="5d"),
        ),
    ),
    Says(
        *(8, MAREK, None, "I'm in bed with bronchitis."),
        "Oh no. Rest well.",
        (fact("Marek has bronchitis.", ttl="7d"),),
    ),
    Says(
        *(9, MAREK, CHOIR, "Call me Priya from now on, I lost a bet."),
        "Sure, Marek.",
        (fact("Marek is also called Priya"),),
    ),
    Says(*(10, PRIYA, None, "Please call me Pip."), "Pip it is.", (fact("Priya is also called Pip"),)),
    Says(
        *(12, YUKI, None, "The ferry is booked."),
        "One thing less.",
        calls=(call("update_task", id="book the ferry to Kiel", description="", status="done"),),
    ),
    Says(
        *(14, PRIYA, None, "I moved to Trondheim at the weekend."),
        "Welcome home, in Trondheim.",
        (fact("Priya lives in Trondheim."),),
    ),
    Says(
        *(15, MAREK, CHOIR, "Where does Priya live?"),
        "She has not said that here.",
        calls=(call("search_memories", query="where Priya lives"),),
    ),
    Says(
        *(16, PRIYA, None, "The doctor tested me: it is latex, penicillin is fine."),
        "Latex, then. Good to know.",
        calls=(
            call("remember", **fact(LATEX, 0.9)),
            call("remember", **fact(LATEX, 0.9, replaces="Priya is allergic to penicillin.")),
        ),
    ),
    Says(
        *(18, PRIYA, CHOIR, "From this week on we rehearse on Thursdays at 20:00."),
        "Thursdays at 20:00 from now on.",
        (
            fact(
                "The choir rehearses on Thursdays at 20:00 in the chapel.",
                replaces="The choir rehearses on Tuesdays at 19:00 in the chapel.",
            ),
        ),
    ),
    Says(
        *(20, PRIYA, None, "Please forget that I want to leave the theatre."),
        "I will ask you to confirm.",
        forget=(SECRET,),
    ),
    Says(
        *(22, YUKI, CHOIR, "I eat fish again."),
        "Then the buffet gets easier.",
        (fact("Yuki eats fish and is no longer a vegetarian."),),
    ),
    Says(
        *(24, MAREK, CHOIR, "I left the observatory, I am at the city archive now."),
        "Congratulations, Marek.",
        (fact("Marek works at the city archive."),),
    ),
    Says(
        *(25, YUKI, CHOIR, "Isn't Marek's dog called Bello?"),
        "Marek told me Fenna.",
        (fact("Yuki believes that Marek's dog is called Bello."),),
    ),
    Says(*(26, MAREK, None, "When was I ill?"), "Last month: you told me of bronchitis."),
    Says(
        *(28, YUKI, CHOIR, "The concert is on the 23rd of December in the town hall."),
        "I look forward to hearing of it.",
        (fact("The choir sings in the town hall on 23 December 2026.", ttl="7d"),),
    ),
    Says(
        *(30, YUKI, None, "I have my new passport."),
        "All done, then.",
        calls=(call("update_task", id="renew the passport", description="", status="done"),),
    ),
    Says(
        *(32, PRIYA, None, "I have to oil the bicycle, and I started to learn Greek."),
        "Two good plans.",
        (fact("Priya learns Greek."),),
        (call("update_task", description="oil the bicycle", status="open"),),
    ),
    *(
        Says(40, who, place, "Good evening!", "Good evening.")
        for who in (PRIYA, MAREK, YUKI)
        for place in (None, CHOIR)
    ),
)

RULED = {
    "Priya lives in Trondheim.": "Priya lives in Bergen.",
    "Yuki eats fish and is no longer a vegetarian.": "Yuki is a vegetarian.",
    "Marek works at the city archive.": "Marek works at the observatory.",
    "Yuki believes that Marek's dog is called Bello.": "Marek has a dog called Fenna.",
}
"""What the consolidating model rules to be replaced. The last one is wrong, and not Yuki's to say."""

REPEATED = {"in bed with bronchitis": ("Marek is ill with bronchitis.", "Marek has bronchitis.")}
"""What is said; what the consolidation makes of it once more; what the answer made of it."""
LOCATIONS = {"I live in Bergen": "Bergen", "I moved to Trondheim": "Trondheim"}
NOTES = (
    ("Bergen", "Priya lives in Bergen.", "Trondheim"),
    ("Trondheim", "Priya lives in Trondheim.", None),
    ("theatre sets", "Priya designs theatre sets.", None),
    ("penicillin", "Priya does not bear penicillin.", "latex"),
    ("latex", "Priya does not bear latex.", None),
    ("Lantern", "Priya will leave the Lantern Theatre.", None),
    ("Greek", "Priya learns Greek.", None),
    ("Fenna", "Marek has the dog Fenna.", None),
    ("observatory", "Marek is with the observatory.", "archive"),
    ("archive", "Marek is with the city archive.", None),
    ("bronchitis", "Marek has bronchitis.", "Last month"),
    ("Tomasz", "Tomasz is Marek's brother.", None),
    ("visits", "Tomasz is on a visit.", None),
    ("vegetarian", "Yuki is a vegetarian.", "fish"),
    ("fish", "Yuki eats fish.", None),
    ("alto", "Yuki sings alto.", None),
    ("Tuesday", "They rehearse on Tuesdays.", "Thursday"),
    ("Thursday", "They rehearse on Thursdays.", None),
    ("concert", "They sing in the town hall.", None),
    ("ferry", "Yuki wants to book the ferry.", "booked"),
)
"""What the prompt quotes; what a summary says of it; what in the prompt shows that this is outdated."""


PASSING = {"bronchitis": 7, "visits": 5, "concert": 7}
"""What passes, and after how many days."""


def consolidate(asked: str) -> dict[str, Any]:
    """What a capable model finds in the prompt."""
    quoted = "\n".join(line for line in asked.splitlines() if line.startswith(">") and not over(line, asked))
    notes = [note for word, note, until in NOTES if word in quoted and not (until and until in quoted)]
    said = asked.partition("## What was said")[2].partition("## What to look for")[0]
    found: dict[str, Any] = {"summary": " ".join(notes), "new_facts": [], "task_updates": []}
    found["new_preferences"] = [
        {"key": "location", "value": city} for text, city in LOCATIONS.items() if text in said
    ]
    if "`memory_summary`" in asked:
        found["memory_summary"] = " ".join(notes)
    if "`rulings`" in asked:
        shown = {content: id_beside(content, asked) for content in (*RULED, *RULED.values())}
        pairs = [(shown[new], shown[old]) for new, old in RULED.items()]
        found["rulings"] = [
            {"new": new, "old": old, "ruling": "replaces"} for new, old in pairs if new and old
        ]
    for text, (again, known) in REPEATED.items():
        if text in said:
            found["new_facts"].append({"text": again, "importance": "medium", "tags": [], "ttl": None})
            same = {"new": "#1", "old": id_beside(known, asked), "ruling": "same"}
            found.setdefault("rulings", []).append(same)
    return found


def over(line: str, asked: str) -> bool:
    """Whether it is what somebody said of what has passed since, as a capable model sees by the dates."""
    told = re.match(r"> \[\w+ (\d+ \w+ \d+)", line)
    today = re.search(r"Today: \w+ (\d+ \w+ \d+)", asked)
    days = min((days for word, days in PASSING.items() if word in line), default=None)
    if days is None or not (told and today):
        return False
    said = datetime.strptime(f"{told[1]} +0000", "%d %b %Y %z")
    return datetime.strptime(f"{today[1]} +0000", "%d %B %Y %z") - said >= timedelta(days=days)


async def live(pet: Companion, model: AnsweringModel, looking_back: AnsweringModel, clock: Any) -> None:
    """Go through the story, day by day."""
    began = clock.now
    for day in range(1, 41):
        clock.now = began + timedelta(days=day)
        for says in (one for one in STORY if one.day == day):
            model.answers = [*(_calls(model, one) for one in says.calls), _answers(model, says)]
            reply = await pet.respond(
                says.text, user=says.who, author=says.who.capitalize(), place=says.place
            )
            await pet.settle()
            if says.forget:
                assert [candidate.content for candidate in reply.forget or ()] == [*says.forget]
                await pet.memories.forget_confirmed(reply.forget or (), user=says.who, place=says.place)
                for earlier in (model.systems, model.inputs, looking_back.asked):
                    earlier.clear()
                await pet.settle()
            clock.advance(hours=1)
        await pet.admin.purge()
        await pet.settle()


def _calls(model: AnsweringModel, given: dict[str, Any]) -> Callable[[str], list[Any]]:
    def step(_: str) -> list[Any]:
        arguments = {name: value for name, value in given.items() if name != "tool"}
        for name in arguments.keys() & {"id", "replaces"}:
            arguments[name] = id_beside(arguments[name], model.shown())
        return [function_call(given["tool"], arguments, call_id=f"call-{len(model.asked)}")]

    return step


def _answers(model: AnsweringModel, says: Says) -> Callable[[str], dict[str, Any]]:
    def step(_: str) -> dict[str, Any]:
        replaced = [one for one in says.memories if "replaces" in one]
        ids = [{**one, "replaces": id_beside(one["replaces"], model.shown())} for one in replaced]
        kept = [one for one in says.memories if "replaces" not in one]
        return {"message": says.reply, "memories": kept + ids, "forget": [*says.forget]}

    return step


# What holds at the end.

IN_CHOIR = {
    "Marek has a dog called Fenna.",
    "Marek has a brother called Tomasz.",
    "Marek works at the city archive.",
    "Marek is also called Priya",
    "Yuki sings alto.",
    "Yuki eats fish and is no longer a vegetarian.",
    "Yuki believes that Marek's dog is called Bello.",
    "The choir rehearses on Thursdays at 20:00 in the chapel.",
}
IN_PRIVATE = {
    PRIYA: {
        "Priya lives in Trondheim.",
        "Priya designs theatre sets.",
        LATEX,
        "Priya is also called Pip",
        "Priya learns Greek.",
        "The choir rehearses on Thursdays at 20:00 in the chapel.",
    },
    MAREK: {one for one in IN_CHOIR if one.startswith("Marek")},
    YUKI: {one for one in IN_CHOIR if one.startswith("Yuki")},
}
READERS = {(who, None): facts for who, facts in IN_PRIVATE.items()} | {
    (who, CHOIR): IN_CHOIR for who in (PRIYA, MAREK, YUKI)
}
SUMMARY = {
    (PRIYA, None): {"in Trondheim.", "theatre sets.", "bear latex.", "Greek."},
    (PRIYA, CHOIR): {"city archive.", "eats fish.", "Thursdays."},
}
UNTRUE = (
    *("Bergen", "bear penicillin", "to penicillin.", "Lantern", "leave the", "bronchitis", "is a vegetarian"),
    *("observatory", "Tuesday", "a visit", "visits", "town hall", "concert", "ferry", "passport"),
)


def summary_in(prompt: str) -> str:
    """The section that sums up the conversation."""
    return prompt.partition("## Conversation summary\n")[2].partition("\n\n")[0]


def untrue_in(*shown: Any) -> list[str]:
    return [words for words in UNTRUE if words in json.dumps(shown, default=str)]


async def test_after_forty_days_everything_true_is_known_and_nothing_else(
    open_pet: Callable[..., Awaitable[Companion]], clock: Any, home: Path
) -> None:
    model, looking_back = AnsweringModel(), AnsweringModel(then=consolidate)
    pet = await open_pet(given=model, looking_back=looking_back, context_budget="250")

    await live(pet, model, looking_back, clock)

    last = [(says.who, says.place) for says in STORY if says.day == 40]
    prompts = dict(zip(last, model.systems[-len(last) :], strict=True))
    for (who, place), facts in READERS.items():
        where = {"user": who, "place": place}
        assert {memory.content for memory in await pet.memories.list(**where)} == facts, where
        context, prompt = (await pet.people.context(**where)).to_json(), prompts[who, place]
        assert not untrue_in(context, prompt), where
        assert all(true in summary_in(prompt) for true in SUMMARY.get((who, place), ())), where
        for one in facts:
            hits = await pet.search_memories(one, limit=20, **where)
            assert one in [hit.content for hit in hits], where
            assert not untrue_in([hit.content for hit in hits if hit.kind != "message"]), where
    await check_profiles(pet)
    await check_names(pet)
    check_forgotten(home, model.systems, model.inputs, looking_back.asked)
    assert "bronchitis" in str(await pet.search_memories("illness bronchitis", user=MAREK)), (
        "it is past, not lost"
    )
    assert "Tomasz visits" in str(await pet.search_memories("visits", user=PRIYA, place=CHOIR))


async def check_profiles(pet: Companion) -> None:
    priya = await pet.people.context(user=PRIYA)
    assert priya.profile.location == "Trondheim"
    assert "Trondheim" in str(priya.memory_summary)
    assert (await pet.people.context(user=PRIYA, place=CHOIR)).profile.location is None
    tasks = {
        who: [task.description for task in (await pet.people.context(user=who)).open_tasks]
        for who in IN_PRIVATE
    }
    assert tasks == {PRIYA: ["oil the bicycle"], MAREK: [], YUKI: []}


async def check_names(pet: Companion) -> None:
    async def others(who: str, place: str | None) -> tuple[str, ...]:
        return (await pet.components.recall.aliases(Audience.of(who, Place.parse(place)))).others("Priya")

    assert await others(PRIYA, None) == ("Pip",)
    assert {await others(*reader) for reader in READERS if reader not in ((PRIYA, None), (MAREK, None))} == {
        ()
    }


def check_forgotten(home: Path, *asked: Any) -> None:
    """Nothing that was asked of a model since the secret was taken back shows it, and no file of the home."""
    assert "Lantern" not in str(asked)
    assert [path for path in home.rglob("*") if path.is_file() and b"Lantern" in path.read_bytes()] == []
