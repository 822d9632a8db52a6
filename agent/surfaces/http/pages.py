"""A page for people who open the server in a browser: the description of the API."""

from html import escape
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse

router = APIRouter(include_in_schema=False)

_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Hachi's API</title>
<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">
<style>body{{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}}
code{{font-size:.95em}} dt{{margin-top:1rem}} dd{{margin:0 0 0 1.5rem}}</style>
<h1>Hachi's API</h1><p><a href='/'>The console</a> is for people;
<a href='/openapi.json'>/openapi.json</a> has every field.</p><dl>{entries}</dl></html>"""
_HEADERS = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'"}


@router.get("/docs")
async def docs(request: Request) -> HTMLResponse:
    """Show the description of the API. Nothing is loaded from another server."""
    entries = [
        _entry(path, method, operation)
        for path, methods in request.app.openapi()["paths"].items()
        for method, operation in methods.items()
    ]
    return HTMLResponse(_PAGE.format(entries="".join(entries)), headers=_HEADERS)


def _entry(path: str, method: str, operation: dict[str, Any]) -> str:
    given = ", ".join(escape(parameter["name"]) for parameter in operation.get("parameters", ()))
    says = escape(" ".join(operation.get("description", "").split()))
    parameters = f"<br><small>{given}</small>" if given else ""
    return f"<dt><code>{method.upper()} {escape(path)}</code></dt><dd>{says}{parameters}</dd>"
