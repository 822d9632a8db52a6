"""`hachi serve`: reach the companion over HTTP."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.surfaces.cli.session import Session, running, say

if TYPE_CHECKING:
    from agent.companion import Companion


@running
async def serve(
    context: typer.Context,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Where to listen; 127.0.0.1 unless said.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0: any that is free.")] = 8000,
) -> None:
    """Serve OpenAI's API and REST, until Ctrl-C. On another address than this machine's own, keys are
    needed."""
    session: Session = context.obj
    settings = session.settings()
    from agent.surfaces.http.application import app

    await serve_on(session, host, port, lambda pet, loopback: app(pet, settings, loopback=loopback))


async def serve_on(
    session: Session,
    host: str,
    port: int,
    app: "Callable[[Companion, bool], Any]",
    *,
    option: str = "--port",
    path: str = "",
) -> None:
    """Serve `app(pet, loopback)` until a signal. Others than this machine are let in only where there is a
    key to show. `option` is the one that named the port, `path` where the application answers."""
    from agent.errors import BadInput
    from agent.surfaces.http.server import address_of, is_loopback, listening, server_of

    loopback = is_loopback(host)
    with listening(host, port, option) as listener:
        async with session.companion(upkeep=True) as pet:
            guarded = await pet.services.keys.exist()
            if not (guarded or loopback):
                raise BadInput(
                    f"{host} can be reached by others, and there is no key yet; make one first: "
                    "`hachi keys create NAME --service` or `--user U`"
                )
            if not guarded:
                say("there is no key yet, so whoever is on this machine may ask, for anybody")
            say(f"listening on {address_of(listener)}{path}; Ctrl-C stops")
            await server_of(app(pet, loopback)).serve(sockets=[listener])
    say("stopped")
