"""`hachi memories export`, `import` and `erase`: all that is kept of a person."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.errors import BadInput
from agent.surfaces.cli.options import PlaceName, User, Yes, person
from agent.surfaces.cli.output import (
    Output,
    confirm,
    must_ask,
    plain,
    print_table,
    progress_bar,
    say,
    when,
    write_output,
)
from agent.surfaces.cli.session import storable_all, with_companion
from agent.tracing.render.text import json_text
from memory.audience import Place

if TYPE_CHECKING:
    from agent.companion import Companion
    from memory.erasure.person.receipt import Erased

File = Annotated[Path | None, typer.Argument(metavar="FILE", help="Stdin or stdout by default, or for -.")]


@with_companion
async def export_memories(pet: "Companion", user: User, file: File = None, place: PlaceName = "dm") -> None:
    """Write all that is kept of a person or a place, as JSON."""
    where = Place.parse(place)
    if where.private:
        whole = await pet.conversations.export(user=user)
    else:
        whole = await pet.conversations.export_place(where, user=user)
    counts = f"{len(whole['memories'])} memories and {len(whole['messages'])} messages"
    write_output(file, f"{json_text(whole)}\n", f"{counts} are")


@with_companion
async def import_memories(
    pet: "Companion", user: User, file: File = None, place: PlaceName = "dm", yes: Yes = False
) -> None:
    """Import an export, or a transcript.

    A transcript is a list of messages with author, text and sent_at, in a place also user. A place's export
    goes back to that place, and each message and memory to whose it was: it asks before it speaks for others.
    """
    from agent.services.transfer.imports import parse_import

    name, data = _read(file)
    try:
        given = storable_all(json.loads(data))
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{name} is no JSON: {error}") from error
    try:
        parsed = parse_import(given, user=user)
    except BadInput as error:
        raise BadInput(f"{name}: {error}") from error
    others = pet.conversations.others_in(parsed, user=user, place=place)
    if others and must_ask(yes, f"imported, since it speaks for {', '.join(map(plain, others))}"):
        confirm(f"It speaks for {', '.join(map(plain, others))}. Store it as theirs?", "imported")
    messages, memories = len(parsed.messages), parsed.count
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


def _read(file: Path | None) -> tuple[str, bytes]:
    if file is None or str(file) == "-":
        return "stdin", sys.stdin.buffer.read()
    return str(file), file.read_bytes()


@with_companion
async def erase(
    pet: "Companion",
    user: Annotated[str, typer.Option("--user", "-u", parser=person, metavar="NAME", help="Whom to erase.")],
    yes: Yes = False,
) -> Output:
    """Erase a person: all that is theirs, everywhere, for good. Exit 1 if something is left."""
    if must_ask(yes, "erased"):
        found = await pet.people.preview_erase(user=user)
        print_table(("what", "how much"), [(kind, str(count)) for kind, count in found.items()])
        confirm(f"Erase all of this of {plain(user)} for good?", "erased")
    receipt = await pet.people.erase(user=user)
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
