"""The command `hachi`. Each group of commands is a module; this one puts them together and says what went
wrong: one line on stderr, exit 1 (2 where the command itself is mistyped).

Nothing heavy is imported until a command runs, so that `--help` answers at once.
"""

import functools
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any

import typer

from agent.surfaces.cli import knowledge
from agent.surfaces.cli.chat import command as chat_command
from agent.surfaces.cli.memories import commands as memory_commands
from agent.surfaces.cli.memories import transfer
from agent.surfaces.cli.operate import doctor, keys, maintenance, stats
from agent.surfaces.cli.people import context, tasks
from agent.surfaces.cli.servers import discord, mcp, serve, slack
from agent.surfaces.cli.session import Session
from agent.surfaces.cli.traces import browse as trace_commands


def build() -> typer.Typer:
    """All commands."""
    app = typer.Typer(
        name="hachi", rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False
    )
    app.callback(invoke_without_command=True)(_options)
    app.command("chat")(chat_command.chat)
    transfer.add_to(memory_commands.group)
    app.add_typer(memory_commands.group, name="memories")
    app.add_typer(tasks.group, name="tasks")
    app.add_typer(context.group, name="context")
    app.add_typer(knowledge.group, name="knowledge")
    app.add_typer(trace_commands.group, name="traces")
    app.add_typer(keys.group, name="keys")
    app.command("serve")(serve.serve)
    app.command("mcp")(mcp.mcp)
    app.command("discord")(discord.discord)
    app.command("slack")(slack.slack)
    app.command("stats")(stats.stats)
    app.command("purge")(maintenance.purge)
    app.command("reindex")(maintenance.reindex)
    app.command("migrate")(maintenance.migrate)
    app.command("doctor")(doctor.doctor)
    return app


def _options(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Say which version this is.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")] = False,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Show the log as it is written.")] = False,
) -> None:
    """Hachi, a companion that remembers.

    Settings are environment variables (HACHI_HOME, HACHI_MODEL, OPENAI_API_KEY ...); `hachi doctor` shows
    them all and what can be reached.
    """
    if version:
        from importlib.metadata import version as version_of

        print(f"hachi {version_of('hachi')}")
        raise typer.Exit
    context.obj.debug, context.obj.verbose = debug, verbose
    if context.invoked_subcommand is None:
        print(context.get_help())


@functools.cache
def _command() -> Any:
    """Made once for all that a process runs: it takes 30 ms."""
    return typer.main.get_command(build())


def main(args: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    _steady_streams()
    with Session() as session:
        try:
            code: Any = _command().main(args, prog_name="hachi", standalone_mode=False, obj=session)
            sys.stdout.flush()
        except typer.TyperException as error:
            _say_usage(error)
            return error.exit_code
        except BrokenPipeError:
            return 1
        except Exception as error:
            session.complain(error)
            return 1
        finally:
            _let_go_of_stdout()
        if code == INTERRUPTED:
            print("hachi: stopped", file=sys.stderr)
            return 1
    return code if isinstance(code, int) else 0


INTERRUPTED = 130
"""What typer makes of Ctrl-C."""


def _say_usage(error: typer.TyperException) -> None:
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "hachi"
    said = " ".join(error.format_message().split()).rstrip(".").replace("Value error, ", "")
    print(f"hachi: {said}; see `{command} --help`", file=sys.stderr)


def _steady_streams() -> None:
    """What a terminal's encoding lacks is shown as `?`; a closed stream swallows what it is given."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - for as long as we run
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def _let_go_of_stdout() -> None:
    """Python writes out stdout once more at its end, and would complain of a pipe that nobody reads."""
    try:
        sys.stdout.flush()
    except OSError:
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stdout.fileno())
            os.close(nowhere)
