import asyncio
import signal

import pytest

from agent.surfaces.bots.running import stop_on_signals


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_sets_the_event_inside_the_block_only(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with stop_on_signals() as stop:
        signal.raise_signal(number)
        async with asyncio.timeout(5):
            await stop.wait()
    assert signal.getsignal(number) in (before, signal.SIG_DFL, signal.default_int_handler)
