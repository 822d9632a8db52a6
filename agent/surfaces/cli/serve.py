"""`hachi serve`: reach the companion over HTTP."""

from typing import Annotated

import typer

from agent.surfaces.cli.session import Session, running, say


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
    from agent.errors import BadInput
    from agent.surfaces.http.application import app
    from agent.surfaces.http.serving import address_of, is_loopback, listening, server_of
    from memory.keys import Keys

    loopback = is_loopback(host)
    with listening(host, port) as listener:
        async with session.companion(upkeep=True) as pet:
            guarded = await Keys(pet.database).exist()
            if not (guarded or loopback):
                raise BadInput(
                    f"{host} can be reached by others, and there is no key yet; make one first: "
                    "`hachi keys create NAME --service` or `--user U`"
                )
            if not guarded:
                say("there is no key yet, so whoever is on this machine may ask, for anybody")
            say(f"listening on {address_of(listener)}; Ctrl-C stops")
            await server_of(app(pet, settings, loopback=loopback)).serve(sockets=[listener])
    say("stopped")
