"""Where models come from: the hub, and what other programs have downloaded."""
