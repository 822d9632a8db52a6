"""`hachi knowledge`: the documents that answers are looked up in."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated

import typer

from agent.surfaces.cli.options import Json, Limit, OneUser, Query, clean
from agent.surfaces.cli.output import (
    console,
    plain,
    print_json,
    print_records,
    progress_bar,
    say,
    short,
    when,
)
from agent.surfaces.cli.session import require, with_companion
from memory.audience import GLOBAL, Audience, Place
from memory.errors import EmbedderUnavailable, IndexUnavailable

if TYPE_CHECKING:
    from rich.progress import Progress

    from agent.companion import Companion
    from memory.documents import IngestProgress, IngestResult
    from memory.records import Chunk, Document

group = typer.Typer(
    help="Add, list, search and remove documents to look things up in.", rich_markup_mode=None
)

EXCERPT = 300
"""Characters of a passage that are printed; `--json` has all of it."""
MAX_NAME = 40
"""Characters of a file's name beside the bar."""
NONE = "there are no documents here; `hachi knowledge add PATH` reads some"

OnePlace = Annotated[
    str | None,
    typer.Option("--place", parser=clean, metavar="PLACE", help="A place's, such as acme/general."),
]


@group.command()
@with_companion
async def add(
    pet: "Companion",
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="Files and folders.")],
    user: OneUser = None,
    place: OnePlace = None,
    json: Json = False,
) -> None:
    """Read Markdown, text, HTML and PDF, for everybody unless said; again: only what has changed."""
    with progress_bar() as bar:
        done = await pet.add_knowledge(paths, user=user, place=place, progress=_shown_on(bar))
    try:
        await pet.services.documents.library.catch_up()
    except (IndexUnavailable, EmbedderUnavailable) as error:
        say(f"what was read is kept, and found once it is indexed: {error}")
    if json:
        print_json(asdict(done))
    else:
        for unread in done.unread:
            say(plain(f"{unread.path}: {unread.reason}"))
        print(_counts(done))
    if not (done.added or done.replaced or done.unchanged or done.removed):
        if json or not done.unread:
            say("nothing could be read; Markdown, text, HTML and PDF are read from a folder")
        raise typer.Exit(1)


@group.command("list")
@with_companion
async def list_documents(
    pet: "Companion", user: OneUser = None, place: OnePlace = None, json: Json = False
) -> None:
    """What everybody may look things up in; with a person or a place, theirs too."""
    found = await pet.services.documents.library.documents(_audience(user, place))
    print_records(found, json, ("id", "title", "file", "chunks", "whose", "added"), _row, empty=NONE)


@group.command()
@with_companion
async def search(
    pet: "Companion",
    query: Query,
    user: OneUser = None,
    place: OnePlace = None,
    limit: Limit = 5,
    json: Json = False,
) -> None:
    """Find passages in what everybody may read; with a person or a place, in theirs too."""
    audience, library = _audience(user, place), pet.services.documents.library
    found = await library.search(query, audience, limit)
    if json:
        print_json([asdict(chunk) for chunk in found])
    elif found:
        _print_passages(found)
    else:
        say("nothing was found" if await library.documents(audience) else NONE)


@group.command()
@with_companion
async def remove(
    pet: "Companion",
    what: Annotated[str, typer.Argument(metavar="PATH|ID", help="A file, a folder, or a document's id.")],
    user: OneUser = None,
    place: OnePlace = None,
    json: Json = False,
) -> None:
    """Take documents away; the files stay where they are."""
    gone = await pet.remove_knowledge(what, user=user, place=place)
    if json:
        print_json([asdict(document) for document in gone])
        return
    for document in gone:
        print(plain(f"removed {short(document.id)}: {document.path}"))


def _audience(user: str | None, place: str | None) -> Audience:
    where = Place.parse(place)
    require(user is None or where.private, "give --user or --place; in a place, everybody reads the same")
    require(place is None or user is not None or not where.private, "dm is private; whose? give --user")
    if user is None and where.private:
        return Audience(frozenset({GLOBAL}))
    return Audience.of(user or "", where)


def _shown_on(bar: "Progress") -> "Callable[[IngestProgress], None]":
    from rich.markup import escape

    task = bar.add_task("looking for documents", total=None)

    def show(step: "IngestProgress") -> None:
        name = plain(PurePath(step.path).name)
        name = name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…"
        # After the last file the rest is embedded.
        bar.update(task, description=escape(name or "indexing"), completed=step.done, total=step.total)

    return show


def _counts(done: "IngestResult") -> str:
    names = ("added", "replaced", "unchanged", "removed", "unread")
    counts = ", ".join(f"{len(getattr(done, name))} {name}" for name in names)
    return f"{counts}; {done.chunks} new {'passage' if done.chunks == 1 else 'passages'}"


def _row(document: "Document") -> list[str]:
    whose = "everybody" if document.owner == GLOBAL else document.owner
    added = when(document.added_at)
    return [short(document.id), document.title, document.path, str(document.chunks), whose, added]


def _print_passages(found: "list[Chunk]") -> None:
    from rich.padding import Padding
    from rich.text import Text

    out = console()
    for number, chunk in enumerate(found):
        lines = (_heading(chunk), chunk.source, _excerpt(chunk.text))
        head, *rest = (Text(plain(line), overflow="fold") for line in lines)
        if number:
            out.print()
        out.print(Text(f"{chunk.score:.2f}  ").append_text(head))
        for line in rest:
            out.print(Padding(line, (0, 0, 0, 6), expand=False))


def _heading(chunk: "Chunk") -> str:
    """The title and the headings; a document often repeats its title as its first heading."""
    title, heading = " ".join(chunk.title.split()), " ".join(chunk.heading.split())
    if not heading or heading == title or heading.startswith(f"{title} > "):
        return heading or title
    return f"{title} > {heading}"


def _excerpt(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= EXCERPT else f"{line[:EXCERPT]} …"
