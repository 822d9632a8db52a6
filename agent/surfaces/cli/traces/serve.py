"""`hachi traces serve`: look at traces in a browser."""

import typer

from agent.surfaces.cli.options import Host, Port
from agent.surfaces.cli.servers.serve import serve_app
from agent.surfaces.cli.session import Session, async_command


@async_command
async def serve(context: typer.Context, host: Host = "127.0.0.1", port: Port = 8020) -> None:
    """Show traces as pages in a browser, until Ctrl-C. On another address than this machine's own, an admin's
    key is needed."""
    session: Session = context.obj
    session.settings()
    from agent.surfaces.web.application import app

    await serve_app(
        session,
        host,
        port,
        lambda pet, loopback, stopping: app(pet, loopback=loopback, stopping=stopping),
        key_options="--service --admin",
        open_to="look",
        upkeep=False,
    )
