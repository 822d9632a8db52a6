"""Answer the REST API: memories, documents, and the data of a person."""
