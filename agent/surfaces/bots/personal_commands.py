"""The commands and buttons about a person as a whole: what is stored, sent and known of them, their accounts,
check-ins, traces, and calls that they agree to."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from agent.companion import Companion
from agent.models.choice.registry import remote_models
from agent.surfaces.bots.answers import MAX_QUOTE, Answer, Asker, Button, Handler, Item, models_named, shorten
from agent.surfaces.bots.attachments.transcriber import Transcriber
from agent.tracing.render.trace import tree, warnings
from agent.tracing.render.tree import Node
from agent.tracing.store.filters import TraceFilter
from agent.types.labels import call_title
from memory.audience import PRIVATE
from memory.people.profile import UserContext
from memory.records import Erased

MAX_FACTS = 7
MAX_TRACE_LINES = 12
MAX_TRACE_DEPTH = 3
STORES = (
    "Your messages to me and my answers; the facts I take from them, each with how long it is valid; a "
    "summary of each conversation; your tasks. I store no messages that are not written to me."
)
READERS = (
    "What you tell me in private comes up only in private with you. What you tell me in a channel comes up "
    "in that channel, and in private with you."
)
STAYS = "Nothing leaves the machine I run on."
READ_PLACES = " In private I also look into the channels where you wrote, as long as you can read them."
STORE_NOTHING, STORE_AGAIN = "Store nothing of mine", "Store my messages again"
STORES_NOTHING = "Nothing about you, anywhere, as you asked. I answer, and store neither message."
STORES_NOTHING_HERE = "Nothing about you here, as you asked. I answer, and store neither message."
STORED_BEFORE = "What I stored before stays; {prefix}forget-me deletes it."
IN_PRIVATE = "Use this command in our direct messages: what it is about is private."
LINKING = (
    "there, in our direct messages and within ten minutes, use /link {code} on Discord, /hachi-link {code} "
    "on Slack. Show it to nobody: in private each account can then read what I remember of the other."
)
MAX_CODE = 20


@dataclass(frozen=True)
class PersonalCommands:
    _pet: Companion

    @property
    def commands(self) -> dict[str, Handler]:
        return {
            "forget-me": self._forget_me,
            "privacy": self._privacy,
            "checkins": self._checkins,
            "context": self._context,
            "trace": self._trace,
            "link": self._link,
            "unlink": self._unlink,
        }

    @property
    def actions(self) -> dict[str, Handler]:
        return {
            "erase": partial(self._erase, False),
            "erase-all": partial(self._erase, True),
            "link": self._link_confirmed,
            "run-call": partial(self._answer_call, True),
            "drop-call": partial(self._answer_call, False),
            "not-now": self._not_now,
            "no-check-ins": self._no_check_ins,
            "keep-nothing": partial(self._keep, False, True),
            "nothing-here": partial(self._keep, False, False),
            "keep-again": partial(self._keep, True, True),
        }

    async def _privacy(self, asker: Asker, _: str) -> Answer:
        """Say which data is stored, who may read it, and where it is sent, with buttons to opt out of
        storage."""
        prefix, private, settings = asker.prefix, asker.place.private, self._pet.settings
        unkept = await self._pet.people.unkept(user=asker.user)
        opted_out = not {PRIVATE, *asker.place.containing()}.isdisjoint(unkept)
        sent = f"To answer, I send what I need of it to {models_named(settings)}."
        hears = Transcriber.of(settings)
        where = hears and urlsplit(hears.base_url).hostname
        heard = hears and f" Voice messages and recordings are transcribed by {hears.model} at {where}."
        nothing = STORES_NOTHING if PRIVATE in unkept else STORES_NOTHING_HERE
        labelled = {
            "What I store": nothing if opted_out else STORES,
            "Who may read it": READERS + READ_PLACES * settings.read_places,
            "Where it goes": f"{sent if remote_models(settings) else STAYS}{heard or ''}",
            "What you can do": f"{prefix}memories shows and deletes what I remember, {prefix}context and "
            f"{prefix}tasks show the rest, and {prefix}forget-me deletes everything, everywhere.",
        }
        if linked := await linked_accounts(self._pet, asker):
            labelled["Linked accounts"] = f"{', '.join(linked.values())}; {prefix}unlink separates them."
        if unkept and not opted_out:
            labelled["Elsewhere"] = f"Channels where I store nothing of yours, as you asked: {len(unkept)}."
        choices = [] if opted_out else [Button(STORE_NOTHING, "keep-nothing", style="danger")]
        if not opted_out and not private:
            choices.insert(0, Button(f"{STORE_NOTHING} here", "nothing-here"))
        if unkept:
            choices.append(Button(STORE_AGAIN, "keep-again"))
        items = tuple(Item(text, label=label) for label, text in labelled.items())
        return Answer("Your privacy:", items, buttons=tuple(choices), replaces=True)

    async def _keep(self, wanted: bool, anywhere: bool, asker: Asker, _: str) -> Answer:
        """Opt the asker out of storage here or everywhere, or in again, and show the result."""
        place = PRIVATE if anywhere else asker.place
        await self._pet.people.keep(wanted, user=asker.user, place=place)
        answer = await self._privacy(asker, "")
        return answer if wanted else replace(answer, note=(STORED_BEFORE.format(prefix=asker.prefix),))

    async def _forget_me(self, asker: Asker, _: str) -> Answer:
        accounts = await self._pet.people.accounts(user=asker.user)
        erase_all = [Button("Forget all my accounts", "erase-all", style="danger")] if accounts else []
        return Answer(
            "This deletes everything I store about you, everywhere: memories, messages, summaries, tasks and "
            "your profile. It cannot be undone.",
            (Item(await self._named(accounts), label="Your linked accounts stay, unless you choose all"),)
            * bool(accounts),
            buttons=(Button("Forget me", "erase", style="danger"), *erase_all, Button("Keep it", "keep")),
        )

    async def _erase(self, linked: bool, asker: Asker, _: str) -> Answer:
        return erasure_answer(await self._pet.people.erase(user=asker.user, linked=linked))

    async def _link(self, asker: Asker, code: str) -> Answer:
        """Show a new code or, if one is passed, ask before linking with its account: somebody may have been
        talked into typing a stranger's code, and would let them read everything."""
        if not code:
            code = await self._pet.people.link_code(user=asker.user)
            return Answer(f"{code} links another account of yours with this one: {LINKING.format(code=code)}")
        other = await self._pet.people.code_is_of(code, user=asker.user)
        return Answer(
            f"This is the code of {await self._named([other])}. Link it only if that account is "
            "yours too: in private it then reads, forgets and exports all that I remember of you here, and "
            "you all that I remember there. If somebody gave you this code, do not.",
            buttons=(
                Button("It is mine: link them", "link", code[:MAX_CODE], "danger"),
                Button("No", "keep"),
            ),
        )

    async def _link_confirmed(self, asker: Asker, code: str) -> Answer:
        if not asker.place.private:
            return Answer(IN_PRIVATE)
        linked = await self._pet.people.link(code, user=asker.user)
        return Answer(
            f"Linked: {await self._named(linked)}. {asker.prefix}unlink separates them.", replaces=True
        )

    async def _unlink(self, asker: Asker, _: str) -> Answer:
        linked = await self._pet.people.unlink(user=asker.user)
        return Answer(
            f"No longer linked with {await self._named(linked)}." if linked else "This account is not linked."
        )

    async def _named(self, accounts: Sequence[str]) -> str:
        return ", ".join((await self._pet.people.account_names(accounts)).values())

    async def _checkins(self, asker: Asker, text: str) -> Answer:
        """Turn check-ins on or off, or list what is planned, each with what told of it."""
        choice, name, user, pet = text.lower(), f"{asker.prefix}checkins", asker.user, self._pet
        if choice not in ("", "on", "off"):
            return Answer(f"Use {name} on or off; without either I show what is planned.")
        if choice:
            await pet.check_ins.want(choice == "on", user=user)
        if not await pet.check_ins.wanted(user=user):
            return Answer(
                f"Check-ins are off. After {name} on I ask you here how things went, once a day at most."
            )
        items = list[Item]()
        for one in (await pet.check_ins.list(user=user))[:MAX_FACTS]:
            message_text = (await pet.conversations.message(one.messages[-1], user=user)).text
            items.append(
                Item(shorten(one.about), (one.due, f", since you wrote “{shorten(message_text, MAX_QUOTE)}”"))
            )
        zone = await pet.people.zone(user=user) or "UTC, until you tell me your time zone"
        return Answer(
            "Check-ins are on. I ask how things went that you tell me here: only here, once a day at most, "
            f"between {' and '.join(map(str, pet.settings.waking_hours))} o'clock in {zone}. "
            f"{'This is planned:' if items else 'Nothing is planned yet.'}",
            tuple(items),
            note=(f"{name} off turns them off. After two without an answer I wait until you write.",),
        )

    async def _not_now(self, asker: Asker, _: str) -> Answer:
        return Answer("All right, I will not ask about that.", outcome="not now")

    async def _no_check_ins(self, asker: Asker, _: str) -> Answer:
        await self._pet.check_ins.want(False, user=asker.user)
        return Answer(f"Check-ins are off. {asker.prefix}checkins on turns them on again.", outcome="stopped")

    async def _answer_call(self, agreed: bool, asker: Asker, id: str) -> Answer:
        """Confirm or decline a call that changes something."""
        call = await self._pet.calls.answer(id, user=asker.user, agreed=agreed)
        if call is None:
            return Answer("That is answered already, has timed out, or is for somebody else to answer.")
        if agreed:
            return Answer(f"I am doing it: {call_title(call)}. I will tell you the result.", outcome="yes")
        return Answer(f"I did not do it: {call_title(call)}.", outcome="no")

    async def _context(self, asker: Asker, _: str) -> Answer:
        items = context_items(await self._pet.people.context(**asker.scope))
        return Answer("What I know of you here:" if items else "I know nothing of you here yet.", items)

    async def _trace(self, asker: Asker, _: str) -> Answer:
        """Show the upper levels of a trace's tree, and its warnings."""
        place = "" if asker.place.private else asker.place.key
        traces, now = self._pet.traces, self._pet.clock()
        recent = await traces.list(TraceFilter(user=asker.user, place=place), now, limit=10)
        last = next((trace for trace in recent if trace.place == place and trace.said), None)
        if last is None:
            return Answer("I have no trace of a message of yours here.")
        if await traces.shows_others(last, [*await linked_accounts(self._pet, asker)]):
            return Answer("That trace holds messages of others from elsewhere. Whoever runs me can show it.")
        trace = await traces.get(last.id, now)
        root = replace(tree(trace), text=f"You: {shorten(trace.summary.said or '')}")
        lines = [*_lines(root), *warnings(trace)]
        more = f"{len(lines) - MAX_TRACE_LINES} more lines; " if len(lines) > MAX_TRACE_LINES else ""
        items = tuple(Item(line) for line in lines[:MAX_TRACE_LINES])
        return Answer("This is what I did:", items, note=(f"{more}trace {last.short}",))


