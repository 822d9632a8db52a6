"""`hachi serve`, `worker`, `console`, `mcp`, `discord`, `slack`, `traces serve`: run until stopped."""

import asyncio
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.errors import BadInput, HachiError, SettingsError
from agent.surfaces.cli.options import PlaceName, User, login, user_option
from agent.surfaces.cli.output import say
from agent.surfaces.cli.session import Session, require, with_session
from agent.surfaces.signals import on_stop_signal
from memory.errors import how_to_install

if TYPE_CHECKING:
    from socket import socket

    from agent.companion import Companion
    from agent.settings import Settings
    from agent.surfaces.http.server import Server

Host = Annotated[str, typer.Option("--host", metavar="ADDRESS", help="The address to listen on.")]
Port = Annotated[int, typer.Option("--port", min=0, max=65535, help="0 takes any free port.")]
Workers = Annotated[
    int, typer.Option("--workers", min=1, max=64, help="How many processes answer; one for each core.")
]
Listener = Annotated[int | None, typer.Option("--listener", hidden=True)]
"""Passed to a worker process: the file number of the socket that the first process opened."""
HttpPort = Annotated[
    int | None,
    typer.Option("--http", min=0, max=65535, metavar="PORT", help="Serve HTTP here. 0 takes any free port."),
]
Heartbeat = Annotated[
    Path | None,
    typer.Option(
        "--heartbeat", metavar="FILE", help="Touch this file every 10 seconds while the process is healthy."
    ),
]
BEAT_SECONDS = 10.0

log = logging.getLogger("hachi.serve")

NO_TOKEN = "set DISCORD_TOKEN to your bot's token; docs/discord.md shows where it comes from"


@with_session
async def serve(
    session: Session,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    workers: Workers = 1,
    listener: Listener = None,
) -> None:
    """Serve OpenAI's API, REST and the console until Ctrl-C.

    An address that other machines can reach needs a key.
    """
    from agent.surfaces.http.server import inherited

    accepting = None if listener is None else inherited(listener)  # before the rest, which takes seconds
    settings = session.settings()
    from agent.surfaces.http.application import app
    from agent.surfaces.web import application as web

    await _serve(
        session,
        host,
        port,
        lambda pet, loopback, stopping: web.beside(
            app(pet, settings, loopback=loopback, console=True),
            web.app(pet, person=login(), loopback=loopback, stopping=stopping, docs=True),
        ),
        beside=workers - 1,
        listener=accepting,
    )


@with_session
async def worker(session: Session, heartbeat: Heartbeat = None) -> None:
    """Do background jobs and scheduled work, next to any number of `hachi serve`, `discord` and `slack`."""
    session.settings().chosen_model  # noqa: B018 - raises before the work begins
    stopped = asyncio.Event()
    async with session.companion(periodic_jobs=True) as pet:
        await pet.runtime()
        with on_stop_signal(stopped.set):
            say("doing background work; Ctrl-C stops")
            while not stopped.is_set():
                with suppress(HachiError):  # the database does not answer
                    await pet.admin.health.revision()
                    if heartbeat:
                        await asyncio.to_thread(heartbeat.touch)
                with suppress(TimeoutError):
                    await asyncio.wait_for(stopped.wait(), BEAT_SECONDS)
    say("stopped")


@with_session
async def console(session: Session, user: User, host: Host = "127.0.0.1", port: Port = 8010) -> None:
    """Show your page in a browser: talk, memories, tasks, traces.

    Until the first key is created it is the page of --user. After that each key opens the page of its person.
    """
    session.settings()
    from agent.surfaces.web.application import app

    await _serve(
        session,
        host,
        port,
        lambda pet, loopback, stopping: app(pet, person=user, loopback=loopback, stopping=stopping),
        open_to="read and change what is remembered",
    )


@with_session
async def serve_traces(session: Session, host: Host = "127.0.0.1", port: Port = 8020) -> None:
    """Show traces in a browser until Ctrl-C. An address that other machines can reach needs an admin's
    key."""
    session.settings()
    from agent.surfaces.web.application import app

    await _serve(
        session,
        host,
        port,
        lambda pet, loopback, stopping: app(pet, loopback=loopback, stopping=stopping),
        key_options="--service --admin",
        open_to="look",
        periodic_jobs=False,
    )


@with_session
async def mcp(
    session: Session,
    user: Annotated[str | None, user_option(help="Whose memory to serve on stdin and stdout.")] = None,
    place: PlaceName = "dm",
    http: HttpPort = None,
    host: Host = "127.0.0.1",
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host",
            metavar="NAME",
            help="A host name by which clients reach --http, as behind a proxy. May be given several times.",
        ),
    ] = None,
) -> None:
    """Serve the memory tools to other agents over MCP.

    On stdin and stdout for one person, or over HTTP, where the key names the person.
    """
    if http is None:
        require(user is not None, "say whose memory it is: --user NAME, or --http PORT, where keys say it")
        require(not allow_host, "--allow-host is for HTTP; give --http PORT with it, or leave it out")
        await _mcp_on_stdio(session, str(user), place)
        return
    unnamed = user is None and place == "dm"
    require(unnamed, "over HTTP the key says whose memory it is; leave --user and --place out")
    session.settings()
    from agent.surfaces.mcp.http import PATH, app

    await _serve(
        session,
        host,
        http,
        lambda pet, loopback, _: app(pet, host=host, loopback=loopback, names=allow_host or ()),
        option="--http",
        path=PATH,
    )


