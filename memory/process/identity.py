"""Name this process, and tell whether a process of such a name still runs."""

import os
import socket
from contextlib import suppress
from pathlib import Path


def this_process() -> str:
    """Return ``HOST:PID-START``."""
    pid = str(os.getpid())
    return f"{socket.gethostname()}:{pid}-{_start_time(pid)}"


def has_ended(process: str) -> bool:
    """Return whether the process has ended. False for a process of another host, which cannot be checked."""
    host, _, numbers = process.rpartition(":")
    return host == socket.gethostname() and not _runs(numbers)


def _runs(process: str) -> bool:
    """Return whether the process runs, and is not a newer one with the same number."""
    pid, _, began = process.partition("-")
    with suppress(ProcessLookupError, ValueError, OverflowError):
        if os.name != "nt":  # where os.kill would end the process
            with suppress(PermissionError):
                os.kill(int(pid), 0)
        return _start_time(pid) in (began, "")
    return False


def _start_time(pid: str) -> str:
    """Return a process's start time in the kernel's clock ticks; empty if the system does not say."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""
