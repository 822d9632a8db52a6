"""What a program adds to the loop: tools, guardrails, hooks, limits for one call, a type as answer."""

import asyncio
import json
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Annotated, Any, Literal

import pytest
from agents import (
    GuardrailFunctionOutput,
    InputGuardrail,
    OutputGuardrail,
    RunContextWrapper,
    RunHooks,
    function_tool,
)
from agents.mcp import MCPServer
from mcp.types import CallToolResult, TextContent
from mcp.types import Tool as ListedTool
from pydantic import BaseModel, Field
from scripted_server import answer

from agent.errors import AnswerMisfit, GuardrailTripped, ModelUnavailable, SettingsError
from agent.replay.replay import replay
from hachi import (
    BadInput,
    HachiError,
    MemoryDecided,
    TextWritten,
    ToolEnded,
    ToolStarted,
    TryAgain,
    TurnContext,
    TurnDone,
    tool,
)
from hachi.testing import AnsweringModel, assert_remembered, tool_call
from tests.hachi.conftest import Opened
from tools import threads

OURS = ["search_memories", "get_recent_memories", "search_knowledge", "remember", "update_task"]
SUNNY = {"message": "It is sunny.", "memories": []}


class Town(BaseModel):
    name: str
    country: str = "France"


async def get_weather(town: str, unit: Literal["C", "F"] = "C") -> dict[str, Any]:
    """The weather in a town, now."""
    return {"town": town, "degrees": 21, "unit": unit}


def outputs(model: AnsweringModel) -> list[str]:
    """What the last call was told by tools."""
    return [item["output"] for item in model.inputs[-1] if item.get("type") == "function_call_output"]


@pytest.fixture
def ask(hachi_companion: Opened) -> Any:
    """`await ask(tools, call)`: what the model is told of the call by one of these tools."""

    async def asked(tools: list[Any], call: list[Any], **options: Any) -> str:
        model = AnsweringModel(call, then=SUNNY)
        async with hachi_companion(model=model, tools=tools, **options) as pet:
            await pet.respond("is it sunny?", user="ana")
        [told] = outputs(model)
        return told

    return asked


async def test_a_plain_function_is_a_tool_in_traces_and_replays(hachi_companion):
    model = AnsweringModel(tool_call("get_weather", town="Lyon"), then=SUNNY)
    async with hachi_companion(model=model, tools=[get_weather]) as pet:
        reply = await pet.respond("is it sunny?", user="ana")
        await pet.settle()
        whole = await pet.traces.get_with_jobs(reply.trace_id, pet.clock())
        trace = whole.trace
        [span] = trace.spans("tool")
        again = await replay(pet, whole)

    [called] = reply.tools
    assert (called.name, called.arguments, called.ok) == ("get_weather", {"town": "Lyon"}, True)
    assert json.loads(called.result) == {"town": "Lyon", "degrees": 21, "unit": "C"}
    assert span.data["result"] == called.result
    assert trace.made_by["tools"]["get_weather"]["description"] == "The weather in a town, now."
    assert again.differences == ()


async def test_a_program_says_which_of_our_tools_are_offered(hachi_companion):
    offered: list[list[str]] = []

    class Watching(AnsweringModel):
        async def get_response(
            self, system: Any, input: Any, settings: Any, tools: Any, *rest: Any, **more: Any
        ) -> Any:
            offered.append([one.name for one in tools])
            return await super().get_response(system, input)

    for only in (None, ["remember"], []):
        async with hachi_companion(model=Watching(), tools=[get_weather], only_tools=only) as pet:
            await pet.respond("hello", user="ana")
    assert offered == [[*OURS, "get_weather"], ["remember", "get_weather"], ["get_weather"]]


