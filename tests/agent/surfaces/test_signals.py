import asyncio
import signal

from agent.surfaces.signals import on_stop_signal


async def test_a_signal_sets_the_event_inside_the_block_only() -> None:
    before = signal.getsignal(signal.SIGTERM)
    stop = asyncio.Event()
    with on_stop_signal(stop.set):
        signal.raise_signal(signal.SIGTERM)
        async with asyncio.timeout(60):
            await stop.wait()
    assert signal.getsignal(signal.SIGTERM) in (before, signal.SIG_DFL, signal.default_int_handler)
