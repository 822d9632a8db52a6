"""A call that changes something runs once its person agrees, once, and what it answers comes back."""

import json
from typing import Any

import mcp_weather
import pytest

from agent.background import confirmed_calls
from agent.turn.mcp_servers import transport
from hachi import Companion, ModelUnavailable
from hachi.testing import AnsweringModel, tool_call
from memory.sql.jobs.job import CALL
from tools.proposed_call import ProposedCall

ANA = "discord:1"
MOVED = {"message": "The clouds are in Lyon.", "memories": []}
QUESTION = {"message": "I have asked you.", "memories": []}


@pytest.fixture
def clouds(tmp_path, monkeypatch):
    """`clouds()`: how often the clouds were moved."""
    monkeypatch.setattr(transport, "ENDS_WITHIN", 0.1)
    file, servers = tmp_path / "clouds", tmp_path / "servers.json"
    file.touch()
    badly = mcp_weather.BADLY | {"env": {"CLOUDS": str(file)}}
    servers.write_text(json.dumps({"admins": [ANA], "mcpServers": {"sky": badly}}))

    def count() -> int:
        return len(file.read_text().splitlines())

    count.servers = servers
    return count


@pytest.fixture
def proposed(open_pet, clouds):
    """`await proposed()`: a companion with a call that Ana is asked about, and its id."""

    async def open(model: Any = None, **settings: Any) -> tuple[Companion, str]:
        call = tool_call("sky_move_clouds", town="Lyon")
        pet = await open_pet(
            given=model or AnsweringModel(call, QUESTION, then=MOVED), mcp=clouds.servers, **settings
        )
        ids = list[str]()

        async def confirm(call: ProposedCall) -> None:
            ids.append(await pet.calls.propose(call))

        reply = await pet.respond("Move the clouds to Lyon", user=ANA, confirm=confirm)
        assert reply.message == "I have asked you."
        assert reply.tools[0].result.startswith("not run yet")
        return pet, ids[0]

    return open


async def claimed(pet: Companion) -> list[Any]:
    return await pet.components.queue.claim_of([CALL], "discord:", pet.clock())


async def run(pet: Companion) -> list[str]:
    """Do the jobs, as a bot does. Returns what the person is told."""
    texts = list[str]()
    for job in await claimed(pet):
        async with pet.components.queue.working_on(job):
            texts.append((await pet.calls.run_job(job))[1])
            await pet.components.queue.done(job)
    return texts


@pytest.mark.parametrize("on_postgresql", [False, True])
async def test_it_runs_once_however_often_the_person_agrees_and_they_are_told(
    proposed, clouds, postgresql, on_postgresql
):
    pet, id = await proposed(**({"database_url": await postgresql.new()} if on_postgresql else {}))
    assert (await run(pet), clouds()) == ([], 0)
    pressed = [await pet.calls.answer(id, user=ANA, agreed=True) for _ in range(2)]
    assert [call and call.arguments for call in pressed] == ['{"town": "Lyon"}', None]
    assert (await run(pet), await run(pet), clouds()) == (["The clouds are in Lyon."], [], 1)
    newest, *_ = await pet.conversations.messages(user=ANA)
    assert newest.text == "The clouds are in Lyon."


async def test_what_the_server_answered_is_shown_as_data_and_the_turn_only_reads(proposed, clouds):
    model = AnsweringModel(tool_call("sky_move_clouds", town="Lyon"), QUESTION, then=MOVED)
    pet, id = await proposed(model)
    await pet.calls.answer(id, user=ANA, agreed=True)
    await run(pet)
    prompt = model.inputs[-1][-1]["content"]
    assert "run sky_move_clouds with {”town”: ”Lyon”}" in prompt
    assert "> fine" in prompt


@pytest.mark.parametrize("case", ["no", "late", "other", "forgotten"])
async def test_nothing_runs_where_the_person_did_not_agree(proposed, clouds, clock, case):
    pet, id = await proposed()
    if case == "late":
        clock.advance(minutes=10)
    if case == "forgotten":
        messages = [one for one in await pet.conversations.messages(user=ANA) if one.role == "user"]
        await pet.conversations.forget(messages[0].id, user=ANA)
    user = "discord:2" if case == "other" else ANA
    answered = await pet.calls.answer(id, user=user, agreed=case != "no")
    assert (answered is not None, await run(pet), clouds()) == (case == "no", [], 0)
    clock.advance(minutes=10)
    assert await pet.calls.drop_late() == (case in ("late", "other"))


async def test_a_process_that_ends_while_it_runs_does_not_run_it_again(
    proposed, clouds, monkeypatch, end_claims
):
    pet, id = await proposed()
    await pet.calls.answer(id, user=ANA, agreed=True)

    class Killed(BaseException):
        pass

    async def ends(*_: Any) -> str:
        raise Killed

    result = confirmed_calls.ConfirmedCalls._result
    monkeypatch.setattr(confirmed_calls.ConfirmedCalls, "_result", ends)
    [job] = await claimed(pet)
    with pytest.raises(Killed):
        await pet.calls.run_job(job)
    monkeypatch.setattr(confirmed_calls.ConfirmedCalls, "_result", result)
    end_claims()
    await pet.components.queue.take_up(pet.clock())
    assert (await run(pet), clouds()) == (["The clouds are in Lyon."], 0)


async def test_a_turn_that_fails_is_taken_again_without_another_call(proposed, clouds):
    call = tool_call("sky_move_clouds", town="Lyon")
    pet, id = await proposed(AnsweringModel(call, QUESTION, ModelUnavailable("away"), then=MOVED))
    await pet.calls.answer(id, user=ANA, agreed=True)
    [job] = await claimed(pet)
    with pytest.raises(ModelUnavailable):
        await pet.calls.run_job(job)
    await pet.components.queue.postpone(job, pet.clock())
    assert (await run(pet), clouds()) == (["The clouds are in Lyon."], 1)


async def test_a_server_that_is_gone_by_then_is_told_of(proposed, clouds):
    model = AnsweringModel(tool_call("sky_move_clouds", town="Lyon"), QUESTION, then=MOVED)
    pet, id = await proposed(model)
    [server] = pet.components.extensions.connections
    await server.close()
    object.__setattr__(server.server, "args", ("-c", "raise SystemExit"))
    await pet.calls.answer(id, user=ANA, agreed=True)
    await run(pet)
    assert "It failed: sky cannot be reached" in model.inputs[-1][-1]["content"]


async def test_a_turn_that_is_taken_again_asks_about_the_same_call(proposed):
    pet, id = await proposed()
    call = await pet.calls.answer(id, user=ANA, agreed=True)
    assert call
    assert await pet.calls.propose(call) == id


async def test_without_somebody_to_ask_it_is_not_offered(open_pet, clouds):
    pet = await open_pet(given=AnsweringModel(tool_call("sky_move_clouds"), then=MOVED), mcp=clouds.servers)
    [called] = (await pet.respond("Move the clouds", user=ANA)).tools
    assert "no tool 'sky_move_clouds'" in called.result


async def test_a_program_that_asks_at_once_runs_it_within_the_turn(open_pet, clouds):
    pet = await open_pet(given=AnsweringModel(tool_call("sky_move_clouds"), then=MOVED), mcp=clouds.servers)

    async def confirm(_: ProposedCall) -> bool:
        return True

    [called] = (await pet.respond("Move the clouds", user=ANA, confirm=confirm)).tools
    assert (called.ok, clouds()) == (True, 1)
