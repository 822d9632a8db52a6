"""Step 3 of a turn: run the Agents SDK's loop over our tools and the client's. `call_limit.py` forbids tools
in the last of `max_turns` model calls."""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any
from uuid import uuid4

from agents import (
    Agent,
    FunctionTool,
    InputGuardrail,
    ModelRefusalError,
    OutputGuardrail,
    RunConfig,
    RunErrorHandlerInput,
    RunErrorHandlers,
    Runner,
    ToolErrorFormatterArgs,
    ToolExecutionConfig,
)
from agents.result import RunResultBase
from agents.tool_context import ToolContext
from openai.types.responses import (
    ResponseCompletedEvent,
    ResponseReasoningTextDeltaEvent,
    ResponseTextDeltaEvent,
)

from agent.errors import ModelError
from agent.models.choice.choose import ChosenModel
from agent.models.failures import model_error
from agent.settings import Settings
from agent.turn.call_limit import TurnModel, tool_calls
from agent.turn.client.our_calls import ids_of_ours
from agent.turn.client.parameters import model_settings, refused_parameter, shown_names
from agent.turn.context.echoes import our_sentences, our_texts
from agent.turn.extensions import Extensions
from agent.turn.output.answer import Answer
from agent.turn.output.client_form import shaped
from agent.turn.output.mend import unsupported, without_echo
from agent.turn.output.parse import FALLBACK, FALLBACK_NOTED, parse_answer, well_formed
from agent.turn.output.reply_stream import OnEvent
from agent.turn.output.streamed_text import FormStream, MessageStream, ShownText, until_stop
from agent.types import MemoryDecided, TextWritten, ThoughtWritten, ToolCall, ToolEnded, ToolStarted, Usage
from agent.types.client import AnswerForm, CallItem, ClientTool, ClientTurn, Item, ResultItem
from memory.process.spans import first_letter, note, span
from prompts import render
from tools.context import TurnContext
from tools.lookup import Entry, cut
from tools.registry import READING, TOOLS, Tool, ToolResult, read_arguments

CALL_ID = 9
"""Length of the id of a stored tool call; some servers accept only nine letters and digits."""
NARROW_TOOLS = frozenset({"search_memories", "remember"})
"""The tools for a model with a small window. It also gets a short prompt and answers in plain text."""
MOST_QUOTED, LONGEST_QUOTE = 3, 300
"""How many results a reply quotes if the model gave no answer, and the most characters of each."""
CUT_SHORT = "The model ran out of room before its first word. Ask once more, or for less at a time."


@dataclass(frozen=True, slots=True)
class AgentResult:
    """The parsed answer of a run, with the calls and tokens it used."""

    answer: Answer
    model: str
    """The name of the model that answered."""
    tools: tuple[ToolCall, ...]
    calls: int
    usage: Usage
    client_calls: tuple[CallItem, ...] = ()
    """Calls of the client's tools. If there are any, there is no answer yet."""
    our_calls: tuple[Item, ...] = ()
    """The calls of our tools in this run, each with its result."""
    cut: bool = False


def with_end(result: AgentResult, end: str, on_event: OnEvent | None) -> AgentResult:
    """Return the result with a paragraph added to its message, and stream that paragraph to `on_event`."""
    end = f"\n\n{end}"
    if on_event:
        on_event(TextWritten(end))
    return replace(result, answer=replace(result.answer, message=result.answer.message + end))


@dataclass(slots=True)
class _Run:
    """The SDK's run context: the context for tools, and the tool calls so far."""

    turn: TurnContext
    offered: Sequence[str]
    """Names of all tools, as the model sees them."""
    on_event: OnEvent | None = None
    earlier: Sequence[str] = ()
    """Earlier messages of the conversation, as the model sees them."""
    as_text: bool = False
    """Whether the answer is plain text, because the window is small."""
    states: Mapping[str, str] = field(default_factory=dict)
    """Provider data to send back with each tool call, by the call's id."""
    called: list[ToolCall] = field(default_factory=list)
    client_calls: list[CallItem] = field(default_factory=list)
    our_calls: list[Item] = field(default_factory=list)


