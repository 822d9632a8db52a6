"""Check and scale pictures in processes of their own: what strangers send may be made to break a decoder."""

import asyncio
import os
import sys
from base64 import b64encode
from pathlib import Path
from subprocess import DEVNULL, PIPE

from agent.surfaces.bots.attachments.attachment import Unreadable
from memory.documents.parsing import ENVIRONMENT

SECONDS = 20.0
AT_ONCE = 2
_CHILD = Path(__file__).with_name("scale_child.py")
_FAULTS = {3: "it has too many pixels", 4: "whoever runs me has not installed Pillow"}
BROKEN = "it is damaged, or not a PNG, JPEG, WebP or GIF"


class Scaler:
    def __init__(self) -> None:
        self._free = asyncio.Semaphore(AT_ONCE)

    async def scaled(self, data: bytes) -> str:
        """Return the picture as a `data:` URL: upright, the first frame, at most 1,536 pixels a side. Raises
        Unreadable."""
        if not data:
            raise Unreadable("it is empty")
        environment = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
        environment |= {name: path for name in ("PYTHONPATH",) if (path := os.environ.get(name))}
        async with self._free:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", str(_CHILD)), stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=environment
            )
            try:
                async with asyncio.timeout(SECONDS):
                    picture, _ = await process.communicate(data)
            except TimeoutError:
                raise Unreadable("it takes too long to read") from None
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
        if process.returncode or not picture:
            raise Unreadable(_FAULTS.get(process.returncode or 0, BROKEN))
        return f"data:image/jpeg;base64,{b64encode(picture).decode()}"
