"""How a checkpoint says that its weights are quantized."""
