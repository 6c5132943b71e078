"""What one device and its host hold at the fullest moment of a job, and what of it can be used."""
