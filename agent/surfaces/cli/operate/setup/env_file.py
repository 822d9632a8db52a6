"""Write the settings file: whole or not at all, readable by its owner only."""

import io
from collections.abc import Mapping
from pathlib import Path

from dotenv import dotenv_values
from dotenv.parser import parse_stream

from agent.errors import SettingsError
from agent.settings import Settings
from agent.surfaces.cli.output import write_output


def path_of(settings: Settings) -> Path:
    """Return the path of the settings file. Raises SettingsError if it cannot be rewritten, for example a
    pipe."""
    path = (settings.env_file or settings.home / ".env").resolve()
    if path.exists() and not path.is_file():
        raise SettingsError(
            f"{path} is no regular file; set HACHI_ENV_FILE to the file to write, or unset it"
        )
    return path


def write(path: Path, values: Mapping[str, str | None]) -> None:
    """Set these variables; None removes one. Other lines and comments stay. Raises SettingsError if a value
    would be read back as another one, and OSError."""
    text = changed(path.read_text("utf-8") if path.exists() else "", values)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    names = (name if value is not None else f"no {name}" for name, value in values.items())
    write_output(path, text, ", ".join(names))


def changed(text: str, values: Mapping[str, str | None]) -> str:
    """Return the text of the file with these values. Raises as `write` does."""
    stays = [line.original.string for line in parse_stream(io.StringIO(text)) if line.key not in values]
    before = "".join(stays)
    new = f"{before}\n" if before and not before.endswith("\n") else before
    new += "".join(f"{name}={_quoted(value)}\n" for name, value in values.items() if value is not None)
    read = dotenv_values(stream=io.StringIO(new))
    for name, value in values.items():
        if read.get(name) != value:
            raise SettingsError(f"{name} cannot be written to a settings file; export it in the environment")
    return new


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