async def run_agent(
    chosen: ChosenModel,
    settings: Settings,
    messages: Sequence[dict[str, Any]],
    turn: TurnContext,
    added: Extensions,
    client: ClientTurn,
    on_event: OnEvent | None,
    *,
    narrow: bool = False,
) -> AgentResult:
    """Run the loop over `messages`; the first is the system message.

    With `on_event` the model streams: `on_event` receives the text of `message` as it is generated, and what
    the tools do. `added` has the tools, guardrails and hooks. A call of a tool of the `client` ends the run.
    If such a tool has the name of one of ours, the model sees it under another name. Raises ModelError,
    GuardrailTripped, and BadInput if the model's server refuses a parameter of the client.
    """
    system, *said = messages
    offered = [tool for tool in TOOLS if tool.name in READING] if turn.unasked else await added.offered(turn)
    tools = [tool for tool in offered if not narrow or tool.name in NARROW_TOOLS]
    turn.rendered = our_sentences(our_texts(messages), tools)
    ours = ids_of_ours(client.after)
    calls = [item for item in said if "name" in item and item["call_id"] not in ours]
    called = [*(tool.name for tool in client.tools), *(call["name"] for call in calls)]
    names = shown_names(called, {tool.name for tool in tools})
    client = replace(client, tool_choice=names.get(client.tool_choice or "", client.tool_choice))
    agent = _agent(system["content"], tools, client, names, added)
    agent.model_settings = chosen.settings.resolve(model_settings(client, settings))
    model = TurnModel(chosen, settings.max_turns, client, as_text=narrow)
    earlier = [str(item["content"]) for item in said[:-1] if "content" in item]
    run = _Run(turn, [tool.name for tool in agent.tools], on_event, earlier, narrow, model.states)
    config = copy(_CONFIG)
    config.model = model
    arguments: dict[str, Any] = {
        "input": [item | {"name": names[item["name"]]} if item in calls else item for item in said],
        "context": run,
        "max_turns": settings.max_turns,
        "run_config": config,
        "error_handlers": RunErrorHandlers(model_refusal=_refused),
        "hooks": added.hooks,
    }
    try:
        answer = await _answer(agent, arguments, client, model)
    except Exception as error:
        brought = chosen.name if chosen.brought else ""
        if fault := refused_parameter(error, client.sampling) or model_error(error, settings, brought):
            raise fault from error
        raise
    return _agent_result(answer, run, client, model)


def _agent_result(answer: Answer, run: _Run, client: ClientTurn, model: TurnModel) -> AgentResult:
    most = client.sampling.max_tokens
    return AgentResult(
        answer=answer if client.pictures and model.sees else replace(answer, seen=""),
        model=model.name,
        tools=tuple(run.called),
        calls=model.calls,
        usage=model.usage,
        client_calls=tuple(run.client_calls),
        our_calls=tuple(run.our_calls),
        cut=model.cut or (most is not None and model.last_output >= most),
    )


def _agent(
    system: str, tools: Sequence[Tool], client: ClientTurn, names: Mapping[str, str], added: Extensions
) -> "Agent[_Run]":
    """Return the agent with our tools and the client's, which it sees under these `names`, and with the
    guardrails."""
    ours = () if client.tool_choice == "required" else tools  # a call of ours does not satisfy it
    theirs = [_clients_tool(tool, names[tool.name]) for tool in client.tools]
    agent = copy(_AGENT)
    agent.instructions = system
    agent.tools = [*map(_our_tool, ours), *theirs]
    agent.tool_use_behavior = {"stop_at_tool_names": [tool.name for tool in theirs]}
    agent.input_guardrails = [one for one in added.guardrails if isinstance(one, InputGuardrail)]
    agent.output_guardrails = [one for one in added.guardrails if isinstance(one, OutputGuardrail)]
    return agent


