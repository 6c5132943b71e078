"""Configurations in the form of Hugging Face as architectures: one file a kind of reader."""
