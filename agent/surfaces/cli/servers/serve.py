"""`hachi serve`: the HTTP API. Other commands that listen share `serve_app`."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import typer

from agent.surfaces.cli.options import Host, Port
from agent.surfaces.cli.output import say
from agent.surfaces.cli.session import Session, async_command

if TYPE_CHECKING:
    from agent.companion import Companion
    from agent.surfaces.http.server import Server


@async_command
async def serve(context: typer.Context, host: Host = "127.0.0.1", port: Port = 8000) -> None:
    """Serve OpenAI's API and REST, until Ctrl-C. On another address than this machine's own, keys are
    needed."""
    session: Session = context.obj
    settings = session.settings()
    from agent.surfaces.http.application import app

    await serve_app(session, host, port, lambda pet, loopback, _: app(pet, settings, loopback=loopback))


async def serve_app(
    session: Session,
    host: str,
    port: int,
    app: "Callable[[Companion, bool, Callable[[], bool]], Any]",
    *,
    option: str = "--port",
    path: str = "",
    key_options: str = "--service` or `--user U",
    open_to: str = "ask, for anybody",
    upkeep: bool = True,
) -> None:
    """Serve `app(pet, loopback, stopping)` until a signal. Raises BadInput for an address that others can
    reach while there is no key.

    `option` named the port; `path` is where the application answers; `key_options` make a fitting key;
    `open_to` is what anybody on this machine may do without one.
    """
    from agent.errors import BadInput
    from agent.surfaces.http.server import address_of, is_loopback, listening, server_of

    loopback = is_loopback(host)
    with listening(host, port, option) as listener:
        async with session.companion(upkeep=upkeep) as pet:
            protected = await pet.services.keys.exist()
            if not (protected or loopback):
                raise BadInput(
                    f"{host} can be reached by others, and there is no key yet; make one first: "
                    f"`hachi keys create NAME {key_options}`"
                )
            if not protected:
                say(f"there is no key yet, so whoever is on this machine may {open_to}")
            say(f"listening on {address_of(listener)}{path}; Ctrl-C stops")
            serving: list[Server] = []
            serving.append(server_of(app(pet, loopback, lambda: serving[0].should_exit)))
            await serving[0].serve(sockets=[listener])
    say("stopped")
