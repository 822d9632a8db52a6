"""Traces in SQL, on both databases."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import event

from agent.errors import BadInput
from agent.tracing.redact import Redaction
from agent.tracing.serialization import Serializer, StoredTrace
from agent.tracing.store.filters import TraceFilter
from agent.tracing.store.stats import stats_of
from agent.tracing.store.traces import Traces
from agent.tracing.trace import Summary
from memory.errors import NotFound
from memory.process.identity import this_process
from memory.process.spans import Recording, Span
from memory.sql.engine import Database
from memory.sql.hidden import begin, hide, show

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
EVERY = TraceFilter(kinds=frozenset())
SERIALIZER = Serializer("full", Redaction(), {"tools": {"remember": {}}}, "python", this_process())


@pytest.fixture(params=["sqlite", "postgresql"])
async def database(request, tmp_path):
    if request.param == "sqlite":
        opened = await Database.open(None, tmp_path)
    else:
        opened = await Database.open(await request.getfixturevalue("postgresql").new(), tmp_path)
    yield opened
    await opened.close()


@pytest.fixture
def traces(database):
    return Traces(database)


def id_of(number: int) -> str:
    return f"trace_{number:032x}"


def made(number: int, *, ended: bool = True, root: Span | None = None, **about: Any) -> StoredTrace:
    usual: dict[str, Any] = {"kind": "turn", "started_at": NOW, "user": "ana", "said": f"said {number}"}
    recorded = Recording(id_of(number), root or Span("turn"))
    recorded.open = not ended
    if ended and recorded.root.took is None:
        recorded.root.took = 1.0
    return SERIALIZER.serialize(recorded, Summary(id=recorded.id, **usual | about))


def tool(name: str, *, ok: bool = True) -> Span:
    return Span("turn", spans=[Span("tool", name, data={"ok": ok, "result": "{}"})])


async def ids(traces: Traces, **wanted: Any) -> list[int]:
    return [int(one.id[6:], 16) for one in await traces.list(TraceFilter(**wanted), NOW)]


async def test_a_trace_is_read_as_it_was_written(traces):
    root = Span("turn", data={"incoming": {"text": "half \ud83d, 茶"}}, spans=[Span("scene", at=0.25)])
    stored = made(1, root=root)
    await traces.write([stored], NOW, made_by=(SERIALIZER.made_by_key, SERIALIZER.made_by))
    trace = await Traces(traces.database).get(id_of(1), NOW)
    assert trace.summary == stored.summary
    assert trace.root == root
    assert trace.made_by == SERIALIZER.made_by


async def test_a_trace_written_again_keeps_its_place_but_not_if_it_was_deleted_meanwhile(traces):
    await traces.write([made(1, ended=False)], NOW)
    await traces.write([made(2)], NOW)
    await traces.write([made(1)], NOW, stored={id_of(1)})
    found = await traces.list(TraceFilter(), NOW)
    assert [(one.id, one.status) for one in found] == [(id_of(2), "ok"), (id_of(1), "ok")]
    assert await traces.prune(NOW + timedelta(seconds=1)) == 2
    assert await traces.write([made(1), made(3)], NOW, stored={id_of(1)}) == 1
    assert await ids(traces) == [3]


async def test_a_list_fulfils_every_condition(traces):
    await traces.write(
        [
            made(1, root=tool("search_memories")),
            made(2, root=tool("search_memories", ok=False), user="ben", place="acme/general"),
            made(3, root=Span("turn", took=9.0, error="ModelError: away"), said="100% of\nIt", user="ben"),
            made(4, started_at=NOW - timedelta(days=2), place="acme/general/thread", reply="Ünder the Ice"),
            made(5, kind="consolidate", turn_id=id_of(1), root=Span("consolidate"), user=None),
            made(6, place="acme/generally"),
        ],
        NOW,
    )
    for wanted, expected in (
        ({}, [6, 4, 3, 2, 1]),
        ({"kinds": frozenset()}, [6, 5, 4, 3, 2, 1]),
        ({"user": "ben"}, [3, 2]),
        ({"place": "acme/general"}, [4, 2]),
        ({"place": ""}, [3, 1]),
        ({"tool": "search_memories"}, [2, 1]),
        ({"tool": "memories"}, []),
        ({"failed": True}, [3, 2]),
        ({"text": "100% OF"}, [3]),
        ({"text": "the ice"}, [4]),
        ({"text": "%"}, [3]),
        ({"since": NOW - timedelta(hours=1)}, [6, 3, 2, 1]),
        ({"slower": 5.0}, [3]),
    ):
        assert await ids(traces, **wanted) == expected, wanted
    assert await traces.count(TraceFilter(user="ben", failed=True)) == 2
    first = await traces.list(EVERY, NOW, 3)
    rest = await traces.list(EVERY, NOW, 2, before=first[-1].id)
    assert [one.id for one in (*first, *rest)] == [id_of(number) for number in (6, 5, 4, 3, 2)]
    assert [trace.id for trace in await traces.after(id_of(1), NOW)] == [id_of(5)]


async def test_a_trace_is_found_by_the_beginning_of_its_id(traces):
    with pytest.raises(NotFound, match="there is no trace yet"):
        await traces.find("last", NOW)
    await traces.write([made(0xABCD << 112), made((0xABCE << 112) + 1), made(7, kind="consolidate")], NOW)
    assert (await traces.find("abcd", NOW)).id.startswith("trace_abcd")
    assert (await traces.find(" TRACE_ABCD0 ", NOW)).id.startswith("trace_abcd")
    assert (await traces.find("last", NOW)).id.startswith("trace_abce")
    with pytest.raises(NotFound, match="no trace 'ffff'"):
        await traces.find("ffff", NOW)
    with pytest.raises(BadInput, match="no id of a trace"):
        await traces.find("%", NOW)
    await traces.write([made((0xABCD << 112) + 5)], NOW)
    with pytest.raises(BadInput, match="several traces begin with 'abcd'"):
        await traces.find("abcd", NOW)


async def test_a_running_trace_whose_process_is_gone_was_killed(traces):
    host = this_process().rpartition(":")[0]
    processes = (f"{host}:999999999-1", f"{host}:1-1", "elsewhere:1-1", this_process())
    for number, where in enumerate(processes, 2):
        stored = made(number, ended=False)
        assert stored.summary.status == "running"
        await traces.write([stored._replace(summary=replace(stored.summary, process=where))], NOW)

    found = {one.process: one.status for one in await traces.list(TraceFilter(), NOW)}
    statuses = ["killed", "killed", "running", "running"]  # the second one's number is another's now
    assert found == dict(zip(processes, statuses, strict=True))
    later = NOW + timedelta(minutes=16)
    assert {one.status for one in await traces.list(TraceFilter(), later)} == {"killed"}
    assert id_of(5) not in {one.id for one in await traces.list(TraceFilter(failed=True), NOW)}


async def test_traces_of_erased_messages_and_people_are_not_written(traces):
    gone = made(1, message_id="5c8a2f0e-0000-4000-8000-000000000000")
    work = made(2, kind="consolidate", root=Span("consolidate", error="x"), user="nobody")
    assert await traces.write([gone, work, made(3)], NOW) == 1
    assert await ids(traces, kinds=frozenset()) == [3]


async def test_pruning_deletes_what_began_before_in_batches(traces, monkeypatch):
    monkeypatch.setattr("agent.tracing.store.traces.BATCH", 2)
    old = [made(number, started_at=NOW - timedelta(days=9)) for number in range(2, 7)]
    await traces.write([made(1), *old], NOW)
    assert await traces.prune(NOW - timedelta(days=1)) == 5
    assert await ids(traces) == [1]
    with pytest.raises(NotFound):
        await traces.get(id_of(2), NOW)


ROW, OTHER, THIRD = (f"00000000-0000-4000-8000-{number:012x}" for number in range(3))


def showing(number: int, *ids: str, **more: Any) -> StoredTrace:
    """A trace whose search found these rows."""
    search = Span("search", data={"found": [(id, 0.5) for id in ids]})
    return made(number, root=Span("turn", data={"reply": {"message": "hi"}}, spans=[search]), **more)


async def test_what_shows_a_hidden_row_is_in_no_read_and_shown_again(traces, database):
    await traces.write([showing(1, ROW, OTHER), showing(2, OTHER), showing(3, ROW, turn_id=id_of(2))], NOW)
    async with database.write() as connection:
        forgetting = await begin(connection, "ana", "forgotten", NOW, NOW)
        await hide(connection, forgetting, {"message": [ROW]})

    listed = {one.id: one for one in await traces.list(EVERY, NOW)}
    assert [listed[id_of(n)].content for n in (1, 2, 3)] == ["hidden", "kept", "hidden"]
    assert (listed[id_of(1)].said, listed[id_of(1)].status) == ("", "ok")
    assert [one.id for one in await traces.list(TraceFilter(text="said"), NOW)] == [id_of(2)]
    assert (await traces.get_with_jobs(id_of(2), NOW)).jobs == []
    with pytest.raises(NotFound, match="is forgotten for now"):
        await traces.get(id_of(1), NOW)

    async with database.write() as connection:
        await show(connection, "message", [ROW])
    assert (await traces.get(id_of(1), NOW)).summary.said == "said 1"


async def test_what_shows_a_row_that_is_gone_loses_its_content_alone(traces):
    await traces.write([showing(1, ROW, OTHER), showing(2, OTHER), showing(3, ROW, user=None)], NOW)
    assert await traces.forget([ROW, THIRD, "no id"]) == 1
    listed = {one.id: one for one in await traces.list(EVERY, NOW)}
    assert [listed[id_of(n)].content for n in (1, 2, 3)] == ["forgotten", "kept", "kept"]
    assert (listed[id_of(1)].said, listed[id_of(1)].status) == ("", "ok")
    with pytest.raises(NotFound, match="is forgotten: it showed"):
        await traces.get(id_of(1), NOW)
    assert await traces.forget([ROW]) == 0


async def test_statistics_are_added_up_in_one_statement(traces):
    await traces.write([made(1), made(2), made(3, user="ben")], NOW)
    found = await stats_of(traces, TraceFilter(kinds=frozenset()))
    assert (found["total"]["turns"], found["people"]["ana"]["turns"]) == (3, 2)
    assert found["days"].keys() == {f"{NOW:%Y-%m-%d}"}
    assert (found["total"]["p95"], found["total"]["statuses"]) == (1.0, {"ok": 3})


async def test_what_shows_hidden_rows_is_asked_in_one_statement_that_reads_by_indexes(traces, database):
    await traces.write(
        [
            showing(number, *(f"{number:08x}-0000-4000-8000-{n:012x}" for n in range(50)))
            for number in range(1, 21)
        ],
        NOW,
    )
    asked = list[tuple[str, Any]]()

    def note(connection: Any, cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if "hidden" in statement:
            asked.append((statement, parameters))

    async with database.write() as connection:
        await hide(connection, await begin(connection, "ana", "forgotten", NOW, NOW), {"message": [ROW]})
    event.listen(database.engine.sync_engine, "before_cursor_execute", note)
    assert len(await traces.list(EVERY, NOW)) == 20
    [(statement, parameters)] = asked
    async with database.write() as connection:
        if database.sqlite:
            plan = await connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
        else:
            await connection.exec_driver_sql("SET LOCAL enable_seqscan = off")  # of tables as small as these
            plan = await connection.exec_driver_sql(f"EXPLAIN {statement}", parameters)
        lines = [row[-1] for row in plan]
    whole = re.compile(r"(SCAN|.*Seq Scan on) (trace_rows|hidden|memory_owners)")
    assert [line for line in lines if whole.match(line)] == []
