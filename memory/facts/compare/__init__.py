"""How two statements relate to each other, as far as words prove it; see `relation`."""

from memory.facts.compare.normalise import content_key, normalise
from memory.facts.compare.relation import Relation, Verdict, compare, same_words

__all__ = ["Relation", "Verdict", "compare", "content_key", "normalise", "same_words"]
