"""What model servers expect of a request, by their documentation and trackers on 24 November 2026.

OpenAI      platform.openai.com/docs/api-reference: a JSON schema binds the answer and leaves tool calls alone
Mistral     docs.mistral.ai/api: enforces a schema; ids of calls are nine letters and digits; no user's
            message may follow a tool's result (zed-industries/zed/issues/37021, August 2025); answers 422 to
            an unknown field, such as `store` and `stream_options.include_usage`
            (github.com/openai/openai-agents-python/issues/442)
Ollama      docs.ollama.com/api/openai-compatibility: lists the fields it takes, and ignores a key. Enforces
            a schema; if a request has tools too, it calls none (ollama/ollama/issues/13750, January 2026)
vLLM        docs.vllm.ai, "OpenAI-Compatible Server": ignores fields it does not know. Enforces a schema,
            and then calls no tools (vllm-project/vllm/issues/39929, April 2026)
llama.cpp   github.com/ggml-org/llama.cpp, tools/server: enforces a schema with most chat templates; with
            tools, it ignores one of the two (issues/11847, February 2025)
LM Studio   lmstudio.ai/docs/developer/openai-compat: refuses `json_object`, enforces a JSON schema
OpenRouter  openrouter.ai/docs/api-reference/overview: structured output depends on the model

So a schema goes to all but OpenAI only with calls that offer no tools: the last of a turn, and consolidation.
"""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal
from urllib.parse import urlsplit

from agent.settings import Settings

Shape = Literal["long ids of calls", "messages after results of tools", "empty texts"]
"""Ids of more than nine letters and digits, a user's message after the result of a tool, and texts without
content."""


@dataclass(frozen=True, slots=True)
class Provider:
    """What one kind of server accepts."""

    base_url: str | None
    """Its URL, unless OPENAI_BASE_URL says otherwise; None for OpenAI."""
    api: Literal["responses", "chat"] = "chat"
    structured: Literal["schema", "object", "none"] = "none"
    """How it is made to write JSON; `schema` if it enforces one."""
    calls_tools_under_schema: bool = False
    """Whether it still calls tools if a request also has a schema."""
    stores: bool = False
    """Whether a chat completion may have the field `store`. The Responses API has that field everywhere."""
    counts_streams: bool = True
    """Whether a stream may be asked for its number of tokens."""
    needs_key: bool = False
    local: bool = False
    """Whether it runs on the person's own machine. Such a server writes until its window is full, so the
    tokens of an answer are limited. Its grammar enforces the bounds of a schema. OpenAI's strict mode does
    not list bounds (platform.openai.com/docs/guides/structured-outputs, 24 November 2026)."""
    slots: int = 0
    """How many requests it works on at once, unless it reports another number; 0 is any number. llama.cpp
    reports it in `/props`; Ollama has `OLLAMA_NUM_PARALLEL`, LM Studio queues (their documentation, 24
    November 2026)."""
    limit_name: str = "max_tokens"
    """The field for the limit of tokens. OpenAI's reasoning models refuse the older name."""
    refuses: frozenset[Shape] = frozenset()
    """Shapes of a conversation that it refuses. Other servers may refuse them in errors."""


PROVIDERS = MappingProxyType(
    {
        "openai": Provider(
            None,
            "responses",
            "schema",
            calls_tools_under_schema=True,
            stores=True,
            needs_key=True,
            limit_name="max_completion_tokens",
        ),
        "mistral": Provider(
            "https://api.mistral.ai/v1",
            structured="schema",
            counts_streams=False,
            needs_key=True,
            refuses=frozenset({"long ids of calls", "messages after results of tools"}),
        ),
        "ollama": Provider("http://127.0.0.1:11434/v1", structured="schema", local=True, slots=1),
        "vllm": Provider("http://127.0.0.1:8000/v1", structured="schema", local=True),
        "llamacpp": Provider("http://127.0.0.1:8080/v1", structured="schema", local=True, slots=1),
        "lmstudio": Provider("http://127.0.0.1:1234/v1", structured="schema", local=True, slots=1),
        "openrouter": Provider("https://openrouter.ai/api/v1", needs_key=True),
    }
)
_UNKNOWN = Provider(None)


def provider_of(settings: Settings) -> Provider:
    """Return the provider that the settings name, or the one with the host or local port of the base URL."""
    if settings.model_file:
        return PROVIDERS["llamacpp"]
    if settings.provider or settings.openai_base_url is None:
        return PROVIDERS[settings.provider or "openai"]
    url = urlsplit(settings.openai_base_url)
    if url.hostname == "api.openai.com":
        return PROVIDERS["openai"]
    where = ("127.0.0.1" if url.hostname == "localhost" else url.hostname, url.port)
    addresses = ((urlsplit(provider.base_url or ""), provider) for provider in PROVIDERS.values())
    return next((provider for at, provider in addresses if (at.hostname, at.port) == where), _UNKNOWN)


def base_url_of(settings: Settings) -> str | None:
    """Return the server's base URL; None for OpenAI's own, and for a model file."""
    if settings.model_file:
        return None
    return settings.openai_base_url or provider_of(settings).base_url


def is_local(settings: Settings) -> bool:
    """Return whether this machine does the model's work: a local provider, or an unknown server or vLLM at a
    local address."""
    provider = provider_of(settings)
    host = urlsplit(base_url_of(settings) or "").hostname
    at_local_address = host in ("127.0.0.1", "localhost", "::1")
    if provider is PROVIDERS["vllm"] or provider is _UNKNOWN:
        return at_local_address
    return provider.local


def reports_its_limits(settings: Settings) -> bool:
    """Return whether this kind of server reports its window and its number of slots."""
    provider = provider_of(settings)
    return provider.slots > 0 or (provider is PROVIDERS["vllm"] and is_local(settings))


def api_of(settings: Settings) -> Literal["responses", "chat"]:
    return settings.api or provider_of(settings).api


def sees_images(settings: Settings) -> bool:
    """Return whether the model gets images. If unset, only OpenAI's own models do."""
    if settings.images is None:
        return not settings.offline and provider_of(settings) is PROVIDERS["openai"]
    return settings.images and not settings.offline


def may_see(settings: Settings) -> bool:
    """Return whether optional images may be tried on the model. If unset, all models but those on this
    machine, which often ignore images; other servers refuse what they cannot take."""
    return not is_local(settings) if settings.images is None else settings.images


def takes_others(settings: Settings) -> bool:
    """Return whether parameters that OpenAI does not have are passed on, since other servers have many."""
    return api_of(settings) == "chat" and provider_of(settings) is not PROVIDERS["openai"]


def structured_of(settings: Settings) -> Literal["schema", "object", "none"]:
    return settings.structured or provider_of(settings).structured


def schema_beside_tools(settings: Settings) -> bool:
    """Return whether a call that offers tools may request a schema, too; the setting `schema` allows it."""
    return settings.structured == "schema" or provider_of(settings).calls_tools_under_schema
