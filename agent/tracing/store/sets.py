"""Sets of turns by name, to be replayed again and again.

A set names ids. A trace that was forgotten or deleted stays in it, and is counted apart when the set runs.
"""

from collections.abc import Collection, Sequence

from sqlalchemy import delete, func, select
from sqlalchemy.dialects.postgresql import insert

from agent.errors import BadInput
from agent.tracing.store.traces import Traces
from agent.tracing.trace import Summary
from memory.errors import NotFound
from memory.sql.tables import trace_sets
from memory.sql.tables import traces as traces_table


async def add_to_set(traces: Traces, name: str, turns: Sequence[Summary], holds: Collection[str] = ()) -> int:
    """Add turns, with the texts that their replies must hold. Returns how many the set has then. Raises
    BadInput for a turn whose content is forgotten."""
    for one in turns:
        if one.content != "kept":
            raise BadInput(f"the content of {one.short} is forgotten, so that it cannot be replayed")
    rows = [{"name": name, "trace_id": one.id, "holds": "\n".join(holds)} for one in turns]
    insertion = insert(trace_sets)
    kept = {"holds": insertion.excluded.holds}
    statement = insertion.on_conflict_do_update(index_elements=["name", "trace_id"], set_=kept)
    async with traces.database.write() as connection:
        if rows:
            await connection.execute(statement, rows)
    return (await sets(traces)).get(name, 0)


async def sets(traces: Traces) -> dict[str, int]:
    """Return how many turns each set has."""
    name = trace_sets.c.name
    counted = select(name, func.count().label("turns")).group_by(name).order_by(name)
    return {row.name: row.turns for row in await traces.database.rows(counted)}


async def turns_of_set(traces: Traces, name: str) -> dict[str, list[str]]:
    """Return what the reply of each turn must hold, by the turns' ids, oldest first. Raises NotFound."""
    when = traces_table.c.id == trace_sets.c.trace_id
    chosen = select(trace_sets).outerjoin(traces_table, when).where(trace_sets.c.name == name)
    chosen = chosen.order_by(traces_table.c.seq, trace_sets.c.trace_id)
    found = {row.trace_id: row.holds.splitlines() for row in await traces.database.rows(chosen)}
    if not found:
        known = ", ".join(await sets(traces)) or "none"
        raise NotFound(f"there is no set {name!r}; there are: {known}")
    return found


async def delete_set(traces: Traces, name: str) -> int:
    """Delete a set, and no trace. Returns how many turns it had. Raises NotFound."""
    turns = await turns_of_set(traces, name)
    async with traces.database.write() as connection:
        await connection.execute(delete(trace_sets).where(trace_sets.c.name == name))
    return len(turns)