async def test_a_function_may_be_sync_and_its_types_may_be_rich(ask):
    threads = []

    @tool(name="find_town")
    def find(town: Town, names: list[str], size: int | str | None = None) -> Town:
        """Find a town."""
        threads.append(threading.current_thread())
        return Town(name=names[0], country=town.country)

    assert find.schema["properties"]["town"] == {"$ref": "#/$defs/Town"}
    assert find.schema["$defs"]["Town"]["required"] == ["name"]
    assert len(find.schema["properties"]["size"]["anyOf"]) == 3
    told = await ask([find], tool_call("find_town", town={"name": "x"}, names=["Lyon"]))
    assert json.loads(told) == {"name": "Lyon", "country": "France"}
    assert threads != [threading.main_thread()]


async def test_a_function_that_wants_it_gets_the_turn(ask):
    def whoami(turn: TurnContext, loud: Annotated[bool, Field(description="shout")] = False) -> str:
        """Who asks."""
        return f"{turn.user}!" if loud else str(turn.user)

    def also(loud: bool = False, *, turn: TurnContext) -> str:
        """Who asks."""
        return whoami(turn, loud)

    async def first(turn: TurnContext, /, loud: bool = False) -> str:
        """Who asks."""
        return whoami(turn, loud)

    async def perhaps(loud: bool = False, turn: TurnContext | None = None) -> str:
        """Who asks."""
        return whoami(turn, loud)

    def annotated(loud: bool, asks: Annotated[TurnContext, "of the turn"]) -> str:
        """Who asks."""
        return whoami(asks, loud)

    for given in (whoami, also, first, perhaps, annotated):
        assert await ask([given], tool_call(given.__name__, loud=True)) == "ana!"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueError("no such town"), {"error": "broken failed: ValueError: no such town"}),
        (TryAgain("town: give one"), {"error": "town: give one", "try_again": True}),
        (BadInput("limit: 0 is too few"), {"error": "limit: 0 is too few"}),
    ],
    ids=lambda given: type(given).__name__,
)
async def test_what_a_function_raises_is_told_to_the_model(ask, error, told):
    def broken(town: str) -> str:
        """Break."""
        raise error

    assert json.loads(await ask([broken], tool_call("broken", town="Lyon"))) == told


async def test_a_function_that_takes_too_long_is_gone_on_without(ask):
    async def slow() -> str:
        """Be slow."""
        await asyncio.Event().wait()
        return ""

    told = json.loads(await ask([tool(slow, timeout=0.02)], tool_call("slow")))
    assert told == {"error": "slow did not end within 0.02 s; go on without it"}


async def test_sync_tools_that_hang_keep_threads_of_their_own_and_are_named(hachi_companion, monkeypatch):
    monkeypatch.setattr(threads, "_free", threading.BoundedSemaphore(2))
    monkeypatch.setattr(threads, "WAIT_SECONDS", 0.05)
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    goes_on = threading.Event()

    def hang() -> str:
        """Hang."""
        goes_on.wait()
        return "late"

    calls = [tool_call("hang", id=f"call{n}") for n in range(3)]
    model = AnsweringModel([step for call in calls for step in call], then=SUNNY)
    async with hachi_companion(model=model, tools=[tool(hang, timeout=0.3)]) as pet:
        reply = await pet.respond("hang", user="ana")
        assert await asyncio.wait_for(asyncio.to_thread(int), 5) == 0
        assert pet.admin.health.unavailable == ["tools: all 32 threads are taken"]
        goes_on.set()
        await asyncio.to_thread(threads._free.acquire)
    assert sorted(call.result for call in reply.tools) == [
        '{"error": "all 32 threads for tools are busy with calls that do not end"}',
        *['{"error": "hang did not end within 0.3 s; go on without it"}'] * 2,
    ]


def untyped(town, country: str) -> str:  # type: ignore[no-untyped-def]
    """Say nothing of the town."""
    return ""


def silent(town: str) -> str:
    return town


def many(*towns: str) -> str:
    """Take many."""
    return ""


def unknown(town: "Nowhere") -> str:  # type: ignore[name-defined]  # noqa: F821
    """Take what is not there."""
    return ""


class Basket:
    pass


