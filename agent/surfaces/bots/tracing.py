"""What was done about somebody's last message, for them to see: their own turn, where they ask from."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from agent.surfaces.bots.answers import Answer, Item
from agent.tracing.render.overview import overview, warnings
from agent.tracing.render.tree import Node
from agent.tracing.store import TraceFilter

if TYPE_CHECKING:
    from agent.companion import Companion
    from agent.surfaces.bots.commands import Asker

MOST = 12
"""Lines of an answer: a chat is no terminal."""
NONE = "I have recorded nothing of what you said here."


async def last_trace(pet: "Companion", asker: "Asker") -> Answer:
    key = "" if asker.place.private else asker.place.key
    found = await pet.traces.list(TraceFilter(user=asker.user, place=key), pet.clock(), limit=10)
    mine = next((one for one in found if one.place == key and one.said), None)
    if mine is None:
        return Answer(NONE)
    trace = await pet.traces.get(mine.id, pet.clock())
    lines = [*_lines(overview(trace, hits=0)), *warnings(trace)]
    items = tuple(Item(line) for line in lines[:MOST])
    more = f"{len(lines) - MOST} more lines; " if len(lines) > MOST else ""
    return Answer("This is what I did:", items, note=f"{more}trace {mine.short}")


def _lines(node: Node, depth: int = 0) -> Iterator[str]:
    """What matters of a tree, without its drawing."""
    if depth < 3:
        yield f"{'· ' * depth}{node.text}"
        for inner in node.nodes:
            yield from _lines(inner, depth + 1)
