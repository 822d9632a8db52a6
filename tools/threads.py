"""Run the sync tools of a program in threads of their own, so that they block nothing else."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import Any

from tools.failures import ToolFailed

MOST = 32
"""Maximum number of threads of one process. A call that never ends keeps its thread."""
WAIT_SECONDS = 5.0
"""Seconds that a call waits for a free thread."""
_POLL_SECONDS = 0.02
_free = threading.BoundedSemaphore(MOST)


def exhausted() -> bool:
    """Return whether every thread is busy with a call that does not end."""
    if not _free.acquire(blocking=False):
        return True
    _free.release()
    return False


async def in_thread(function: Callable[[], Any]) -> Any:
    """Run the function in a thread of its own. Raises ToolFailed if none becomes free."""
    loop = asyncio.get_running_loop()
    give_up = loop.time() + WAIT_SECONDS
    while not _free.acquire(blocking=False):
        if loop.time() > give_up:
            raise ToolFailed(f"all {MOST} threads for tools are busy with calls that do not end")
        await asyncio.sleep(_POLL_SECONDS)
    ended, run = loop.create_future(), copy_context().run

    def tell(result: Any, error: BaseException | None) -> None:
        if not ended.done():  # a caller still waits for it
            ended.set_result((result, error))

    def work() -> None:
        result, error = None, None
        try:
            result = run(function)
        except BaseException as raised:
            error = raised
        _free.release()
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(tell, result, error)

    # A daemon, so that a call that hangs does not keep the process from ending.
    threading.Thread(target=work, name="hachi tool", daemon=True).start()
    result, error = await ended
    if error is not None:
        raise error
    return result
