"""Rules of schedules and the slots that follow from them. cronsim reads cron lines."""
