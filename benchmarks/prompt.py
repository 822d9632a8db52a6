"""What does a prompt cost, and does it grow? One conversation of many turns, counted in tokens by section.

    python benchmarks/prompt.py [--turns N] [--plot FILE.svg] [--json]

A real companion in a temporary home; its two models are scripted. One answers, and on the way searches,
remembers, notes and closes tasks. One looks back and hands in ever more: a summary that grows to forty
sentences, facts, preferences, tasks. So the figures say what is sent, and nothing of how good it is. What the
person says is made up of building blocks: English, a tenth French, a tenth Hebrew, 1 to 25 sentences.
Each hundred turns has the same lengths in the same languages about other things, so hundreds can be compared.

Counted is what the model gets in the first call of a turn: the system message by its headings, the messages,
the tools as JSON; not the few tokens with which a provider frames each. The tokenizer is the one that comes
with wordllama, Llama 2's of 32,000 pieces; beside it stands the estimate of `agent/budget.py`.

Bars. From 210 turns on: the 95th percentile of a prompt over the last hundred turns is at most 1.02 times
that over turns 11 to 110, and so is the longest without history and question after turn 110 to that until
then. Always: what is known of the person and the summary keep within their budgets; persona, rules and tools
are the same bytes in each turn; at most one upkeep call an exchange. Exit 1 where missed.
"""

import argparse
import asyncio
import json
import math
import statistics
import sys
import tempfile
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from hashlib import sha256
from importlib.util import find_spec
from itertools import pairwise, takewhile
from operator import eq
from pathlib import Path
from random import Random
from typing import Any

from agents import ModelResponse, Usage
from agents.models.interface import Model
from agents.testing import assistant_message, function_call
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from scale_plots import GRID, INK

from agent import Companion, Settings
from agent.budget import tokens as estimate
from memory.embedders import bundled
from prompts import read, render

USER = "maya"
START = datetime(2026, 1, 5, 8, tzinfo=UTC)
SECTIONS = ("tools", "rules", "person", "summary", "knowledge", "setting", "history", "question")
HEADED = ("person", "summary", "knowledge", "setting")
NAMES = {"rules": "persona and rules", "person": "about the person", "summary": "summary so far"}
SAID = ("history", "question")
SHOWN = (1, 20, 100, 500, 1_000)
FIRST, WINDOW = 11, 100
"""The first turn that is compared, when the history is full, and how many are taken together."""
SLACK = 1.02
"""What is said about other things is a little longer or shorter: one percent, as far as seen."""
SMOOTHED = 20
COLOURS = {
    "tools": "#6e7681", "rules": "#8b949e", "person": "#2f81f7", "summary": "#3fb950", "knowledge": "#a371f7",
    "setting": "#d29922", "history": "#db6d28", "question": "#e5534b",
}  # fmt: skip

# What is said.

