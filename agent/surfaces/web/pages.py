"""Read the request of a page, and render templates. Every value is sanitised, then escaped."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache, partial
from typing import Annotated, Any
from urllib.parse import parse_qs

from fastapi import Depends, Request
from jinja2 import Environment, PackageLoader, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup
from starlette.responses import HTMLResponse, RedirectResponse

from agent.companion import Companion
from agent.errors import BadInput
from agent.surfaces.web.sign_in import COOKIE, ZONE, visitor_of
from agent.tracing.render.text import duration, harmless, money
from agent.types.labels import place_label
from agent.types.records_json import describe_cascade, describe_forgotten
from memory.audience import Place
from memory.text import storable

_BASIC = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable("strikethrough").disable("image")
_MARKDOWN = MarkdownIt("commonmark", _BASIC.options).enable(["strikethrough", "table"]).disable("image")
MAX_CELLS = 10_000
"""Maximum number of cells of tables in a text. Rows are padded to the widest row, so a short text could take
minutes."""
MOST_FIELDS = 1_000
"""Maximum number of fields of a form. A hundred thousand take half a second to read."""
MAX_FORM = 1_000_000
"""Maximum characters of a form without files. The longest form holds a document."""
MAX_TEXT = 4_000
"""Maximum characters of one text on a page. A link shows the rest."""
_MATH = re.compile(
    r"(?P<code>(?P<fence>```|~~~).*?(?:(?P=fence)|\Z)|`[^`\n]+`)"
    r"|\$\$[^$]+\$\$|\\\[(?:(?!\\\[).)+?\\\]|\\\((?:(?!\\\().)+?\\\)|(?<![\w$])\$(?=\S)[^$\n`]+(?<=\S)\$(?![\w$])",
    re.DOTALL,
)
"""LaTeX as models write it, and code, in which nothing is LaTeX. An opening mark without an end is matched up
to the next mark, so that matching takes linear time."""
TIMES = {
    "hour": "%H:%M",
    "moment": "%d %b %H:%M:%S",
    "minute": "%d %b %H:%M",
    "day": "%d %b %Y",
    "due": "%a %d %b %Y %H:%M",
    "clock": "%A %d %B %Y, %H:%M:%S %Z",
}
"""Filters that show a time; `page.js` has the same formats."""
STATUS_NAMES = {
    "ok": "ok",
    "tool_error": "tool failed",
    "malformed": "malformed",
    "stopped": "stopped",
    "error": "failed",
    "running": "running",
    "killed": "killed",
    "forgotten": "forgotten",
}


@cache
def environment() -> Environment:
    made = Environment(
        loader=PackageLoader("agent.surfaces.web"),
        autoescape=True,
        finalize=_harmless,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Callable[..., Any]] = {
        "duration": lambda seconds: duration(seconds) or "…",
        "money": money,
        "place": lambda key: str(Place.of_key(key)),
        "place_label": lambda place: place_label(Place.parse(place)),
        "month": lambda name: f"{date.fromisoformat(f'{name}-01'):%b %Y}",
        "cut": cut,
        "markdown": markdown,
    }
    made.filters |= filters | {name: partial(shown_time, name) for name in TIMES}
    made.globals |= {"status_names": STATUS_NAMES, "taken": describe_forgotten, "goes_with": describe_cascade}
    return made


def _harmless(value: Any) -> Any:
    if isinstance(value, Markup):
        return value
    return "" if value is None else harmless(str(value))


def shown_time(form: str, time: datetime) -> Markup:
    """Return the time in the visitor's zone. While the zone is unknown, `page.js` shows it in the
    browser's."""
    local = time.astimezone(ZONE.get())
    element = Markup('<time datetime="{}" title="{}"{}>{}</time>')
    anew = Markup("") if ZONE.get() else Markup(' data-form="{}"').format(form)
    iso = time.isoformat(timespec="milliseconds")
    return element.format(iso, local.strftime(TIMES["clock"]), anew, local.strftime(TIMES[form]))


def cut(lines: Sequence[str]) -> tuple[str, int]:
    """Return the beginning of a text, and the length of the whole text."""
    text = "\n".join(lines)
    return text[:MAX_TEXT], len(text)


