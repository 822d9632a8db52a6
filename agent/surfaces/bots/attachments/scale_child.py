"""Scale one picture, from stdin to stdout, in a process that ends with it: run by `read.py`."""

import sys
from io import BytesIO

SIDE = 1_536
"""Pixels of the longer side; models make larger ones smaller themselves."""
MOST_PIXELS = 50_000_000
"""Of a picture that is decoded whole. Of a JPEG, which is decoded smaller, eight times as many."""
MOST_MEMORY = 2**30


def main() -> int:
    """Print the picture, or return 2 for what is none, 3 for what has too many pixels, 4 without Pillow."""
    try:
        from PIL import Image, ImageOps, UnidentifiedImageError
    except ImportError:
        return 4

    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    except (ImportError, OSError, ValueError):
        sys.stderr.write("memory is not limited here\n")
    Image.MAX_IMAGE_PIXELS = None  # the size is looked at before anything is decoded
    try:
        with Image.open(BytesIO(sys.stdin.buffer.read()), formats=("JPEG", "PNG", "WEBP", "GIF")) as image:
            if image.width * image.height > MOST_PIXELS * (8 if image.format == "JPEG" else 1):
                return 3
            image.draft("RGB", (SIDE, SIDE))
            if image.width * image.height > MOST_PIXELS:
                return 3
            image.load()
            clear = image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info
            deep = image.mode.startswith("I;16")
            scaled = image.point(lambda level: level / 256, "L") if deep else image
            scaled = scaled.convert("RGBA" if clear else "RGB")
            scaled.thumbnail((SIDE, SIDE))
            try:
                scaled = ImageOps.exif_transpose(scaled)
            except Exception as error:  # of EXIF data that is damaged; the picture is not
                sys.stderr.write(f"not turned: {error}\n")
            if clear:  # on white, as in a chat
                scaled = Image.alpha_composite(Image.new("RGBA", scaled.size, "white"), scaled)
            scaled.convert("RGB").save(sys.stdout.buffer, "JPEG", quality=85)
    except MemoryError:
        return 3
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError, EOFError, ArithmeticError):
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
