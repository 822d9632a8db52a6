"""`hachi knowledge`: add, list, search and remove documents."""

import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from agent.surfaces.cli.options import Most, Query, login, user_option
from agent.surfaces.cli.output import Columns, Output, plain, progress_bar, say, short, table_of
from agent.surfaces.cli.session import Companion, require, takes, with_companion
from memory.audience import GLOBAL, Place
from memory.errors import EmbedderUnavailable, IndexUnavailable

if TYPE_CHECKING:
    from memory.documents.library import IngestResult
    from memory.records import Chunk

group = typer.Typer(help="Add, list, search and remove documents.", rich_markup_mode=None)

EXCERPT = 300
"""Maximum characters of a passage that are printed; `--json` has all of it."""
NONE = "there are no documents here; `hachi knowledge add PATH` reads some"

Owner = dict[str, str | None]
"""The owner as arguments of `Companion`: a person, a place, or everybody."""


def _owner(
    user: Annotated[str | None, user_option(help="The documents of this person. Default: yours.")] = None,
    place: Annotated[
        str | None,
        typer.Option("--place", metavar="PLACE", help="The documents of a place, such as acme/general."),
    ] = None,
    everybody: Annotated[bool, typer.Option("--everybody", help="Everybody's.")] = False,
) -> Owner:
    shared = place is not None and not Place.parse(place).private
    require(not (user and shared), "give --user or --place; in a place, everybody reads the same")
    require(not (everybody and (user or place)), "--everybody goes without --user and --place")
    if everybody or shared:
        return {"user": None, "place": place}
    return {"user": user or login(), "place": None}


# File names are bytes that need not be valid text.


@group.command()
@with_companion
@takes(_owner)
async def add(
    pet: Companion,
    whose: Owner,
    paths: Annotated[
        list[bytes], typer.Argument(parser=os.fsencode, metavar="PATH...", help="Files and folders.")
    ],
) -> Output:
    """Add Markdown, text, HTML and PDF files. Unchanged files are skipped.

    Only you may read them, unless you add --place or --everybody.
    """
    names = [os.fsdecode(path) for path in paths]
    with progress_bar() as bar:
        task = bar.add_task("reading documents", total=None)
        done = await pet.documents.add_files(
            names, **whose, progress=lambda step: bar.update(task, completed=step.done, total=step.total)
        )
    try:
        await pet.admin.catch_up()
    except (IndexUnavailable, EmbedderUnavailable) as error:
        say(f"what was read is kept, and found once it is indexed: {error}")
    found = bool(done.added or done.replaced or done.unchanged or done.removed)
    readers = f"found by {_readers(**whose)}" if found else ""
    return Output(asdict(done), lambda: _print_result(done, readers), code=0 if found else 1)


def _readers(user: str | None, place: str | None) -> str:
    if user is not None:
        return f"{plain(user)} alone; --everybody or --place lets others find them"
    return f"whoever talks in {plain(place)}" if place else "everybody"


def _print_result(done: "IngestResult", readers: str) -> None:
    for unread in done.unread:
        say(plain(f"{unread.path}: {unread.reason}"))
    names = ("added", "replaced", "unchanged", "removed", "unread")
    counts = [len(getattr(done, name)) for name in names]
    told = ", ".join(f"{count} {name}" for count, name in zip(counts, names, strict=True))
    print(f"{told}; {done.chunks} new {'passage' if done.chunks == 1 else 'passages'}")
    if readers:
        print(readers)
    if not any(counts):
        say("nothing could be read; Markdown, text, HTML and PDF are read from a folder")


@group.command("list")
@with_companion
@takes(_owner)
async def list_documents(pet: Companion, whose: Owner) -> Output:
    """List the documents that you may read."""
    documents = await pet.documents.list(**whose)
    return table_of(documents, DOCUMENTS, empty=NONE)


@group.command()
@with_companion
@takes(_owner)
async def search(
    pet: Companion,
    whose: Owner,
    query: Query,
    limit: Most = 5,
) -> Output:
    """Find passages in the documents that you may read, best first."""
    passages = await pet.documents.search(query, **whose, limit=limit)
    none = "nothing was found" if passages or await pet.documents.list(**whose) else NONE
    return table_of(passages, PASSAGES, empty=none)


@group.command()
@with_companion
@takes(_owner)
async def remove(
    pet: Companion,
    whose: Owner,
    what: Annotated[
        bytes,
        typer.Argument(parser=os.fsencode, metavar="PATH|ID", help="A file, a folder, or a document's id."),
    ],
) -> Output:
    """Remove documents from Hachi. The files stay where they are."""
    gone = await pet.documents.remove(os.fsdecode(what), **whose)
    removed = [f"removed {short(document.id)}: {document.path}" for document in gone]
    return Output([asdict(document) for document in gone], "\n".join(removed))


def _excerpt(chunk: "Chunk") -> str:
    text = " ".join(chunk.text.split())
    return f"{chunk.heading or chunk.title}\n{text if len(text) <= EXCERPT else f'{text[:EXCERPT]} …'}"


DOCUMENTS: Columns = {
    "id": "id",
    "title": "title",
    "file": "path",
    "chunks": "chunks",
    "whose": lambda document: "everybody" if document.owner == GLOBAL else document.owner,
    "added": "added_at",
}
PASSAGES: Columns = {"score": lambda chunk: f"{chunk.score:.2f}", "passage": _excerpt, "file": "source"}
