"""Servers under load: first token, time per token, throughput, and the most that keeps to targets."""
