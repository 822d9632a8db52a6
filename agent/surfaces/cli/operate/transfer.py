"""`hachi memories export`, `import` and `erase`: all data of a person."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.errors import BadInput
from agent.surfaces.cli.options import PlaceName, User, Yes, user_option
from agent.surfaces.cli.output import (
    Output,
    confirm,
    plain,
    print_table,
    progress_bar,
    say,
    when,
    write_output,
)
from agent.surfaces.cli.session import Companion, storable_all, with_companion
from agent.tracing.render.text import json_text
from memory.audience import Place

if TYPE_CHECKING:
    from memory.records import Erased


MOST_NAMED = 20
"""Maximum number of unreadable parts of a file that are listed, one a line."""

File = Annotated[Path | None, typer.Argument(metavar="FILE", help="Default, and with -: stdin or stdout.")]


@with_companion
async def export_memories(pet: Companion, user: User, file: File = None, place: PlaceName = "dm") -> None:
    """Write all that is stored about a person or a place, as JSON."""
    where = Place.parse(place)
    if where.private:
        whole = await pet.conversations.export(user=user)
    else:
        whole = await pet.conversations.export_place(where, user=user)
    counts = f"{len(whole['memories'])} memories and {len(whole['messages'])} messages"
    write_output(file, f"{json_text(whole)}\n", f"{counts} are")


@with_companion
async def import_memories(
    pet: Companion,
    user: User,
    file: File = None,
    place: PlaceName = "dm",
    learn: Annotated[
        bool, typer.Option("--learn", help="Let the model take facts from the conversations.")
    ] = False,
    calls: Annotated[
        int | None, typer.Option("--calls", metavar="N", help="Model calls that --learn may make.")
    ] = None,
    yes: Yes = False,
) -> None:
    """Import an export of Hachi, ChatGPT, Claude or mem0, lines of {role, content}, or a transcript.

    A transcript is a list of messages with author, text and sent_at, in a place also user. The messages of a
    place's export return to that place under their users' names; before writing for other users it asks.
    """
    from agent.services.transfer.formats import read_json
    from agent.services.transfer.read_import import parse_import

    name, data = _read(file)
    try:
        parsed = parse_import(storable_all(read_json(data)), user=user)
    except RecursionError as error:
        raise BadInput(f"{name} is nested too deep") from error
    except BadInput as error:
        raise BadInput(f"{name}: {error}") from error
    others = pet.conversations.others_in(parsed, user=user, place=place)
    named = ", ".join(map(plain, others))
    await confirm(
        yes or not others,
        f"imported, since it speaks for {named}",
        f"It speaks for {named}. Store it as theirs?",
    )
    messages, memories = len(parsed.messages), len(parsed.memories)
    with progress_bar() as bar:
        task = bar.add_task("importing", total=messages + memories)
        new = await pet.conversations.import_(
            parsed,
            user=user,
            place=place,
            progress=lambda done: bar.advance(task, done),
            for_others=bool(others),
        )
    ignored = ", ".join(f"{kind} ({count})" for kind, count in (parsed.ignored or {}).items())
    left = f"; not imported: {ignored}" if ignored else ""
    say(
        f"{messages} messages and {memories} memories were read; "
        f"{new.messages} messages and {new.memories} memories of these are new{left}"
    )
    for line in parsed.unreadable[:MOST_NAMED]:
        say(f"  {plain(line)}")
    if (more := len(parsed.unreadable) - MOST_NAMED) > 0:
        say(f"  and {more} more that cannot be read")
    if learn:
        await _learn(pet, user, calls, yes)


async def _learn(pet: Companion, user: str, calls: int | None, yes: bool) -> None:
    """Show what learning costs, ask unless the number of calls is set, then show what was learned."""
    cost = await pet.preview_learn(user=user)
    say(
        f"{cost.conversations} conversations with {cost.messages} messages are to be learned from: about "
        f"{cost.calls} calls of {cost.model}, {cost.input:,} tokens read and {cost.output:,} written"
    )
    if not cost.messages:
        return
    await confirm(yes or calls is not None, "learned", f"Make at most {2 * cost.calls} calls?")
    with progress_bar() as bar:
        task = bar.add_task("learning", total=cost.messages)
        done = await pet.learn(
            user=user, calls=calls or 2 * cost.calls, progress=lambda read: bar.advance(task, read)
        )
    used = f"{done.usage.input:,} tokens read and {done.usage.output:,} written"
    rest = done.remaining.messages
    left = f"; {rest} messages are left, import again with --learn" if rest else ""
    say(f"{done.facts} facts were learned in {done.calls} calls, {used}{left}")


def _read(file: Path | None) -> tuple[str, bytes]:
    if file is None or str(file) == "-":
        return "stdin", sys.stdin.buffer.read()
    return str(file), file.read_bytes()


@with_companion
async def erase(
    pet: Companion,
    user: Annotated[str, user_option(help="Whom to erase.")],
    linked: Annotated[bool, typer.Option("--linked", help="Their linked accounts too.")] = False,
    yes: Yes = False,
) -> Output:
    """Erase a person: all of their data, everywhere, for good. Exit 1 if something could not be deleted."""

    async def preview() -> str:
        counts = await pet.people.preview_erase(user=user, linked=linked)
        return "\n".join(f"{kind}: {count}" for kind, count in counts.items())

    await confirm(yes, "erased", f"Erase all of this of {plain(user)} for good?", preview)
    receipt = await pet.people.erase(user=user, linked=linked)
    return Output(receipt.to_json(), lambda: _print_receipt(receipt), code=0 if receipt.verified else 1)


def _print_receipt(receipt: "Erased") -> None:
    print_table(("what", "removed"), [(kind, str(count)) for kind, count in receipt.removed.items()])
    reasons: dict[tuple[bool, str], list[str]] = {}
    for left in receipt.left:
        reasons.setdefault((left.expected, left.why), []).append(f"{left.count} {left.kind}")
    for (expected, why), where in reasons.items():
        print(f"{'stays, as it is not theirs' if expected else 'STILL THERE'}: {', '.join(where)}: {why}")
    for place in receipt.out_of_reach:
        print(f"not in reach: {place}")
    done = "verified: nothing of theirs is left" if receipt.verified else "not verified: see above"
    print(f"{plain(receipt.user)} was erased at {when(receipt.at)}; {done}")
