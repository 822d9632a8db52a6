"""`hachi traces serve`: look at traces in a browser."""

from typing import TYPE_CHECKING, Annotated

import typer

from agent.surfaces.cli.session import Session, running, say

if TYPE_CHECKING:
    from agent.surfaces.http.server import Server


@running
async def serve(
    context: typer.Context,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Where to listen; 127.0.0.1 unless said.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0: any that is free.")] = 8020,
) -> None:
    """Show traces as pages in a browser, until Ctrl-C. On another address than this machine's own, an admin's
    key is needed."""
    session: Session = context.obj
    session.settings()
    from agent.errors import BadInput
    from agent.surfaces.http.server import address_of, is_loopback, listening, server_of
    from agent.surfaces.web.application import app

    loopback = is_loopback(host)
    with listening(host, port) as listener:
        async with session.companion() as pet:
            if not (loopback or await pet.services.keys.exist()):
                raise BadInput(
                    f"{host} can be reached by others, and there is no key yet; make one first: "
                    "`hachi keys create NAME --service --admin`"
                )
            if not await pet.services.keys.exist():
                say("there is no key yet, so whoever is on this machine may look")
            say(f"listening on {address_of(listener)}; Ctrl-C stops")
            serving: list[Server] = []

            def stopping() -> bool:
                return serving[0].should_exit

            serving.append(server_of(app(pet, loopback=loopback, stopping=stopping)))
            await serving[0].serve(sockets=[listener])
    say("stopped")