async def linked_accounts(pet: Companion, asker: Asker) -> dict[str, str]:
    """Return the linked accounts of the asker, which count in private, with what people call them."""
    linked = await pet.people.accounts(user=asker.user) if asker.place.private else []
    return await pet.people.account_names(linked)


def context_items(context: UserContext) -> tuple[Item, ...]:
    """Return one line for each known field of a person."""
    fields = [
        (name.replace("_", " "), value)
        for part in (context.profile, context.preferences)
        for name, value in part
    ]
    fields += [
        ("themes", context.conversation_themes),
        ("in short", context.memory_summary),
        ("open tasks", tuple(task.description for task in context.open_tasks[:MAX_FACTS])),
        *(("fact", fact.content) for fact in context.long_term_facts[:MAX_FACTS]),
    ]
    return tuple(Item(text, label=label) for label, value in fields if (text := _text(value)))


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "; ".join(value) if isinstance(value, tuple) else str(value or "")


def erasure_answer(erased: Erased) -> Answer:
    """Return what was removed, and what is left with the reason."""
    removed = tuple(Item(str(count), label=kind) for kind, count in erased.removed.items())
    remaining = tuple(
        Item(f"{part.count}, {part.why}", label=f"{'stays' if part.expected else 'not deleted'}: {part.kind}")
        for part in erased.left
    )
    remaining += tuple(Item(where, label="out of my reach") for where in erased.out_of_reach)
    if not erased.verified:
        text = "Not everything is deleted yet: use the command again, or tell whoever runs me."
    else:
        text = "Everything I stored about you is deleted." if removed else "I had stored nothing about you."
    return Answer(text, removed + remaining, replaces=True)


def _lines(node: Node, depth: int = 0) -> Iterator[str]:
    if depth < MAX_TRACE_DEPTH:
        yield f"{'· ' * depth}{node.text}"
        for inner in node.shown(0):
            yield from _lines(inner, depth + 1)
