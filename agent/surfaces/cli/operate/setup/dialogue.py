"""Ask one question of `hachi setup` after the other, and write the answers to the settings file.

An option answers a question. Without one a person at a terminal is asked; without a terminal the current
value stays.
"""

import io
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from dotenv import dotenv_values
from dotenv.parser import parse_stream
from prompt_toolkit import PromptSession
from pydantic import SecretStr

from agent.errors import BadInput, HachiError, SettingsError
from agent.settings import Settings, sources, variable_of
from agent.surfaces.cli.output import plain, say, write_output
from agent.types.home_files import read_settings_file

SHOWN = 4
"""How many characters at the end of a secret are shown."""
CLEARS = "-"
"""What a person types to clear a value."""


class Dialogue:
    def __init__(self, options: Mapping[str, str], *, typed: bool) -> None:
        """`options` are answers by field of Settings; `typed`: a person at a terminal can be asked."""
        self.typed = typed
        self.changes: dict[str, str | None] = {}
        """The values to write, by field of Settings; None removes the field."""
        self._options = dict(options)

    def settings(self, **more: str | None) -> Settings:
        """Return the settings with the answers so far. Raises SettingsError for an invalid value."""
        fields = Settings.model_fields
        given: dict[str, Any] = {
            name: fields[name].get_default() if value is None else value
            for name, value in (self.changes | more).items()
        }
        return Settings.load(**given, model_retries=0)

    def value(self, field: str) -> str:
        """Return the value as text; empty if there is none."""
        value = getattr(self.settings(), field)
        if isinstance(value, SecretStr):
            return value.get_secret_value()
        if isinstance(value, frozenset):
            return ",".join(map(str, sorted(value)))
        return "" if value is None else str(value)

    async def ask(
        self,
        option: str,
        question: str,
        check: Callable[[str], Any],
        *,
        today: str = "",
        secret: bool = False,
    ) -> Any:
        """Return the result of `check` for the answer. If it raises, show why and ask again."""
        while True:
            text = self._options.pop(option, None)
            if secret and text == "-":
                text = None if self.typed else sys.stdin.readline().strip()
                if text == "":
                    raise BadInput(f"stdin has no line for {variable_of(option)}")
            if text is None:
                text = await self._type(question, today, secret) if self.typed else today
            try:
                return check(text.strip())
            except (HachiError, ValueError) as error:
                if not self.typed:
                    raise BadInput(str(error)) from error
                say(str(error))

    @property
    def unused(self) -> list[str]:
        """Return the options whose question was not asked."""
        return [*self._options]

    def answers(self, field: str) -> bool:
        """Return whether an option sets the field."""
        return field in self._options

    async def set(
        self,
        field: str,
        question: str,
        valid: Callable[[Settings], object] = lambda _: None,
        *,
        default: str = "",
        secret: bool = False,
    ) -> None:
        """Ask for the value of a setting until it is valid and `valid` accepts the settings with it."""
        today = self.value(field)

        def check(text: str) -> None:
            if secret and not (text.isascii() and text.isprintable() and " " not in text):
                raise BadInput(
                    "that is no key and no token: it has blanks, or characters that they never have"
                )
            valid(self.settings(**{field: text or None}))
            if text != today:
                self.changes[field] = text or None

        await self.ask(field, question, check, today=today or default, secret=secret)

    async def works(self, trial: Callable[[Settings], Awaitable[str]]) -> bool:
        """Try the answers and print the result. Return whether to keep them; if the trial failed, the person
        decides. Raises HachiError without a terminal."""
        try:
            print(f"✓ {await trial(self.settings())}")
        except HachiError as error:
            if not self.typed:
                raise
            say(str(error))
            return await self.ask("", "Keep these answers all the same? [y/N]", _is_yes)  # type: ignore[no-any-return]
        return True

    async def _type(self, question: str, today: str, secret: bool) -> str:
        """Return what the person types. Enter returns today's value, `-` none."""
        shown = f" [{f'…{today[-SHOWN:]}' if secret else plain(today)}]" if today else ""
        prompt: PromptSession[str] = PromptSession()
        try:
            text = (await prompt.prompt_async(f"{question}{shown}: ", is_password=secret)).strip()
        except EOFError:
            raise KeyboardInterrupt from None
        return "" if text == CLEARS else text or today


def _is_yes(text: str) -> bool:
    if text.lower() not in ("y", "yes", "n", "no", ""):
        raise BadInput("answer y or n")
    return text.lower().startswith("y")


def path_of(settings: Settings) -> Path:
    """Return the path of the settings file. Raises SettingsError if it cannot be rewritten, for example a
    pipe."""
    path = (settings.env_file or settings.home / ".env").resolve()
    if path.exists() and not path.is_file():
        raise SettingsError(
            f"{path} is no regular file; set HACHI_ENV_FILE to the file to write, or unset it"
        )
    return path


def write(path: Path, changes: Mapping[str, str | None]) -> None:
    """Write the values that change, by field of Settings; None removes one. Raises SettingsError if a value
    would be read back as another one, and OSError."""
    before = read_settings_file(path, required=False)
    values = {variable_of(field): value for field, value in changes.items()}
    values = {name: value for name, value in values.items() if value != before.get(name)}
    if values:
        text = changed(path.read_text("utf-8") if path.exists() else "", values)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        names = (name if value is not None else f"no {name}" for name, value in values.items())
        write_output(path, text, ", ".join(names))
    else:
        say(f"nothing to change in {path}")
    read = sources()
    if elsewhere := [name for name in map(variable_of, changes) if read.get(name) == "environment"]:
        say(f"the environment sets {', '.join(elsewhere)}, too, and wins over the file")


def changed(text: str, values: Mapping[str, str | None]) -> str:
    """Return the text of the file with these variables; other lines and comments stay. Raises
    SettingsError."""
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
