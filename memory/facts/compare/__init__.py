"""How two statements relate to each other, as far as words prove it; see `relation`."""

from memory.facts.compare.normalise import content_key, normalise
from memory.facts.compare.relation import DIFFERENT, SAME, Relation, Verdict, alike, same_words

__all__ = ["DIFFERENT", "SAME", "Relation", "Verdict", "alike", "content_key", "normalise", "same_words"]
