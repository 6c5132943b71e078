"""One file a command, which is imported when it is used."""