KIN = "Noa Théo Yael Omar Inès Ruth Karim Lena Dov Salma Jonas Mira".split()
TOWNS = "Lyon Haifa Ghent Porto Turin Bergen Jaffa Nantes Cork Graz".split()
FACTS = {
    "en": """\
{who} restores old violins in {town}
{who} adopted {n} cats in {town}
{who} is getting married in {town}
{who} broke a wrist climbing near {town}
{who} teaches chemistry at a school in {town}
{who} keeps {n} hives of bees on a roof in {town}
{who} is allergic to peanuts since the trip to {town}""",
    "fr": """\
{who} a ouvert une boulangerie à {town}
{who} cherche un appartement de {n} m² à {town}""",
    "he": """\
{who} למדה לנגן בצ'לו ב-{town}
{who} עברה לגור ב-{town} עם {n} כלבים""",
}
CHAT = {
    "en": """\
We talked about {town} half the evening, and nobody could agree on the train.
{who} called again, this time about the garden and the {n} tomato plants.
I slept badly and the coffee did not help.
Do you think {n} days are enough for {town}?
The landlord wants an answer by Friday, and I still have doubts.
It rained all day, so I read.
What did I tell you about {who}?""",
    "fr": """\
Hier soir j'ai dîné avec {who} et nous avons parlé de {town}.
Je ne sais toujours pas si je dois accepter ce poste.
Tu te souviens de ce que je t'ai dit sur {who} ?
Il me reste {n} jours pour rendre le dossier.""",
    "he": """\
אתמול דיברתי עם {who} על הנסיעה ל-{town}.
אני עדיין לא יודעת אם לקבל את העבודה.
נשארו לי {n} ימים להגיש את הטופס.""",
}
REPLIES = {
    "en": """\
That sounds like a long week.
How is {who} taking it?
I would ask again on Friday, before you decide.
{n} days in {town} are tight, and you would still see the old town.""",
    "fr": """\
Je comprends que tu hésites.
Et {who}, qu'en pense-t-il ?
Prends le temps d'y réfléchir ce week-end.""",
    "he": """\
זה נשמע כמו שבוע ארוך.
ומה {who} חושבת על זה?""",
}
DIGESTS = {
    "en": """\
Maya weighs the job in {town} against staying near {who}, decided to answer within {n} days, and wants to \
see the flat and the school there once more before she signs anything.
Maya and {who} will meet in {town} in spring and stay for {n} days; the tickets and the room are still to \
be booked, and the dog is to go to the neighbours, who have been asked.""",
    "fr": """\
Maya a parlé avec {who} de la maison de {town}, hésite encore à cause du prix et des travaux, et veut se \
décider dans {n} jours, après une dernière visite.""",
    "he": """\
מאיה החליטה לנסוע ל-{town} עם {who} בעוד {n} ימים, אחרי שתסיים את הקורס, ועוד לא הזמינה כרטיסים ומלון.""",
}
TODO = """\
Book the train to {town} for {who}
Call {who} about the {n} boxes in {town}
Send {who} the papers from {town}"""
SAMPLES = {
    "English": "I broke my shoulder on the red run and cannot ski until March. My sister drives me to work. "
    "On Thursday the doctor looks at it again. Please remind me to bring the pictures.",
    "French": "Je me suis cassé l'épaule sur la piste rouge et je ne peux pas skier avant mars. Ma sœur me "
    "conduit au travail. Jeudi, le médecin regarde encore. Rappelle-moi d'apporter les radios.",
    "Hebrew": "שברתי את הכתף במסלול האדום ולא אוכל לעשות סקי עד מרץ. אחותי מסיעה אותי לעבודה. "
    "ביום חמישי הרופא יבדוק שוב. תזכיר לי בבקשה להביא את הצילומים.",
    "Chinese": "我在红色雪道上摔断了肩膀，三月之前都不能滑雪。姐姐开车送我上班。"
    "星期四医生会再检查一次。请提醒我带上片子。",
}
"""The same in each language."""