def of_a_class(basket: Basket) -> str:
    """Take what no JSON is."""
    return ""


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ([of_a_class], "of_a_class cannot be called by a model: Unable to generate"),
        ([untyped], "untyped must say what town is"),
        ([silent], "silent has no docstring"),
        ([many], "many must say what towns is"),
        ([unknown], "the types of unknown cannot be read"),
        ([get_weather, get_weather], "two have the name 'get_weather'"),
        ([tool(silent, name="remember", description="x")], "two have the name 'remember'"),
        (["get_weather"], "is not a function"),
        ([lambda town: town], "is not a function with a name"),
    ],
)
async def test_what_cannot_be_a_tool_is_refused_at_the_start(hachi_companion, given, why):
    with pytest.raises(BadInput, match=why):
        async with hachi_companion(tools=given):
            pass


@pytest.mark.parametrize("odd", [{"name": 7}, {"description": b"x"}, {"timeout": -1}, {"nme": "x"}])
def test_what_a_tool_cannot_be_told_is_refused(odd):
    with pytest.raises(BadInput, match=next(iter(odd))):
        tool(get_weather, **odd)


async def test_a_tool_of_ours_that_does_not_exist_is_refused(hachi_companion):
    with pytest.raises(BadInput, match="only_tools: there is no tool 'recall'; there are search_memories"):
        async with hachi_companion(only_tools=["recall"]):
            pass


async def test_the_settings_name_tools_for_every_surface(hachi_companion, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "weather", SimpleNamespace(get=get_weather))
    async with hachi_companion(settings={"tools": "weather:get"}, only_tools=[]) as pet:
        [added] = pet.components.extensions.tools
    assert added.name == "get_weather"
    (tmp_path / "towns_of_mine.py").write_text('def town() -> str:\n    """A town."""\n    return "Lyon"\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    async with hachi_companion(settings={"tools": "towns_of_mine:town"}, only_tools=[]) as pet:
        assert [one.name for one in pet.components.extensions.tools] == ["town"]
    for name in ("math:nothing", "nowhere:x", "math"):
        with pytest.raises(SettingsError, match=f"HACHI_TOOLS: {name} cannot be loaded"):
            async with hachi_companion(settings={"tools": name}):
                pass


@function_tool
async def roll(context: RunContextWrapper[Any], sides: int) -> str:
    """Roll a die."""
    return f"{context.context.user} rolled {sides}"


@function_tool(needs_approval=True)
async def launch() -> str:
    """Launch."""
    return "gone"


async def test_function_tools_of_the_sdk_are_taken(ask, hachi_companion):
    assert await ask([roll], tool_call("roll", sides=6)) == "ana rolled 6"
    with pytest.raises(BadInput, match="launch waits for an approval"):
        async with hachi_companion(tools=[launch]):
            pass


class Server(MCPServer):
    """An MCP server in this process."""

    def __init__(self, name: str = "weather") -> None:
        super().__init__()
        self._name, self.away, self.hangs, self.asked = name, False, False, 0

    @property
    def name(self) -> str:
        return self._name

    async def list_tools(self, *_: Any, **__: Any) -> list[ListedTool]:
        self.asked += 1
        if self.away:
            raise ConnectionError("nobody there")
        if self.hangs:
            await asyncio.Event().wait()
        schema = {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]}
        return [ListedTool(name="forecast", description="Tomorrow.", input_schema=schema)]

    async def call_tool(self, tool_name: str, arguments: Any, *_: Any, **__: Any) -> CallToolResult:
        return CallToolResult(content=[TextContent(type="text", text=f"rain in {arguments['town']}")])

    async def connect(self) -> None: ...
    async def cleanup(self) -> None: ...
    async def list_prompts(self) -> Any: ...
    async def get_prompt(self, *_: Any, **__: Any) -> Any: ...


