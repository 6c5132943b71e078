"""How a report is written: one file a format, found by its name."""