async def _answer(
    agent: "Agent[_Run]", arguments: dict[str, Any], client: ClientTurn, model: TurnModel
) -> Answer:
    """Run the loop and parse its answer. If it misses the client's form, tell the model why and ask once
    more, unless a part of the answer was already shown."""
    run: _Run = arguments["context"]
    stops, on_event, shown = client.sampling.stop, run.on_event, None
    if on_event:
        extract = partial(FormStream, model.enforced) if client.form else MessageStream
        shown = ShownText(
            _text_shown(on_event), extract, stops, run.turn.rendered, object_only=client.form is not None
        )
    result = await _result(agent, arguments, shown)
    try:
        answer = await _read(result, arguments["context"], client.form, model.cut)
    except ModelError as error:
        left = arguments["max_turns"] - model.calls
        if not left or (shown and shown.text):
            raise
        told = {"role": "user", "content": render("form_again", fault=str(error))}
        again = arguments | {"input": [*result.to_input_list(), told], "max_turns": left}
        result = await _result(agent, again, shown)
        answer = await _read(result, arguments["context"], client.form, model.cut)
    answer = replace(answer, message=until_stop(answer.message, stops))
    if shown:
        shown.end(answer.message)
    return answer


def _text_shown(on_event: OnEvent) -> Callable[[str], None]:
    """Return a function that sends text to `on_event`, and traces the time of the first letter."""

    def show(text: str) -> None:
        first_letter()
        on_event(TextWritten(text))

    return show


async def _no_such_tool(wrong: ToolErrorFormatterArgs[_Run]) -> str:
    """Return the error for a call of a tool that does not exist; it lists those that do."""
    run = wrong.run_context.context
    error = f"no tool {wrong.tool_name!r}; there are {', '.join(run.offered)}"
    result = ToolResult({"error": error, "try_again": True}, ok=False)
    run.called.append(ToolCall(wrong.tool_name, {}, result.ok, result.text))
    with span("tool", wrong.tool_name, call_id=wrong.call_id, ok=False, result=result.text):
        pass
    return result.text


_AGENT = Agent[_Run](name="Hachi")
_CONFIG = RunConfig(
    tracing_disabled=True,
    tool_not_found_behavior="return_error_to_model",
    tool_error_formatter=_no_such_tool,
    # One tool after the other: what a call finds or stores depends on the calls before it.
    tool_execution=ToolExecutionConfig(max_function_tool_concurrency=1),
)
"""Both are built once and copied, since the SDK takes 0.4 ms to read the type hints of a new one."""


async def _refused(failed: RunErrorHandlerInput[Any]) -> str:
    """Use the text of a refusal as the answer."""
    return failed.error.refusal if isinstance(failed.error, ModelRefusalError) else str(failed.error)


async def _result(agent: "Agent[_Run]", arguments: dict[str, Any], shown: ShownText | None) -> RunResultBase:
    """Run the loop. With `shown` the model streams, and `shown` gets its text."""
    if shown is None:
        return await Runner.run(agent, **arguments)
    result = Runner.run_streamed(agent, **arguments)
    async for event in result.stream_events():
        if event.type != "raw_response_event":
            continue
        if isinstance(event.data, ResponseTextDeltaEvent):
            shown.feed(event.data.delta)
        elif isinstance(event.data, ResponseReasoningTextDeltaEvent):
            arguments["context"].on_event(ThoughtWritten(event.data.delta))
        elif isinstance(event.data, ResponseCompletedEvent) and tool_calls(event.data.response.output):
            shown.call_tools()
    return result