async def test_the_tools_of_an_mcp_server_are_offered_while_it_answers(hachi_companion, caplog):
    server, model = Server(), AnsweringModel(tool_call("forecast", town="Lyon"), then=SUNNY)
    async with hachi_companion(model=model, tools=[server]) as pet:
        reply = await pet.respond("will it rain?", user="ana")
        server.away = True
        without = await pet.respond("and now?", user="ana")
    [called] = reply.tools
    assert (called.name, called.ok) == ("forecast", True)
    assert "rain in Lyon" in called.result
    assert (without.message, without.tools) == ("It is sunny.", ())
    assert "the MCP server weather is left out of this turn: nobody there" in caplog.text


async def test_mcp_servers_are_asked_side_by_side_and_one_that_hangs_not_in_every_turn(
    hachi_companion, monkeypatch
):
    monkeypatch.setattr("agent.turn.extensions.LISTING_SECONDS", 0.3)
    hanging = [Server(name) for name in ("tides", "trains", "ferries")]
    model = AnsweringModel(then=SUNNY)
    async with hachi_companion(model=model, tools=[*hanging, Server()]) as pet:
        await pet.respond("hello", user="ana")  # loads what a turn needs
        for server in hanging:
            server.hangs = True
        took = []
        for _ in range(2):
            began = time.monotonic()
            await pet.respond("hello", user="ana")
            took.append(time.monotonic() - began)
        assert pet.admin.health.unavailable == ["MCP server tides", "MCP server trains", "MCP server ferries"]
    assert took[0] < 0.3 * len(hanging)
    assert [server.asked for server in hanging] == [2, 2, 2]


# Guardrails and hooks.


async def test_a_guardrail_ends_the_turn_with_an_error_of_its_own(hachi_companion):
    async def no_bombs(_: Any, __: Any, said: Any) -> GuardrailFunctionOutput:
        return GuardrailFunctionOutput("no bombs here", tripwire_triggered="bomb" in str(said[-1]))

    async def no_sun(_: Any, __: Any, answer: Any) -> GuardrailFunctionOutput:
        return GuardrailFunctionOutput(None, tripwire_triggered="sunny" in answer)

    guardrails = [InputGuardrail(no_bombs), OutputGuardrail(no_sun)]
    async with hachi_companion(
        guardrails=guardrails, model=AnsweringModel({"message": "Hello."}, then=SUNNY)
    ) as pet:
        assert (await pet.respond("hello", user="ana")).message == "Hello."
        with pytest.raises(
            GuardrailTripped, match="the guardrail no_bombs stopped the turn: no bombs here"
        ) as raised:
            await pet.respond("a bomb", user="ana")
        with pytest.raises(GuardrailTripped, match=r"the guardrail no_sun stopped the turn$"):
            await pet.respond("is it sunny?", user="ana")
    assert raised.value.status == 422
    assert raised.value.trace_id


async def test_a_guardrail_or_a_hook_that_fails_ends_the_turn_and_is_named(hachi_companion):
    async def broken(*_: Any) -> GuardrailFunctionOutput:
        raise KeyError("no\nsuch")

    def silent(*_: Any) -> Any:
        return None

    class Failing(RunHooks[Any]):
        async def on_tool_start(self, *_: Any) -> None:
            raise ValueError("not now")

    for given, told in (
        ({"guardrails": [InputGuardrail(broken)]}, "the guardrail broken failed: KeyError: 'no\\\\nsuch'"),
        ({"guardrails": [OutputGuardrail(broken)]}, "the guardrail broken failed: KeyError: 'no\\\\nsuch'"),
        (
            {"guardrails": [InputGuardrail(silent)]},
            "the guardrail silent returned no GuardrailFunctionOutput",
        ),
        ({"hooks": Failing()}, "the hook on_tool_start failed: ValueError: not now"),
    ):
        model = AnsweringModel(tool_call("get_weather", town="Lyon"), then=SUNNY)
        async with hachi_companion(model=model, tools=[get_weather], **given) as pet:
            with pytest.raises(HachiError, match=f"^{told}$") as raised:
                await pet.respond("is it sunny?", user="ana")
        assert raised.value.trace_id


# One call's model, limits and answer.