def _decks(items: Sequence[Any]) -> list[Any]:
    """For a hundred turns, of which every twenty hold the same in another order."""
    chance = Random(7)
    return [item for _ in range(WINDOW // SMOOTHED) for item in chance.sample(items, SMOOTHED)]


LENGTHS = _decks([1] * 10 + [2] * 4 + [4] * 3 + [8] * 2 + [25])
TONGUES = _decks(["en"] * 16 + ["fr"] * 2 + ["he"] * 2)


@dataclass(frozen=True)
class Said:
    """A turn: what the person says, what the models do about it."""

    text: str
    calls: Sequence[tuple[str, dict[str, Any]]]
    answer: dict[str, Any]
    noted: dict[str, Any]
    """What looking back finds."""


def turn(n: int) -> Said:
    """The nth turn, from 1, the same each time."""
    chance, tongue, length = Random(n), TONGUES[n % WINDOW], LENGTHS[n % WINDOW]
    fact = _phrase(FACTS[tongue], chance)
    text = " ".join([f"{fact}.", *(_phrase(CHAT[tongue], chance) for _ in range(length - 1))])
    reply = " ".join(_phrase(REPLIES[tongue], chance) for _ in range(1 + length // 2))
    calls: list[tuple[str, dict[str, Any]]] = []
    if n % 4 == 0:
        calls.append(("search_memories", {"query": _phrase("{who} in {town}", chance)}))
    if n % 10 == 3:
        calls.append(("remember", {"content": fact, "subjects": ["maya"], "importance": 0.8}))
    if n % 7 == 5:
        due = (START + timedelta(days=n)).isoformat()
        calls.append(("update_task", {"id": None, "description": todo(n), "status": "open", "due": due}))
    if n % 21 == 20:
        calls.append(("update_task", {"id": None, "description": todo(n - 1), "status": "done"}))
    memories = [{"content": fact, "subjects": ["maya"], "importance": 0.6}] if n % 5 == 1 else []
    return Said(text, calls, {"message": reply, "memories": memories}, _noted(n, fact))


def todo(n: int) -> str:
    return _phrase(TODO, Random(n))


def _noted(n: int, fact: str) -> dict[str, Any]:
    """Forty sentences of summary and growing, newest first, of which five are kept; and what is new."""
    digests = [_phrase(DIGESTS[TONGUES[m % WINDOW]], Random(m)) for m in range(n, max(0, n - 40), -1)]
    told = {
        1: ("name", "Maya"),
        2: ("location", "Porto"),
        5: ("tone", "casual"),
        9: ("answer_length", "short"),
    }
    often = {4: "conversation_themes", 8: "other_notes", 12: "goals"}
    where = _phrase("to see {town} with {who}", Random(n))
    pairs = [told[n]] if n in told else [(often[n % 15], where)] if n % 15 in often else []
    return {
        "summary": " ".join(digests),
        "new_facts": [{"text": fact, "importance": ("high", "medium")[n % 4 // 2], "tags": ["Maya"]}]
        if n % 2
        else [],
        "new_preferences": [{"key": key, "value": value} for key, value in pairs],
        "task_updates": [{"id": None, "description": todo(n), "status": "open"}] if n % 9 == 2 else [],
    }


def _phrase(choices: str, chance: Random) -> str:
    chosen = chance.choice(choices.splitlines())
    return chosen.format(who=chance.choice(KIN), town=chance.choice(TOWNS), n=chance.randint(2, 90))


# The models.


class Scripted(Model):
    """Keeps what it was asked since `begin`: (system message, messages, tools as they are sent)."""

    def begin(self, said: Said) -> None:
        self.said = said
        self.asked: list[tuple[str, list[dict[str, str]], str]] = []

    async def get_response(
        self, system_instructions: str | None, input: Any, model_settings: Any, tools: Any, *_: Any, **__: Any
    ) -> ModelResponse:
        messages = [{"role": "user", "content": input}] if isinstance(input, str) else list(input)
        self.asked.append((system_instructions or "", messages, written(tools)))
        return ModelResponse(output=[self.answer()], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    def answer(self) -> Any:
        """To what was asked last."""
        step = len(self.asked) - 1
        if step < len(self.said.calls):
            name, arguments = self.said.calls[step]
            return function_call(name, arguments, call_id=f"call-{step}")
        return assistant_message(json.dumps(self.said.answer))


class LookingBack(Scripted):
    def answer(self) -> Any:
        question, found = self.asked[-1][1][0]["content"], dict(self.said.noted)
        if '"memory_summary"' in question:
            found["memory_summary"] = found["summary"]
        if '"rulings"' in question:
            found["rulings"] = [{"pair": 1, "action": "add"}]
        return assistant_message(json.dumps(found))


def written(tools: Iterable[Any]) -> str:
    """The tools as JSON, as providers are sent them; how they show them to the model they do not tell."""
    sent = [
        {"name": tool.name, "description": tool.description, "parameters": tool.params_json_schema}
        for tool in tools
    ]
    return json.dumps(sent, ensure_ascii=False) if sent else ""


# Counting.


@dataclass(frozen=True)
class Cost:
    """Of one turn, in tokens where nothing else is said."""

    turn: int
    tokens: Mapping[str, int]
    """By section; together the whole prompt."""
    estimated: int
    """The whole prompt, by the estimate of `agent/budget.py`."""
    prefix: int
    """How much of the system message's beginning is the same as in the turn before."""
    fixed: str
    """Persona, rules and tools: a hash of their bytes."""
    filled: float
    """How much of its budget the person's section or the summary takes, whichever takes more."""
    calls: int
    """Of the model that answers."""
    upkeep_calls: int
    upkeep: int
    """The tokens that these were sent."""

    @property
    def whole(self) -> int:
        return sum(self.tokens.values())

    @property
    def standing(self) -> int:
        """Without what is said: history and question."""
        return sum(count for section, count in self.tokens.items() if section not in SAID)

    @property
    def system(self) -> int:
        return self.standing - self.tokens["tools"]


@cache
def _tokenizer() -> Any:
    return bundled._load().tokenizer


@lru_cache(maxsize=64)
def _ends(text: str) -> tuple[int, ...]:
    """Where each token ends, in characters."""
    return tuple(end for _, end in _tokenizer().encode(text, add_special_tokens=False).offsets)


def count(text: str) -> int:
    return len(_ends(text)) if text else 0


def split(system: str) -> dict[str, str]:
    """The system message by its headings. Nothing quoted can look like one, and joined it is whole again."""
    heads = {name: read(name).splitlines()[0] for name in HEADED}
    found = {name: system.find(f"\n\n{head}\n") for name, head in heads.items()}
    starts = [("rules", 0), *((name, at) for name, at in found.items() if at >= 0), ("", len(system))]
    return {name: system[at:end] for (name, at), (_, end) in pairwise(starts)}


def cost(n: int, answering: Scripted, looking_back: Scripted, before: str, settings: Settings) -> Cost:
    """What the nth turn took; `before` is the system message of the turn before."""
    system, messages, tools = answering.asked[0]
    parts, ends, at = split(system), _ends(system), 0
    tokens = {"tools": count(tools)}
    for name, part in parts.items():  # a token counts where it ends, so that the sections add up
        tokens[name] = bisect_right(ends, at + len(part)) - bisect_right(ends, at)
        at += len(part)
    *history, question = [message["content"] for message in messages]
    tokens |= {"history": sum(map(count, history)), "question": count(question)}
    return Cost(
        turn=n,
        tokens=tokens,
        estimated=sum(map(estimate, (tools, system, *history, question))),
        prefix=bisect_right(ends, sum(1 for _ in takewhile(bool, map(eq, before, system)))),
        fixed=sha256(f"{parts['rules']}{tools}".encode()).hexdigest()[:16],
        filled=_filled(parts, settings),
        calls=len(answering.asked),
        upkeep_calls=len(looking_back.asked),
        upkeep=sum(count(asked[0]) + count(asked[1][0]["content"]) for asked in looking_back.asked),
    )


def _filled(parts: Mapping[str, str], settings: Settings) -> float:
    frames = {
        "person": (render("person", known=""), settings.context_budget),
        "summary": (render("summary", summary="> "), settings.summary_budget),
    }
    return max(
        budget.cost(parts[name].removeprefix("\n\n")[len(frame) :]) / budget.amount if name in parts else 0.0
        for name, (frame, budget) in frames.items()
    )


async def converse(turns: int) -> tuple[list[Cost], dict[str, int]]:
    """What each turn took, and how much there is to know in the end."""
    costs, before, now = [], "", START
    answering, looking_back = Scripted(), LookingBack()
    with tempfile.TemporaryDirectory() as home, Progress(console=Console(stderr=True)) as bar:
        # With a judge, so that its rulings too have to ride along in the one call.
        settings = Settings.load(home=Path(home), embedder="bundled", judge=True)
        async with Companion.open(
            settings, clock=lambda: now, model=answering, upkeep_model=looking_back, upkeep=False
        ) as pet:
            for n in bar.track(range(1, turns + 1), description="turns"):
                said = turn(n)
                answering.begin(said)
                looking_back.begin(said)
                await pet.respond(said.text, user=USER)
                await pet.settle()
                if await pet.queue.counts() != (0, 0):
                    raise RuntimeError(f"turn {n} left work undone; see the log above")
                costs.append(cost(n, answering, looking_back, before, settings))
                before = answering.asked[0][0]
                now += timedelta(minutes=Random(n).randint(2, 300))
            facts, tasks = await pet.memories(user=USER), await pet.tasks.list(USER)
    return costs, {"facts": len(facts), "open_tasks": len(tasks)}


def bars(costs: Sequence[Cost]) -> list[dict[str, Any]]:
    """What is held to: {"bar", "value", "at_most", "reached"}."""
    values: list[tuple[str, float, float]] = []
    last = FIRST - 1 + WINDOW
    if len(costs) >= last + WINDOW:
        early, late = costs[FIRST - 1 : last], costs[-WINDOW:]
        until, after = costs[:last], costs[last:]
        whole = percentile(late, "whole") / percentile(early, "whole")
        standing = max(cost.standing for cost in after) / max(cost.standing for cost in until)
        values += [
            ("a prompt of the last hundred turns to one of turns 11 to 110, p95", whole, SLACK),
            ("the longest without history and question, after turn 110 to before", standing, SLACK),
        ]
    values += [
        ("about the person, or summary, to its budget, most", max(cost.filled for cost in costs), 1.0),
        ("different persona, rules and tools", len({cost.fixed for cost in costs}), 1),
        ("upkeep calls an exchange, most", max(cost.upkeep_calls for cost in costs), 1),
    ]
    return [
        {"bar": name, "value": value, "at_most": most, "reached": value <= most}
        for name, value, most in values
    ]


def percentile(costs: Sequence[Cost], what: str, share: float = 0.95) -> float:
    """The value that this share of them does not exceed."""
    values = sorted(getattr(cost, what) for cost in costs)
    return float(values[math.ceil(share * len(values)) - 1])


def _mean(costs: Sequence[Cost], what: str) -> float:
    return statistics.fmean(getattr(cost, what) for cost in costs)


def languages() -> dict[str, dict[str, float]]:
    """How far the estimate is off, on the same few sentences in each language, and on the rules."""
    found = {}
    for name, text in {"Persona and rules": f"{read('persona')}\n{read('assistant')}", **SAMPLES}.items():
        real = count(text)
        found[name] = {
            "tokens": real,
            "estimated": estimate(text),
            "off": estimate(text) / real - 1,
            "bytes_a_token": len(text.encode()) / real,
        }
    return found


def measure(turns: int) -> dict[str, Any]:
    costs, known = asyncio.run(converse(turns))
    later = costs[1:] or costs
    return {
        "costs": [{**asdict(cost), "whole": cost.whole} for cost in costs],
        "bars": bars(costs),
        "upkeep": {
            "calls": {"most": max(c.upkeep_calls for c in costs), "mean": _mean(costs, "upkeep_calls")},
            "calls_of_the_reply": _mean(costs, "calls"),
            "tokens": {
                "early": _mean(costs[FIRST - 1 : FIRST - 1 + WINDOW] or costs, "upkeep"),
                "late": _mean(costs[-WINDOW:], "upkeep"),
                "most": max(cost.upkeep for cost in costs),
            },
        },
        "prefix": {
            "tokens": statistics.median(cost.prefix for cost in later),
            "of_the_system_message": statistics.fmean(cost.prefix / cost.system for cost in later),
            "of_the_prompt_with_tools": statistics.fmean(
                (cost.prefix + cost.tokens["tools"]) / cost.whole for cost in later
            ),
        },
        "languages": languages(),
        "known": known,
    }


def show(result: Mapping[str, Any]) -> None:
    console, costs = Console(), result["costs"]
    shown = [costs[n - 1] for n in SHOWN if n <= len(costs)]
    table = Table("tokens at turn", *(f"{cost['turn']:,}" for cost in shown))
    for section in SECTIONS:
        if any(section in cost["tokens"] for cost in costs):
            table.add_row(NAMES.get(section, section), *(f"{c['tokens'].get(section, 0):,}" for c in shown))
    rows = {"the whole prompt": "whole", "as Hachi estimates it": "estimated", "the upkeep call": "upkeep"}
    for name, what in rows.items():
        table.add_row(name, *(f"{cost[what]:,}" for cost in shown))
    console.print(table)
    known = result["known"]
    console.print(f"known in the end: {known['facts']} facts, {known['open_tasks']} open tasks")
    table = Table("estimate", "tokens", "estimated", "off", "bytes a token")
    for name, row in result["languages"].items():
        off, size = f"{100 * row['off']:+.0f} %", f"{row['bytes_a_token']:.2f}"
        table.add_row(name, str(row["tokens"]), str(row["estimated"]), off, size)
    console.print(table)
    upkeep, prefix = result["upkeep"], result["prefix"]
    calls, sent = upkeep["calls"], upkeep["tokens"]
    console.print(
        f"model calls a turn: {upkeep['calls_of_the_reply']:.2f} for the reply and {calls['mean']:.2f} for "
        f"upkeep, {calls['most']} at most; tokens sent for upkeep: {sent['early']:,.0f} in the mean of turns "
        f"11 to 110, {sent['late']:,.0f} of the last hundred, {sent['most']:,} at most"
    )
    console.print(
        f"the same as in the turn before, from the start: {prefix['tokens']:,.0f} tokens of the system "
        f"message, {prefix['of_the_system_message']:.0%} of it; with the tools "
        f"{prefix['of_the_prompt_with_tools']:.0%} of the prompt"
    )
    table = Table("bar", "value", "at most", "")
    for bar in result["bars"]:
        reached = "reached" if bar["reached"] else "missed"
        table.add_row(bar["bar"], f"{bar['value']:.3f}", f"{bar['at_most']:g}", reached)
    console.print(table)


def plot(costs: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Areas on each other, each point the mean of twenty turns: what single messages take jumps about."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot
    from matplotlib.ticker import FuncFormatter

    across, layers = smoothed(costs)
    style = {"svg.fonttype": "none", "svg.hashsalt": "hachi", "font.size": 11}
    colours = dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), INK)
    with matplotlib.rc_context({**style, **colours}):
        figure, axes = pyplot.subplots(figsize=(6.4, 3.4), layout="constrained")
        axes.stackplot(across, *layers.values(), colors=[COLOURS[name] for name in layers], linewidth=0)
        for name, at in labelled(layers).items():
            text = f"{NAMES.get(name, name)}  {statistics.fmean(layers[name]):,.0f}"
            offset = {"xytext": (8, 0), "textcoords": "offset points", "va": "center", "fontsize": 9}
            axes.annotate(text, (across[-1], at), color=COLOURS[name], **offset)
        axes.set_title("Tokens of a prompt, by section", loc="left", fontsize=12, pad=12)
        axes.set_xlabel("turn; each point is the mean of twenty")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axes.set_xlim(across[0], across[-1])
        axes.set_ylim(0)
        axes.grid(True, axis="y", color=GRID, linewidth=0.8)
        axes.tick_params(which="both", length=0)
        axes.spines[:].set_visible(False)
        figure.savefig(path, transparent=True, metadata={"Date": None})
        pyplot.close(figure)


def smoothed(costs: Sequence[Mapping[str, Any]]) -> tuple[list[float], dict[str, list[float]]]:
    """The middles of every twenty turns, and the mean of each section over them."""
    groups = [costs[at : at + SMOOTHED] for at in range(0, len(costs), SMOOTHED)]
    across = [statistics.fmean(cost["turn"] for cost in group) for group in groups]
    layers = {
        name: [statistics.fmean(cost["tokens"].get(name, 0) for cost in group) for group in groups]
        for name in SECTIONS
    }
    return across, {name: values for name, values in layers.items() if any(values)}


def labelled(layers: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """The heights of the labels at the right end: beside the middles of the layers, and off each other."""
    level, gap, heights = 0.0, sum(map(max, layers.values())) / 17, dict[str, float]()
    for name, values in layers.items():
        middle, level = level + values[-1] / 2, level + values[-1]
        heights[name] = max(middle, max(heights.values(), default=0.0) + gap)
    return heights


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=1_000)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.turns < 1:
        parser.error("--turns: there is at least one turn")
    if options.plot and find_spec("matplotlib") is None:
        parser.error("--plot needs matplotlib: pip install matplotlib")
    if options.plot and not options.plot.parent.is_dir():
        parser.error(f"--plot: there is no folder {options.plot.parent}; make it first")
    result = measure(options.turns)
    if options.plot:
        plot(result["costs"], options.plot)
    print(json.dumps(result, indent=2)) if options.json else show(result)
    return 0 if all(bar["reached"] for bar in result["bars"]) else 1


if __name__ == "__main__":
    sys.exit(main())
