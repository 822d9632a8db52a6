"""Embed with wordllama, which is installed with Hachi: 256 dimensions, no key and no network.

A vector is the mean of its tokens' vectors: some 0.02 ms a line, blind to word order. The weights take 33 MB;
the first text loads them in 0.4 s, in a thread.
"""

import asyncio
import logging
import re
from collections import defaultdict
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memory.errors import EmbedderUnavailable
from memory.index.embedders import thresholds_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_BYTES = 20_000
"""The most bytes of a text that are embedded. More would hardly change the mean."""
_SPACE = re.compile(r"(?<=[^ ]) (?=[^ \n])")
"""Between two words."""
_INLINE = 2_000
"""Up to this many characters are embedded on the event loop, in under 1 ms, and more in a thread."""
FEW = 30
"""Up to this many words are tokenized one by one, because a batch starts threads, which takes longer."""
AT_ONCE = 64
"""Texts that are added up at once, which bounds the memory that it takes."""
CACHED_WORDS = 4_096
"""About how many words' tokens are cached, because most words recur: some 1 MB."""
LONGEST_WORD = 24
"""The most characters of a cached word: without spaces between words, each text is one."""


class BundledEmbedder:
    """The embedder, with measured thresholds.

    `dedupe` was measured on 140 pairs of facts in English, French and Hebrew. None of the 42 pairs with
    different values reaches it (the highest has 0.933), and 11 of the 54 pairs that say the same do. The
    embedder cannot tell names, numbers and dates apart. `recall` was measured on 759 questions on five LoCoMo
    conversations: 0.76 of the evidence and 0.29 of other messages reach it, the largest difference.
    """

    name = "bundled"
    dimension = 256
    thresholds = thresholds_of(name)

    def __init__(self) -> None:
        self._model: Any = None
        self._cache: dict[str, tuple[int, ...]] = {}
        """The tokens of recent words."""
        self._loading = asyncio.Lock()

    async def embed(self, texts: Sequence[str]) -> "list[NDArray[np.float32]]":
        if self._model is None:
            async with self._loading:
                if self._model is None:
                    self._model = await asyncio.to_thread(_load)
        if sum(map(len, texts)) <= _INLINE:
            return self._vectors(texts)
        return await asyncio.to_thread(self._vectors, texts)

    def clear(self) -> None:
        """Empty the cache, when a person is erased."""
        self._cache.clear()

    async def close(self) -> None:
        self._model = None

    def _vectors(self, texts: Sequence[str]) -> "list[NDArray[np.float32]]":
        """Return the vectors. A line that several windows contain is embedded once, and words are tokenized
        one by one, because no token extends over a space between two words or over a line break."""
        from memory.index.embedders.vectors import normalised, readable  # numpy, needed only now

        numbers, of_lines, of_texts = dict[str, int](), dict[str, list[int]](), list[list[int]]()
        for text in texts:
            whole = readable(text, MAX_BYTES).lstrip("\n")
            lines = whole.replace("\n", "\0\n").split("\0") if whole.strip() else []
            for line in lines:
                if line not in of_lines:
                    author, colon, rest = line.partition(": ")
                    parts = (f"{author}:", rest) if colon and rest[:1].strip() else (line,)
                    of_lines[line] = [numbers.setdefault(part, len(numbers)) for part in parts]
            of_texts.append([*chain.from_iterable(map(of_lines.__getitem__, lines))])
        sums = _sums(self._model.embedding, self._tokens([_SPACE.split(part) for part in numbers]))
        return normalised(_sums(sums, of_texts))

    def _tokens(self, parts: Sequence[Sequence[str]]) -> list[list[int]]:
        """Return the tokens of each part, given by its words."""
        tokens: dict[str, Any] = {word: self._cache.get(word) for word in chain.from_iterable(parts)}
        new = [word for word, ids in tokens.items() if ids is None]
        tokenizer = self._model.tokenizer
        if len(new) > FEW:
            encoded = tokenizer.encode_batch_fast(new, add_special_tokens=False)
        else:
            encoded = [tokenizer.encode(word, add_special_tokens=False) for word in new]
        for word, one in zip(new, encoded, strict=True):
            # After a line break, leave out the token that begins every text.
            tokens[word] = tuple(one.ids[word.startswith("\n") :])
        if len(self._cache) > CACHED_WORDS:
            self._cache.clear()
        self._cache |= {word: tokens[word] for word in new if len(word) <= LONGEST_WORD}
        return [list(chain.from_iterable(map(tokens.__getitem__, words))) for words in parts]


def _sums(rows: "NDArray[np.float32]", of: Sequence[Sequence[int]]) -> "NDArray[np.float32]":
    """Return the sum of the rows for each list of row numbers."""
    import numpy as np

    sums, places = np.zeros((len(of), rows.shape[1]), dtype=np.float32), defaultdict[int, list[int]](list)
    for at, numbers in enumerate(of):
        places[len(numbers)].append(at)
    for length, some in places.items():  # lists of one length at once: many times as fast as `reduceat`
        for part in (some[at : at + AT_ONCE] for at in range(0, len(some) if length else 0, AT_ONCE)):
            sums[part] = rows.take([of[at] for at in part], axis=0).sum(axis=1)
    return sums


def _load() -> Any:
    # Importing wordllama configures the root logger, unless it has a handler.
    handler = logging.NullHandler()
    logging.root.addHandler(handler)
    try:
        import wordllama
    finally:
        logging.root.removeHandler(handler)
    folder = Path(wordllama.__file__).parent  # by default wordllama looks for the tokenizer in another folder
    try:
        model = wordllama.WordLlama.load(
            cache_dir=folder, dim=BundledEmbedder.dimension, disable_download=True
        )
    except FileNotFoundError as error:
        raise EmbedderUnavailable(
            f"the bundled embedder's files are missing ({error}); `pip install --force-reinstall wordllama`"
        ) from error
    model.tokenizer.no_padding()  # else every text of a batch is as long as the longest
    # Its cache would keep people's last 10,000 words, 2 kB each, and is no faster.
    model.tokenizer.model._resize_cache(0)
    return model
