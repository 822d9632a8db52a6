"""Measure how long a person waits for a command, and for the first prompt and answer of a chat.

    python benchmarks/start.py [--runs N] [--bar NAME=SECONDS ...] [--json]

Each command runs as its own process on a small data folder, without a server or a token, and with compiled
modules as in an installation. The fastest of several runs counts, since slower ones measure the machine. It
reports wall time and CPU time; the latter is the same on a busy machine. `memories add` uses the database of
DATABASE_URL if that is set. Exit 1 if a bar is missed.
"""

import os
import pty
import select
import shlex
import subprocess
import sys
import tempfile
import time

from harness import arguments, bars_of, finish, over

HACHI = [sys.executable, "-m", "hachi"]
BARS = {
    "--help": 0.15,
    "traces ls": 0.35,
    "memories list --user ana": 0.35,
    "doctor": 0.35,
    "chat --user ana, first prompt": 0.5,
    "chat --user ana, first answer": 1.5,
    "chat --user ana -m 'What is my cat called?'": 2.0,
    "traces replay last": 2.0,
}
ON_A_SERVER = {"memories add 'Ana skis.' --user ana": 1.0}
LONGEST = 60.0
"""Seconds after which a prompt or an answer is no longer awaited."""


def command_seconds(arguments: str, environment: dict[str, str]) -> tuple[float, float]:
    """Return the wall time and the CPU time of the command, in seconds."""
    began = time.perf_counter()
    quiet = subprocess.DEVNULL
    process = subprocess.Popen([*HACHI, *shlex.split(arguments)], env=environment, stdout=quiet, stderr=quiet)
    processor = _ended(process)
    if process.returncode:
        raise RuntimeError(f"hachi {arguments} failed")
    return time.perf_counter() - began, processor


def chat_seconds(arguments: str, environment: dict[str, str]) -> tuple[float, float]:
    """Return two times in seconds. The first is wall time until the first prompt, or until the answer to a
    line that was typed at once, at a terminal. The second is CPU time until the end."""
    command, _, awaited = arguments.partition(", first ")
    ours, theirs = pty.openpty()
    began = time.perf_counter()
    process = subprocess.Popen(
        [*HACHI, *command.split()], stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    prompted = _until(ours, b"ana:", began)
    if awaited == "answer":
        os.write(ours, b"What is my cat called?\r")
        prompted = _until(ours, b"Miso", began)
    process.kill()
    os.close(ours)
    return prompted, _ended(process)


def _ended(process: "subprocess.Popen[bytes]") -> float:
    """Wait for the end of the process and return its CPU time in seconds."""
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return used.ru_utime + used.ru_stime


def _until(terminal: int, text: bytes, began: float) -> float:
    """Return the seconds since `began` when the terminal shows the text. Raises TimeoutError."""
    shown = b""
    while text not in shown:
        if time.perf_counter() - began > LONGEST:
            raise TimeoutError(shown.decode(errors="replace")[-500:])
        if select.select([terminal], [], [], 0.1)[0]:
            shown += os.read(terminal, 4096)
    return time.perf_counter() - began


def main() -> int:
    parser = arguments(__doc__, bars=True)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    bars = bars_of(options, BARS | (ON_A_SERVER if os.environ.get("DATABASE_URL") else {}))
    left_out = ("OPENAI_", "HACHI_", "PYTHONDONTWRITEBYTECODE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    found = {}
    with tempfile.TemporaryDirectory() as home:
        server = kept | {"HACHI_HOME": home, "TERM": "xterm"}
        alone = {name: value for name, value in server.items() if name not in ("DATABASE_URL", "QDRANT_URL")}
        command_seconds("chat --user ana -m 'My cat is called Miso.'", alone)
        for name, bar in bars.items():
            measure = chat_seconds if ", first " in name else command_seconds
            runs = [measure(name, server if name in ON_A_SERVER else alone) for _ in range(options.runs)]
            wall, processor = map(min, zip(*runs, strict=True))
            found[name] = {"wall": wall, "processor": processor, "bar": bar}
    walls = {name: row["wall"] for name, row in found.items()}
    return finish(options, {f"hachi {name}": row for name, row in found.items()}, over(bars, walls))


if __name__ == "__main__":
    sys.exit(main())
