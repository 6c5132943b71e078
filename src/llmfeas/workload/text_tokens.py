"""Text as tokens: how much of it one stands for, and what one takes where it is stored."""

from __future__ import annotations

import math

ENGLISH_VOCAB, ENGLISH_BYTES = 32000, 3.74
"""Mostly English pages, books, papers and code: 5.24 TB with repetitions were 1.4 T tokens (Touvron 2023, table 1)."""
GROWTH = math.log(3.94 / 3.17) / math.log(128256 / ENGLISH_VOCAB)
"""Of that with a vocabulary: the same English text, 3.17 characters a token with the 32000 of Llama 2, 3.94 with the
128256 of Llama 3 (Dubey 2024, section 3.2)."""
BYTES_ALONE = 512
"""A smaller vocabulary holds single bytes."""
NARROW_VOCAB = 65500
"""Tokens of a smaller vocabulary are stored in two bytes, others in four (Megatron-LM, indexed_dataset.py)."""


def bytes_per_token(vocab: int) -> float:
    """Bytes of English text that a token of a vocabulary stands for; of code and other languages it is fewer."""
    if vocab < BYTES_ALONE:
        return 1.0
    return round(ENGLISH_BYTES * math.pow(vocab / ENGLISH_VOCAB, GROWTH), 2)


def stored_bytes(vocab: int) -> int:
    """Bytes of a token as it lies on a drive."""
    return 2 if vocab < NARROW_VOCAB else 4
