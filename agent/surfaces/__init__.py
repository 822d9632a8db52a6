"""Where people and programs meet Hachi. Each surface is thin: it only calls `Companion`."""
