"""`python -m llmfeas` is `llmfeas`."""

from __future__ import annotations

import sys

try:
    from .cli import program
except KeyboardInterrupt:
    sys.exit(130)

if __name__ == "__main__":
    sys.exit(program())
