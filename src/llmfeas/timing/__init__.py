"""How long a training step, a prefill and a decoded token take."""
