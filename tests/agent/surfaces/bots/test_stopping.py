"""How a bot is told to stop."""

import asyncio
import signal

import pytest

from agent.surfaces.bots.stopping import stopping


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_sets_the_event_and_no_more_for_as_long_as_it_is_listened_to(
    number: signal.Signals,
) -> None:
    stop = asyncio.Event()
    before = signal.getsignal(number)
    with stopping(stop):
        signal.raise_signal(number)
        async with asyncio.timeout(5):
            await stop.wait()
    assert signal.getsignal(number) in (before, signal.SIG_DFL, signal.default_int_handler)
