"""Speak a text by eSpeak NG into a file, or nothing for so many seconds: `speak.py FILE TEXT|SECONDS`.

Run by the environment of `make test-voice`. A file that ends in `.ogg` is Opus, as Discord sends it.
"""

import ctypes
import sys
import wave
from pathlib import Path

import av
import espeakng_loader

SYNCHRONOUS, UTF8, RATE_PARAMETER, WORDS_A_MINUTE = 2, 1, 1, 150


def spoken(text: str) -> tuple[bytes, int]:
    """Return samples of 16 bits, and how many there are in a second."""
    library = ctypes.CDLL(espeakng_loader.get_library_path())
    samples = bytearray()

    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)
    def take(data: "ctypes._Pointer[ctypes.c_short]", count: int, _: int) -> int:
        samples.extend(ctypes.string_at(data, count * 2) if data and count else b"")
        return 0

    rate = library.espeak_Initialize(SYNCHRONOUS, 0, espeakng_loader.get_data_path().encode(), 0)
    library.espeak_SetSynthCallback(take)
    library.espeak_SetVoiceByName(b"en-us")
    library.espeak_SetParameter(RATE_PARAMETER, WORDS_A_MINUTE, 0)
    said = text.encode() + b"\0"
    library.espeak_Synth(said, len(said), 0, 1, 0, UTF8, None, None)
    library.espeak_Synchronize()
    return bytes(samples), rate


def main(target: Path, text: str) -> None:
    samples, rate = (bytes(int(text) * 32_000), 16_000) if text.isdecimal() else spoken(text)
    pcm = target.with_suffix(".wav")
    with wave.open(str(pcm), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(rate)
        out.writeframes(samples)
    if target != pcm:
        with av.open(str(pcm)) as read, av.open(str(target), "w") as written:
            stream = written.add_stream("libopus", rate=48_000, layout="mono")
            resampler = av.AudioResampler("s16", "mono", 48_000, frame_size=960)
            for frame in read.decode(audio=0):
                for part in resampler.resample(frame):
                    written.mux(stream.encode(part))
            written.mux(stream.encode(None))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
