"""Explains why the model was given a memory, message, summary or passage of a document in a turn, or was not.

gates.py     the gates on the way to the model, and who asks
memories.py  facts: who may read them, what ended them
messages.py  what people said: what was remembered of it, or why nothing was
texts.py     summaries and documents
"""
