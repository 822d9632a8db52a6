"""Asks a model one question outside the conversation: one call, no tools, no history."""

from copy import copy
from functools import cached_property
from typing import Any

from agents import Agent, AgentOutputSchemaBase, RunConfig, RunErrorHandlers, Runner

from agent.models.choice.choose import ChosenModel
from agent.models.choice.fallback import both_failed, changes_over
from agent.models.failures import KnownFailure, server_fault
from agent.models.model_call import recorded_call

_AGENT, _CONFIG = Agent[None](name="question"), RunConfig(tracing_disabled=True)
"""Both are made once and copied: the SDK reads the type hints of a new one, which takes 0.4 ms."""
_HANDLERS = RunErrorHandlers[None](invalid_final_output=lambda _: "")
"""An answer without text is one: the SDK would ask again."""
BOUNDS = frozenset({"minLength", "maxLength", "minItems", "maxItems"})


async def ask(chosen: ChosenModel, name: str, question: str, schema: dict[str, Any] | None = None) -> str:
    """Return the model's answer, verbatim; that of the second where the first does not answer. `schema` is
    requested if the server supports it, and not enforced.

    Raises what the model's library raises.
    """
    try:
        return await _ask(chosen, name, question, schema)
    except Exception as error:
        if not changes_over(chosen, error):
            raise
        assert chosen.fallback is not None
        try:
            return await _ask(chosen.fallback, name, question, schema)
        except Exception as then:
            if server_fault(then, chosen.fallback.source) is None and not isinstance(then, KnownFailure):
                raise
            raise both_failed(chosen, error, then) from then


async def _ask(chosen: ChosenModel, name: str, question: str, schema: dict[str, Any] | None) -> str:
    form = RequestedSchema(name, schema) if schema and chosen.structured == "schema" else None
    form = form if form is None or chosen.bounded else form.without_bounds
    agent, config = copy(_AGENT), copy(_CONFIG)
    agent.name, agent.model_settings, agent.output_type = name, chosen.settings, form
    config.model = chosen.model
    with recorded_call(chosen.name, None, question, [], chosen.settings, form) as call:
        result = await Runner.run(agent, question, max_turns=1, run_config=config, error_handlers=_HANDLERS)
        call.answered(result.new_items and result.raw_responses[-1].output, result.context_wrapper.usage)
    return str(result.final_output)


def strict_object(**fields: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of an object in the form that OpenAI's strict mode accepts."""
    shape = {"type": "object", "properties": fields, "required": list(fields)}
    return {**shape, "additionalProperties": False}


OPTIONAL: dict[str, Any] = {"type": ["string", "null"]}


def short_text(longest: int, description: str = "") -> dict[str, Any]:
    return {"type": "string", "maxLength": longest} | _described(description)


def list_of(most: int, item: dict[str, Any], description: str = "") -> dict[str, Any]:
    return {"type": "array", "maxItems": most, "items": item} | _described(description)


def _described(description: str) -> dict[str, Any]:
    return {"description": description} if description else {}


class RequestedSchema(AgentOutputSchemaBase):
    """Requests a JSON schema and accepts any output.

    The SDK's own schemas are strict: they end the run when a model puts a fence around its JSON.
    """

    def __init__(self, name: str, schema: dict[str, Any], *, strict: bool = True) -> None:
        self._name = name
        self._schema = schema
        self._strict = strict

    @cached_property
    def without_bounds(self) -> "RequestedSchema":
        """The schema for servers that do not enforce how long a text or a list is, or refuse to be told."""
        return RequestedSchema(self._name, _without_bounds(self._schema), strict=self._strict)

    def is_plain_text(self) -> bool:
        return False

    def name(self) -> str:
        return self._name

    def json_schema(self) -> dict[str, Any]:
        return self._schema

    def is_strict_json_schema(self) -> bool:
        return self._strict

    def validate_json(self, json_str: str) -> Any:
        return json_str


def _without_bounds(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {name: _without_bounds(part) for name, part in schema.items() if name not in BOUNDS}
    return [_without_bounds(part) for part in schema] if isinstance(schema, list) else schema