async def test_a_call_may_name_its_model_and_its_limits(hachi_companion):
    again, other = (
        AnsweringModel(then=tool_call("get_weather", town="x")),
        AnsweringModel({"message": "I am another."}),
    )
    async with hachi_companion(model=again, tools=[get_weather]) as pet:
        reply = await pet.respond("hello", user="ana", model=other)
        assert (reply.message, reply.model) == ("I am another.", "AnsweringModel")
        assert not again.asked
        assert (await pet.respond("hello", user="ana", max_turns=2)).calls == 2
        with pytest.raises(BadInput, match="model: 'tiny' cannot be named"):
            await pet.respond("hello", user="ana", model="tiny")
        slow = AnsweringModel(hold="hello")
        with pytest.raises(
            ModelUnavailable, match=r"no reply within 0\.05 s, the timeout of the call; the message is kept"
        ) as late:
            await pet.respond("hello", user="ana", model=slow, timeout=0.05)
        await pet.settle()
        assert (await pet.traces.find(str(late.value.trace_id))).status == "error"


async def test_another_model_of_the_same_server_is_asked_by_its_name(pet_at, first_way, server):
    pet = await pet_at(first_way)
    server.script(answer("Hello."), answer("Hello again."))
    assert (await pet.respond("hello", user="ana", model="huge")).model == "huge"
    assert (await pet.respond("hello", user="ana")).model == "tiny"
    assert [asked.json["model"] for asked in server.asked] == ["huge", "tiny"]


async def test_an_answer_may_be_a_pydantic_type(hachi_companion):
    model = AnsweringModel({"name": "Lyon"}, {"nom": "Lyon"}, {"nom": "Lyon"})
    async with hachi_companion(model=model) as pet:
        reply = await pet.respond("where does Ana live?", user="ana", answer=Town)
        assert reply.value == Town(name="Lyon", country="France")
        with pytest.raises(AnswerMisfit, match="name"):
            await pet.respond("where does Ben live?", user="ana", answer=Town)


async def test_a_type_that_its_schema_does_not_tell_whole_is_checked_too(hachi_companion):
    from pydantic import field_validator

    class Capital(BaseModel):
        name: str

        @field_validator("name")
        @classmethod
        def _upper(cls, name: str) -> str:
            if not name.isupper():
                raise ValueError("shout")
            return name

    async with hachi_companion(model=AnsweringModel(then={"name": "Paris"})) as pet:
        with pytest.raises(AnswerMisfit, match="does not fit Capital: name Value error, shout") as raised:
            await pet.respond("the capital?", user="ana", answer=Capital)
    assert raised.value.trace_id


# The events of a stream.


async def test_a_stream_tells_of_text_tools_and_memories_in_order(hachi_companion):
    fact = {
        "content": "Ana likes the sun",
        "subjects": ["ana"],
        "ttl": None,
        "type": "fact",
        "importance": 0.6,
    }
    model = AnsweringModel(
        tool_call("get_weather", town="Lyon"),
        tool_call("remember", content="Ana lives in Lyon", subjects=["ana"]),
        {"message": "It is sunny.", "memories": [fact]},
    )
    async with hachi_companion(model=model, tools=[get_weather]) as pet:
        events = [event async for event in pet.stream("is it sunny?", user="ana", settle=True).events()]
        await assert_remembered(pet, "likes the SUN", user="ana", subjects=["ana"])

    assert events[:2] == [ToolStarted("get_weather", {"town": "Lyon"}), ToolEnded(events[-1].reply.tools[0])]
    kinds = [type(event) for event in events if not isinstance(event, TextWritten)]
    assert kinds == [*([ToolStarted, ToolEnded] * 2), MemoryDecided, MemoryDecided, TurnDone]
    decided = [event.decision.content for event in events if isinstance(event, MemoryDecided)]
    assert decided == ["Ana lives in Lyon", "Ana likes the sun"]
    assert "".join(event.text for event in events if isinstance(event, TextWritten)) == "It is sunny."
