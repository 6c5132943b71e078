"""Operators that mix tokens: attention of every kind, recurrences, convolutions; one file each."""
