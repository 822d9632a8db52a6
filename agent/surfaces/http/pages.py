"""Two pages for people who open the server in a browser: what it is, and its description."""

from html import escape
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse

router = APIRouter(include_in_schema=False)

_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">
<style>body{{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}}
code{{font-size:.95em}} dt{{margin-top:1rem}} dd{{margin:0 0 0 1.5rem}}</style>
<h1>{title}</h1>{body}</html>"""
_HEADERS = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'"}


@router.get("/")
async def root(request: Request) -> HTMLResponse:
    """Say what this server is."""
    body = (
        "<p>A companion that remembers. OpenAI's clients work with <code>/v1</code> as their base URL "
        "and one of this server's keys.</p><ul><li><a href='/docs'>/docs</a>: what can be asked</li>"
        "<li><a href='/openapi.json'>/openapi.json</a>: the same for programs</li>"
        "<li><a href='/readyz'>/readyz</a>: whether everything can be reached</li></ul>"
    )
    return HTMLResponse(_PAGE.format(title="Hachi", body=body), headers=_HEADERS)


@router.get("/docs")
async def docs(request: Request) -> HTMLResponse:
    """Show the description of the API. Nothing is loaded from another server."""
    entries = [
        _entry(path, method, operation)
        for path, methods in request.app.openapi()["paths"].items()
        for method, operation in methods.items()
    ]
    body = f"<p><a href='/openapi.json'>/openapi.json</a> has every field.</p><dl>{''.join(entries)}</dl>"
    return HTMLResponse(_PAGE.format(title="Hachi's API", body=body), headers=_HEADERS)


def _entry(path: str, method: str, operation: dict[str, Any]) -> str:
    given = ", ".join(escape(parameter["name"]) for parameter in operation.get("parameters", ()))
    says = escape(" ".join(operation.get("description", "").split()))
    parameters = f"<br><small>{given}</small>" if given else ""
    return f"<dt><code>{method.upper()} {escape(path)}</code></dt><dd>{says}{parameters}</dd>"
