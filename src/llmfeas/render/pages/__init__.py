"""What each command shows a person, as a report."""
