"""Language models: chooses one, asks it a single question, and asks memory's questions (judge, rerank)."""
