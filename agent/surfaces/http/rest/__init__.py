"""The REST API: what is remembered, documents, and what is kept of a person."""
