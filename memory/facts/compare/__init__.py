"""How a new statement relates to a known one, as far as words prove it; see `relation`."""

from memory.facts.compare.normalise import content_key, normalise
from memory.facts.compare.relation import Relation, Statement, Verdict, compare, compare_going_on

__all__ = ["Relation", "Statement", "Verdict", "compare", "compare_going_on", "content_key", "normalise"]