async def _mcp_on_stdio(session: Session, user: str, place: str) -> None:
    """Serve MCP on stdin and stdout without background jobs. Many of these may run next to a server, and none
    may lock the embedded index before it searches."""
    session.settings()
    from agent.surfaces.mcp.stdio import serve_stdio
    from agent.surfaces.mcp.tools import Identity
    from agent.types.arguments import place_of

    identity = Identity(user, place_of(place), operator=True)
    async with session.companion() as pet:
        if sys.stdin.isatty():
            say(f"the memory of {user!r}, for a program that speaks MCP on stdin; Ctrl-D stops")
        await serve_stdio(pet, identity)


async def _serve(
    session: Session,
    host: str,
    port: int,
    app: "Callable[[Companion, bool, Callable[[], bool]], Any]",
    *,
    option: str = "--port",
    path: str = "",
    key_options: str = "--service` or `--user U",
    open_to: str = "ask, for anybody",
    periodic_jobs: bool = True,
    beside: int = 0,
    listener: "socket | None" = None,
) -> None:
    """Serve `app(pet, loopback, stopping)` until a signal. Raises BadInput for an address that other machines
    can reach while there is no key.

    `beside` is how many more processes run; each gets the `listener` and leaves the schedule to this one.

    `option` is the option that set the port. `path` is where the application answers. `key_options` create a
    fitting key. `open_to` says what anybody on this machine may do without a key.
    """
    from agent.surfaces.http.server import address_of, is_loopback, listening, server_of, workers

    first = listener is None
    tell = say if first else log.info
    with listener or listening(host, port, option) as accepting:
        loopback = is_loopback(accepting.getsockname()[0])
        async with session.companion(periodic_jobs=periodic_jobs and first) as pet:
            protected = await pet.admin.keys.exist()
            if not (protected or loopback):
                raise BadInput(
                    f"{host} can be reached by others, and there is no key yet; make one first: "
                    f"`hachi keys create NAME {key_options}`"
                )
            if not protected:
                tell(f"there is no key yet, so whoever is on this machine may {open_to}")
            tell(f"listening on {address_of(accepting)}{path}; Ctrl-C stops")
            serving: list[Server] = []
            serving.append(server_of(app(pet, loopback, lambda: serving[0].should_exit)))
            async with workers(beside, accepting):
                await serving[0].serve(sockets=[accepting])
    tell("stopped")


@with_session
async def discord(session: Session, heartbeat: Heartbeat = None) -> None:
    """Run the bot on Discord."""
    settings = session.settings()
    with extra("discord", "discord.py", "discord", "aiohttp"):
        from agent.surfaces.bots.discord.bot import run
    if settings.discord_token is None:
        raise SettingsError(NO_TOKEN)
    settings.chosen_model  # noqa: B018 - raises before anybody writes
    async with session.companion(periodic_jobs=True) as pet:
        await run(pet, settings.discord_token.get_secret_value(), say, heartbeat=heartbeat)


@with_session
async def slack(
    session: Session, http: HttpPort = None, host: Host = "127.0.0.1", heartbeat: Heartbeat = None
) -> None:
    """Run the bot on Slack, in Socket Mode or over HTTP."""
    settings = session.settings()
    with extra("slack", "slack-bolt", "slack_bolt", "slack_sdk", "aiohttp"):
        from agent.surfaces.bots.slack.access import check
        from agent.surfaces.bots.slack.bot import run
    check(settings, http=http is not None)
    settings.chosen_model  # noqa: B018 - raises before anybody writes
    async with session.companion(periodic_jobs=True) as pet:
        await run(pet, settings, say, None if http is None else (host, http), heartbeat)


async def slack_access(settings: "Settings") -> str:
    """Return which bot the tokens belong to. Raises SettingsError."""
    with extra("slack", "slack-bolt", "slack_bolt", "slack_sdk", "aiohttp"):
        access = import_module("agent.surfaces.bots.slack.access")
    return str(await access.check_access(settings))


async def discord_access(settings: "Settings", *, inviting: bool = False) -> str:
    """Return which bot the token belongs to; with `inviting` also the link that invites it. Raises
    SettingsError."""
    with extra("discord", "discord.py", "discord", "aiohttp"):
        access = import_module("agent.surfaces.bots.discord.access")
    if not inviting:
        return str(await access.check_access(settings))
    who, link = await access.check_invited(settings)
    return f"{who}; to invite it into a server, open {link}"


@contextmanager
def extra(name: str, library: str, *packages: str) -> Iterator[None]:
    """Raise SettingsError that names the extra to install if one of its packages is missing in the block."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name and error.name.partition(".")[0] in packages:
            raise SettingsError(f"{library} is not installed: {how_to_install(name)}") from error
        raise
