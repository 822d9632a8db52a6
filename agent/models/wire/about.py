"""Ask a server about itself: its models, window and slots, and whether its template takes tools."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx2
import openai

NARROW = 3_000
"""Tokens of a window below which the short prompt is used: all rules and tools take some 1,300."""
_WINDOWS = ("max_model_len", "loaded_context_length", "context_length", "context_window", "n_ctx")
"""The field at vLLM, LM Studio, OpenRouter, Groq and llama.cpp (documentation, 24 November 2026)."""


@dataclass(frozen=True, slots=True)
class About:
    models: tuple[str, ...] = ()
    """Names of the models that it lists."""
    listed: bool = True
    """Whether the model is among them, or the server has only one and accepts any name."""
    window: int | None = None
    slots: int | None = None
    tools: bool | None = None
    sees: bool = False
    """Whether it reports that its model sees images."""

    def __str__(self) -> str:
        """Return the window, the slots and a lack of tools, for a line of `hachi doctor`."""
        slots = f"{self.slots} slot{'' if self.slots == 1 else 's'}" if self.slots else ""
        tools = "its template takes no tools" if self.tools is False else ""
        return ", ".join(filter(None, (_window_line(self.window) if self.window else "", slots, tools)))


async def ask_about(client: openai.AsyncOpenAI, model: str, seconds: float) -> About:
    """Ask the server for its models, and llama.cpp for more. Raises OpenAIError."""
    body = await _get(client, "/models", seconds)
    if body is None:
        request = httpx2.Request("GET", str(client.base_url))
        raise openai.APIError("what answers there is no API; does the URL lack /v1?", request, body=None)
    entries = [one for one in body.get("data") or () if isinstance(one, Mapping)]
    names = tuple(str(one.get("id")) for one in entries)
    llamacpp = any(one.get("owned_by") == "llamacpp" for one in entries)
    found = [one for one in entries if _is(str(one.get("id")), model)]
    entry = (found or (entries if llamacpp else [{}]) or [{}])[0]
    about = About(names, bool(found) or llamacpp, _window(entry))
    if not llamacpp:
        return about
    root = str(client.base_url).rstrip("/").removesuffix("/v1")
    props = await _get(client, f"{root}/props", seconds) or {}
    caps = props.get("chat_template_caps") or {}
    window = _window(props.get("default_generation_settings") or {}) or about.window
    sees = (props.get("modalities") or {}).get("vision") is True
    return About(names, True, window, props.get("total_slots"), caps.get("supports_tools"), sees)


def _is(listed: str, model: str) -> bool:
    """Return whether a listed name is this model; Ollama adds `:latest`, and Gemini `models/…`."""
    return listed in (model, f"{model}:latest") or listed.endswith(f"/{model}")


async def _get(client: openai.AsyncOpenAI, path: str, seconds: float) -> dict[str, Any] | None:
    response = await client.get(path, cast_to=httpx2.Response, options={"timeout": seconds})
    try:
        body = json.loads(response.text)
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


def _window_line(window: int) -> str:
    short = ", so it gets the short prompt, two tools, and answers in plain text" if window < NARROW else ""
    return f"window {window:,} tokens{short}"


def _window(entry: Mapping[str, Any]) -> int | None:
    places = (entry, entry.get("meta"), entry.get("top_provider"))
    found = (place.get(name) for place in places if isinstance(place, Mapping) for name in _WINDOWS)
    return next((number for number in found if isinstance(number, int) and number > 0), None)
