"""Files of weights, GGUF and safetensors, as models: headers, names and shapes, never the weights."""
