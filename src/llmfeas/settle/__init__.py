"""Deciding: every setting that was not said, with where it comes from."""

from .resolving import Resolution, as_said, before_layout, hardware_named, resolution

__all__ = ["Resolution", "as_said", "before_layout", "hardware_named", "resolution"]
