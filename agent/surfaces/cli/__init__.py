"""Run the command `hachi`: load the command that is named, run it, and report an error in one line.

The exit code is 1 if it failed, and 2 if it was mistyped. Nothing heavy is imported before a command runs. A
new command is a function with a decorator of `session.py`, and a line in COMMANDS.
"""

import functools
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

import typer

from agent.surfaces.cli.session import Session

SURFACES = {"serve": "http"} | {name: name for name in ("mcp", "console", "discord", "slack")}
"""The surface of these commands in traces; the surface of all others is `cli`."""
LONGEST_LINE = 200
"""Maximum characters of a command's line in the help."""
INTERRUPTED = 130
"""The exit code that typer returns after Ctrl-C."""
COMMANDS = {
    "setup": "operate.setup.command.setup",
    "chat": "chat.command.chat",
    "console": "operate.servers.console",
    "serve": "operate.servers.serve",
    "worker": "operate.servers.worker",
    "mcp": "operate.servers.mcp",
    "discord": "operate.servers.discord",
    "slack": "operate.servers.slack",
    "import": "operate.transfer.import_memories",
    "stats": "operate.operator.stats",
    "purge": "operate.operator.purge",
    "reindex": "operate.operator.reindex",
    "migrate": "operate.databases.migrate",
    "doctor": "operate.doctor.doctor",
    "backup": "operate.databases.backup",
    "restore": "operate.databases.restore",
    "move": "operate.databases.move",
    "memories": "memories.group",
    "people": "people.people",
    "tasks": "people.tasks",
    "context": "people.context",
    "messages": "people.messages",
    "conversations": "conversations.group",
    "knowledge": "knowledge.group",
    "traces": "traces.browse.group",
    "keys": "operate.operator.keys",
    "jobs": "operate.operator.jobs",
}
"""The module of each command, or group of commands, in this package."""


@functools.cache
def build(name: str = "") -> Any:
    """Return the command `hachi`: with only the named command, so that no other is loaded, or with all of
    them."""
    app = typer.Typer(
        name="hachi",
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True)(_options)
    for title in [name] if name in COMMANDS else COMMANDS:
        module, _, attribute = COMMANDS[title].rpartition(".")
        command = getattr(import_module(f"{__name__}.{module}"), attribute)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=title)
        else:
            app.command(title)(command)
    return _uncut(typer.main.get_command(app))


def _options(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Print the traceback of an error.")] = False,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Print the log on stderr.")] = False,
) -> None:
    """Hachi, a companion that remembers. `hachi chat` talks with it.

    Settings are environment variables (HACHI_HOME, HACHI_MODEL, OPENAI_API_KEY ...). `hachi doctor --all`
    shows them, and whether each server can be reached.
    """
    if version:
        from agent import __version__

        print(f"hachi {__version__}")
        raise typer.Exit
    context.obj.debug, context.obj.verbose = debug, verbose
    if context.invoked_subcommand is None:
        print(context.get_help())


def _uncut(group: Any) -> Any:
    """Make the help of a group wrap the lines of its commands, which typer would cut."""
    for command in group.commands.values():
        command.short_help = command.get_short_help_str(LONGEST_LINE)
        if hasattr(command, "commands"):
            _uncut(command)
    return group


def main(args: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    _make_streams_safe()
    args = sys.argv[1:] if args is None else args
    name = next((word for word in args if not word.startswith("-")), "")
    with Session(SURFACES.get(name, "cli")) as session:
        session.callback(os.umask, os.umask(0o077))  # only this user may read files that the command writes
        try:
            code: Any = build(name).main(args, prog_name="hachi", standalone_mode=False, obj=session)
            sys.stdout.flush()
        except typer.TyperException as error:
            _report_usage(error)
            return error.exit_code
        except BrokenPipeError:
            return 1
        except Exception as error:
            session.report(error)
            return 1
        if code == INTERRUPTED:
            print("hachi: stopped", file=sys.stderr)
            return 1
    return code if isinstance(code, int) else 0


def _report_usage(error: typer.TyperException) -> None:
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "hachi"
    message = " ".join(error.format_message().split()).rstrip(".").replace("Value error, ", "")
    print(f"hachi: {message}; see `{command} --help`", file=sys.stderr)


def _make_streams_safe() -> None:
    """Print `?` for characters that the terminal's encoding lacks, and nothing on a closed stream."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - open while we run
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
