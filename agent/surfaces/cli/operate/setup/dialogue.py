"""Ask the questions of `hachi setup`.

An option answers one; else a person at a terminal is asked; else what is set today stays.
"""

import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from prompt_toolkit import PromptSession
from pydantic import SecretStr

from agent.errors import BadInput, HachiError
from agent.settings import Settings, variable_of
from agent.surfaces.cli.output import plain, say

SHOWN = 4
"""Characters of a secret that are shown, at its end."""
CLEARS = "-"
"""What is typed where no value is wanted."""


class Dialogue:
    def __init__(self, options: Mapping[str, str], *, typed: bool) -> None:
        """`options` are answers by field of Settings; `typed` says whether a person can be asked."""
        self.typed = typed
        self.changes: dict[str, str | None] = {}
        """What is to be written, by field of Settings; None takes it out."""
        self._options = dict(options)

    def settings(self, **more: str | None) -> Settings:
        """Return the settings as they would be. Raises SettingsError for a value that cannot be read."""
        fields = Settings.model_fields
        given: dict[str, Any] = {
            name: fields[name].get_default() if value is None else value
            for name, value in (self.changes | more).items()
        }
        return Settings.load(**given, model_retries=0)

    def value(self, field: str) -> str:
        """Return the value as text; empty where there is none."""
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
        """Return what `check` makes of the answer; where it raises, a person reads why and is asked again."""
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
        """Return what options answer that was not asked."""
        return [*self._options]

    def answers(self, field: str) -> bool:
        """Return whether an option answers it."""
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
        """Ask for the value of a setting, until it can be read and `valid` takes the settings with it."""
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
        """Try the answers and print what came of it. Return whether they may stay: a person decides on those
        that failed. Raises HachiError without a terminal."""
        try:
            print(f"✓ {await trial(self.settings())}")
        except HachiError as error:
            if not self.typed:
                raise
            say(str(error))
            return await self.ask("", "Keep these answers all the same? [y/N]", _is_yes)  # type: ignore[no-any-return]
        return True

    async def _type(self, question: str, today: str, secret: bool) -> str:
        """Return what is typed; Enter is today's value, and `-` none."""
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
