"""What happens after the reply and by the clock: durable jobs, consolidation, schedule, reminders."""
