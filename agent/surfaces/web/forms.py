"""Reads what a form sent."""

from urllib.parse import parse_qs

from fastapi import Request

from memory.text import storable


async def form_of(request: Request) -> dict[str, list[str]]:
    """The fields of the form, those left empty too."""
    body = (await request.body()).decode("utf-8", "replace")
    fields = parse_qs(body, keep_blank_values=True, encoding="utf-8", errors="replace")
    return {name: [storable(value) for value in values] for name, values in fields.items()}


async def typed_in(request: Request) -> dict[str, str]:
    """What a person typed into a form that was refused, so that the page can give it back."""
    if request.method != "POST" or request.url.path in ("/enter", "/leave"):
        return {}
    return {name: values[0] for name, values in (await form_of(request)).items() if name in _TYPED}


_TYPED = ("name", "content", "description", "due", "text", "person", "alias")


async def field_of(request: Request, name: str) -> str:
    """One field of the form, without spaces around it; empty if it is not there."""
    return (await form_of(request)).get(name, [""])[0].strip()
