"""What a library may not do: tell its host's log what people said."""

import json
import logging

import pytest

from tests.hachi.conftest import Opened


class LogLines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@pytest.mark.parametrize("decisions", ["on", "redacted", "off"])
async def test_no_fact_is_in_the_log_of_the_program_unless_it_asks(
    hachi_companion: Opened, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, decisions: str
) -> None:
    hosts, asked, logger = LogLines(), LogLines(), logging.getLogger("hachi.decisions")
    monkeypatch.setattr(logging.root, "handlers", [hosts])
    caplog.set_level(logging.DEBUG)
    async with hachi_companion(settings={"decisions": decisions}) as pet:
        await pet.remember("Ana rows", user="ana")
        logger.addHandler(asked)
        logger.setLevel(logging.INFO)
        try:
            await pet.remember("Ana rows on Fridays", user="ana")
        finally:
            logger.removeHandler(asked)
            logger.setLevel(logging.NOTSET)
    [decision] = json.loads(asked.lines[0])["decisions"]
    facts = {"on": "Ana rows on Fridays", "redacted": "[redacted]", "off": None}
    assert decision.get("fact") == facts[decisions]
    logging.getLogger("hachi.memory").info("the host hears this")
    assert "the host hears this" in hosts.lines
    assert "Ana rows" not in "".join(hosts.lines)
