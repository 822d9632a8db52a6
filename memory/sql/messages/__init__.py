"""Messages, what conversations were summarised as, and what replies were written from."""
