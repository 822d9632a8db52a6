"""What becomes of the pictures that people send: upright, small, and nothing that breaks a decoder."""

import asyncio
import struct
import zlib
from base64 import b64decode
from io import BytesIO
from typing import Any

import pytest
from PIL import Image

from agent.surfaces.bots.attachments import read
from agent.surfaces.bots.attachments.attachment import Unreadable
from agent.surfaces.bots.attachments.read import Scaler


def written(image: Image.Image, format: str, **options: Any) -> bytes:
    out = BytesIO()
    image.save(out, format, **options)
    return out.getvalue()


async def scaled(data: bytes) -> Image.Image:
    kind, _, encoded = (await Scaler().scaled(data)).partition(",")
    assert kind == "data:image/jpeg;base64"
    return Image.open(BytesIO(b64decode(encoded)))


def is_near(pixel: Any, color: tuple[int, int, int]) -> bool:
    return all(abs(one - other) < 12 for one, other in zip(pixel, color, strict=True))


def sideways() -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = 6
    return exif


RED = Image.new("RGB", (40, 20), "red")
CLEAR = Image.new("RGBA", (40, 20), (255, 0, 0, 0))
FRAMES = [Image.new("P", (40, 20), color) for color in (0, 1)]
DEEP = Image.new("I;16", (40, 20), 65_535)


@pytest.mark.parametrize(
    ("data", "size", "color"),
    [
        (written(RED, "PNG"), (40, 20), (255, 0, 0)),
        (written(RED, "WEBP", lossless=True), (40, 20), (255, 0, 0)),
        (
            written(RED, "GIF", save_all=True, append_images=[Image.new("RGB", (40, 20), "blue")]),
            (40, 20),
            (255, 0, 0),
        ),
        (written(RED, "JPEG", exif=sideways()), (20, 40), (254, 0, 0)),
        (written(RED, "PNG", exif=sideways()), (20, 40), (255, 0, 0)),
        (written(RED, "JPEG", exif=b"Exif\x00\x00broken"), (40, 20), (254, 0, 0)),
        (written(Image.new("CMYK", (40, 20), (0, 0, 0, 0)), "JPEG"), (40, 20), (255, 255, 255)),
        (written(CLEAR, "PNG"), (40, 20), (255, 255, 255)),
        (written(DEEP, "PNG"), (40, 20), (255, 255, 255)),
        (written(Image.new("1", (40, 20), 1), "PNG"), (40, 20), (255, 255, 255)),
        (written(Image.new("RGB", (6_000, 3_000), "red"), "JPEG"), (1_536, 768), (254, 0, 0)),
        (written(Image.new("RGB", (1, 8_000), "red"), "PNG"), (1, 1_536), (255, 0, 0)),
    ],
    ids=str,
)
async def test_a_picture_is_upright_small_and_whole(data, size, color) -> None:
    picture = await scaled(data)
    assert (picture.format, picture.size) == ("JPEG", size)
    assert is_near(picture.getpixel((0, 0)), color)
    assert "exif" not in picture.info, "where it was taken is nobody's business"


def bomb(width: int, height: int) -> bytes:
    """A PNG of some kilobytes that says it has so many pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = zlib.compress(b"\x00" * 2_000_000)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "it is empty"),
        (b"\x89PNG", "damaged, or not a PNG"),
        (written(Image.effect_noise((300, 300), 90), "PNG")[:9_000], "damaged, or not a PNG"),
        (written(RED, "TIFF"), "damaged, or not a PNG"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "damaged, or not a PNG"),
        (bomb(60_000, 60_000), "too many pixels"),
        (bomb(2**31 - 1, 2**31 - 1), "(?:too many pixels|no picture)"),
        (bomb(0, 7), "damaged, or not a PNG"),
    ],
    ids=["empty", "begun", "cut", "tiff", "svg", "bomb", "huge", "flat"],
)
async def test_what_is_no_picture_has_a_reason(data: bytes, reason: str) -> None:
    with pytest.raises(Unreadable, match=reason):
        await Scaler().scaled(data)


async def test_nobody_waits_for_a_picture_and_a_slow_one_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    large = written(Image.effect_noise((2_000, 2_000), 90), "PNG", compress_level=1)
    working = asyncio.create_task(Scaler().scaled(large))
    rounds = 0
    while not working.done():
        await asyncio.sleep(0.001)
        rounds += 1
    assert (await working).startswith("data:")
    assert rounds > 20, "the loop went on"
    monkeypatch.setattr(read, "SCALE_SECONDS", 0.001)
    with pytest.raises(Unreadable, match="too long"):
        await Scaler().scaled(large)
