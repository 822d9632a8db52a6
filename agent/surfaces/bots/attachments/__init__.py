"""Files attached to a message: text is read, pictures are seen, recordings are heard."""
