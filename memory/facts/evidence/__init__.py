"""Whether a message can have stated a fact: greetings and questions (`unstated`), echoes (`echoes`)."""
