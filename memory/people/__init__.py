"""A person's profile, tasks, due reminders, check-ins and linked accounts; and the settings of a place."""
