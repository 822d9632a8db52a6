"""`hachi mcp`: the memory tools for other agents."""

import sys
from typing import Annotated

import typer

from agent.surfaces.cli.options import Host, PlaceName, clean, person
from agent.surfaces.cli.output import say
from agent.surfaces.cli.servers.serve import serve_app
from agent.surfaces.cli.session import Session, async_command, require


@async_command
async def mcp(
    context: typer.Context,
    user: Annotated[
        str | None,
        typer.Option(
            "--user", "-u", parser=person, metavar="NAME", help="Whose memory it is, on stdin and stdout."
        ),
    ] = None,
    place: PlaceName = "dm",
    http: Annotated[
        int | None,
        typer.Option(
            "--http",
            min=0,
            max=65535,
            metavar="PORT",
            help="Serve HTTP on this port, 0 for any that is free; then keys say whose memory it is.",
        ),
    ] = None,
    host: Host = "127.0.0.1",
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host",
            parser=clean,
            metavar="NAME",
            help="A name by which --http is reached, as behind a proxy; may be given several times.",
        ),
    ] = None,
) -> None:
    """Give the memory tools to other agents, over the Model Context Protocol: on stdin and stdout for one
    person, or over HTTP for whoever has a key."""
    session: Session = context.obj
    if http is not None:
        unnamed = user is None and place == "dm"
        require(unnamed, "over HTTP the key says whose memory it is; leave --user and --place out")
        await _over_http(session, http, host, allow_host or [])
    else:
        require(user is not None, "say whose memory it is: --user NAME, or --http PORT, where keys say it")
        require(not allow_host, "--allow-host is for HTTP; give --http PORT with it, or leave it out")
        await _over_stdio(session, str(user), place)


async def _over_http(session: Session, port: int, host: str, names: list[str]) -> None:
    settings = session.settings()
    from agent.surfaces.mcp.http import PATH, app

    await serve_app(
        session,
        host,
        port,
        lambda pet, loopback, _: app(pet, settings, host=host, loopback=loopback, names=names),
        option="--http",
        path=PATH,
    )


async def _over_stdio(session: Session, user: str, place: str) -> None:
    """Without background jobs: many of these may run beside a server, and none may hold the embedded index
    before it searches."""
    session.settings()
    from agent.services.arguments import place_of
    from agent.surfaces.mcp.stdio import serve_stdio
    from agent.surfaces.mcp.tools import Identity

    identity = Identity(user, place_of(place), operator=True)
    async with session.companion() as pet:
        if sys.stdin.isatty():
            say(f"the memory of {user!r}, for a program that speaks MCP on stdin; Ctrl-D stops")
        await serve_stdio(pet, identity)
