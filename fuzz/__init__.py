"""Attacks on llmfeas: hostile command lines, files and surroundings, drawn from seeds, and what must hold under them.

`python -m fuzz` runs a minute of all kinds, `--minutes 60` an hour; each attack has a name such as `overlays/7/123`
(kind, seed, number); `--again overlays/7/123` repeats it and shows it. A failure found here is mended where it comes
from and kept as a test of its own under tests/.
"""
