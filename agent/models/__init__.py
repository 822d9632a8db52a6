"""Language models: chooses one, asks it a single question, and has it judge facts."""