def markdown(text: str) -> Markup:
    """Render a model's Markdown. HTML is shown as text and LaTeX as it is; pictures of other servers are not
    loaded. Each block gets the text direction of its own words."""
    text = _MATH.sub(_as_code, text)
    lines = text.splitlines()
    cells = len(lines) * max((line.count("|") for line in lines), default=0)
    tokens = (_MARKDOWN if cells <= MAX_CELLS else _BASIC).parse(harmless(text))
    for token in tokens:
        if token.nesting == 1 and token.level == 0:
            token.attrSet("dir", "auto")
        if align := token.attrs.pop("style", ""):  # the response's headers forbid inline styles
            token.attrSet("class", str(align).removeprefix("text-align:"))
    return Markup(_MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {}))


def _as_code(match: re.Match[str]) -> str:
    """Return LaTeX as code, on lines of its own if it has several. Code stays as it is."""
    text = match[0]
    if match["code"] is not None:
        return text
    return f"\n\n```latex\n{text}\n```\n\n" if "\n" in text else f"`` {text} ``"


def render(template: str, **values: Any) -> str:
    return environment().get_template(template).render(**values)


def page(request: Request, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    visitor = getattr(request.state, "visitor", None)
    about = {
        "logged_in": COOKIE in request.cookies,
        "user": visitor.user if visitor else None,
        "name": getattr(request.state, "name", None),
        "admin": bool(visitor and visitor.admin),
        "console": request.app.state.console,
        "docs": request.app.state.docs,
        "path": request.url.path,
    }
    return HTMLResponse(render(template, **about, **values), status)


# Fields in which a visitor of the console types.

_TYPED = ("name", "content", "description", "due", "text", "person", "alias")


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A request of the person whose console is shown."""

    request: Request
    pet: Companion
    user: str
    form: Mapping[str, Sequence[str]]
    """The fields of the form, including empty ones."""

    def field(self, name: str) -> str:
        """Return a field of the form, stripped; empty if it is missing."""
        return _first(self.form, name)

    @property
    def searched(self) -> str:
        """Return the search text in the address."""
        return self.request.query_params.get("text", "").strip()

    def page(self, template: str, **values: Any) -> HTMLResponse:
        return page(self.request, template, **values)


async def _page_request(request: Request) -> PageRequest:
    user = visitor_of(request).user or ""
    return PageRequest(request, request.app.state.pet, user, await form_of(request))


Here = Annotated[PageRequest, Depends(_page_request)]


def go(to: str) -> RedirectResponse:
    """Redirect to a page after a form was handled."""
    return RedirectResponse(to, 303)


async def form_of(request: Request) -> dict[str, list[str]]:
    """Return the fields of the form, including empty ones; no fields of a form with files. Raises BadInput
    for more than `MOST_FIELDS` fields or `MAX_FORM` characters."""
    if "multipart" in request.headers.get("content-type", ""):
        return {}
    body = (await request.body()).decode("utf-8", "replace")
    if len(body) > MAX_FORM:
        raise BadInput(f"the form has more than {MAX_FORM:,} characters; upload a file instead")
    if body.count("&") >= MOST_FIELDS:
        raise BadInput(f"the form has more than {MOST_FIELDS:,} fields")
    fields = parse_qs(body, keep_blank_values=True, encoding="utf-8", errors="replace")
    return {name: [storable(value) for value in values] for name, values in fields.items()}


async def field_of(request: Request, name: str) -> str:
    """Return a field of a form, stripped; empty if it is missing."""
    return _first(await form_of(request), name)


async def typed_in(request: Request) -> dict[str, str]:
    """Return the input of a form that was refused, so that the page can show it again."""
    if request.method != "POST" or request.url.path in ("/enter", "/leave"):
        return {}
    with suppress(BadInput):
        return {name: values[0] for name, values in (await form_of(request)).items() if name in _TYPED}
    return {}


def _first(form: Mapping[str, Sequence[str]], name: str) -> str:
    return form.get(name, [""])[0].strip()