async def _read(result: RunResultBase, run: _Run, form: AnswerForm | None, cut: bool) -> Answer:
    """Return the answer: parsed, or only its text if a client wants a form and it was cut off."""
    if run.client_calls:
        return Answer("")
    raw = str(result.final_output or "")
    with span("answer") as here:
        if form and cut:
            answer = Answer(raw)
        else:
            answer = (
                await asyncio.to_thread(shaped, raw, form)
                if form
                else without_echo(parse_answer(raw, ""), run.turn.rendered)
            )
        if run.turn.unasked:  # no message is a valid answer here; half a message is not
            answer = Answer("" if cut or answer.message == FALLBACK_NOTED else answer.message)
        elif not answer.message and (cut or not form):
            answer = replace(answer, message=_quoted(run) or (CUT_SHORT if cut else FALLBACK))
        if here:
            formed = cut or run.as_text or form is not None or well_formed(raw) is not None
            here.data |= {"answer": answer, "well_formed": formed} | ({"cut": True} if cut else {})
            read = [run.turn.text, *run.earlier, *(call.result for call in run.called)]
            if doubtful := unsupported(answer.memories, read):
                here.data["unsupported"] = doubtful
    return answer


def _quoted(run: _Run) -> str:
    """Return a reply that quotes what our tools found; empty if they found nothing. Used if the model still
    calls tools on its last call."""
    found: list[tuple[str, str]] = []
    ours = {tool.name for tool in TOOLS}
    for result in [json.loads(call.result) for call in run.called if call.ok and call.name in ours]:
        for entry in (*result.get("memories", ()), *result.get("newest", ())):
            found += _quotes(entry)
        found += [(chunk["source"], chunk["text"]) for chunk in result.get("chunks", ())]
    lines = [f"- {where}: “{cut(text, LONGEST_QUOTE)}”" for where, text in found[:MOST_QUOTED]]
    return "\n".join(["This is what I found:", *lines]) if lines else ""


def _quotes(entry: Entry) -> Iterator[tuple[str, str]]:
    """Yield date and author, and the text, of each memory or message in an entry, except Hachi's own."""
    if isinstance(entry, dict):
        yield ", ".join(entry[name] for name in ("at", "told_by") if name in entry), entry["content"]
        return
    at, *lines = entry
    for line in lines:
        author, _, text = line.partition(": ")
        if text and author != "hachi" and not author.startswith("~"):
            yield f"{at}, {author}", text


@lru_cache(maxsize=64)
def _our_tool(tool: Tool) -> FunctionTool:
    """Convert a tool to the SDK's form. The SDK's own decorator would hide from the model what was wrong with
    its arguments."""

    async def invoke(context: ToolContext[_Run], written: str) -> str:
        run, arguments = context.context, _arguments(written)
        decided, tell = len(run.turn.decisions), run.on_event or (lambda _: None)
        tell(ToolStarted(tool.name, arguments))
        with span("tool", tool.name, call_id=context.tool_call_id, arguments=written):
            result = await tool.call(run.turn, written)
            note(ok=result.ok, result=result.text)
        run.called.append(ToolCall(tool.name, arguments, result.ok, result.text))
        id = uuid4().hex[:CALL_ID]  # a client's call may have the model's id
        state = run.states.get(context.tool_call_id, "")
        run.our_calls += [CallItem(id, tool.name, written, True, state), ResultItem(id, result.text)]
        tell(ToolEnded(run.called[-1]))
        for decision in run.turn.decisions[decided:]:
            tell(MemoryDecided(decision))
        return result.text

    return FunctionTool(tool.name, tool.description, tool.schema, invoke, strict_json_schema=False)


def _clients_tool(tool: ClientTool, shown: str) -> FunctionTool:
    """Offer a tool that the client runs, under the name `shown`. A call is recorded and ends the run."""

    async def invoke(context: ToolContext[_Run], written: str) -> str:
        run, id = context.context, context.tool_call_id
        run.client_calls.append(CallItem(id, tool.name, written, wanted_back=run.states.get(id, "")))
        return ""

    return FunctionTool(shown, tool.description, tool.parameters, invoke, strict_json_schema=False)


def _arguments(written: str) -> dict[str, Any] | str:
    try:
        return read_arguments(written)
    except Exception:
        return written
