"""What a visitor of the console asks for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import parse_qs

from fastapi import Depends, Request
from starlette.responses import HTMLResponse, RedirectResponse

from agent.companion import Companion
from agent.surfaces.web.templates import page
from agent.surfaces.web.visits import visitor_of
from memory.text import storable

_TYPED = ("name", "content", "description", "due", "text", "person", "alias")


@dataclass(frozen=True, slots=True)
class Asked:
    """A request of the person whose console it is."""

    request: Request
    pet: Companion
    user: str
    form: Mapping[str, Sequence[str]]
    """The fields of the form, those left empty too."""

    def field(self, name: str) -> str:
        """One field of the form, without spaces around it; empty if it is not there."""
        return _first(self.form, name)

    @property
    def searched(self) -> str:
        """The text in the address that is searched for."""
        return self.request.query_params.get("text", "").strip()

    def page(self, template: str, **values: Any) -> HTMLResponse:
        return page(self.request, template, **values)


async def _asked(request: Request) -> Asked:
    user = visitor_of(request).user or ""
    return Asked(request, request.app.state.pet, user, await form_of(request))


Here = Annotated[Asked, Depends(_asked)]


def go(to: str) -> RedirectResponse:
    """Lead to a page, once a form is done."""
    return RedirectResponse(to, 303)


async def form_of(request: Request) -> dict[str, list[str]]:
    """The fields of the form, those left empty too."""
    body = (await request.body()).decode("utf-8", "replace")
    fields = parse_qs(body, keep_blank_values=True, encoding="utf-8", errors="replace")
    return {name: [storable(value) for value in values] for name, values in fields.items()}


async def field_of(request: Request, name: str) -> str:
    """One field of a form, without spaces around it; empty if it is not there."""
    return _first(await form_of(request), name)


async def typed_in(request: Request) -> dict[str, str]:
    """What a person typed into a form that was refused, so that the page can give it back."""
    if request.method != "POST" or request.url.path in ("/enter", "/leave"):
        return {}
    return {name: values[0] for name, values in (await form_of(request)).items() if name in _TYPED}


def _first(form: Mapping[str, Sequence[str]], name: str) -> str:
    return form.get(name, [""])[0].strip()
