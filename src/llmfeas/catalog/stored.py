"""What a file of weights really holds, to the byte: it replaces what is computed from a format's rules."""

from __future__ import annotations

from ..record import dataclass

PLAIN_BYTES = {"f32": 4.0, "f16": 2.0, "bf16": 2.0}
"""Types of tensors that are not quantized -> bytes of an element."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredWeights:
    """Bytes of the tensors of a model's file, read from its header, by what reads them.

    `tables`, `head`, `rest`, `layers`, `routed` and `layer_vectors` mean what they mean in `estimate.weights`, with
    scales, zero points and block overheads, without header and padding. Hashable, so that it can key a cache.
    """

    quant: str
    """The name in data/quantization.yaml of what is stored, or the nearest by bits; "none": nothing is quantized."""
    container: str
    """The kind of file: `gguf` or `safetensors`."""
    label: str
    """What is stored in the file's own words, such as `iq3_xxs`, `q4_k_m` or `awq-int4`."""
    by_type: tuple[tuple[str, int], ...]
    """Bytes by type of tensor, largest first."""
    file_bytes: int
    """The files on disk, all parts together."""
    tables: int
    """Looked up, one row a token: an untied token embedding, learned positions."""
    head: int
    """The matrix that makes the logits, also where the token embedding shares it."""
    rest: int
    """Final norm, projections around the layers."""
    layers: tuple[int, ...]
    routed: tuple[int, ...]
    """The part of `layers` that is routed experts."""
    layer_vectors: tuple[int, ...]
    """Norms and biases of each layer, part of `layers`."""
    idle: int = 0
    """Not run for text: multi-token prediction, encoders of images and sound."""

    @property
    def total(self) -> int:
        """All tensors."""
        return self.tables + self.head + self.rest + self.idle + sum(self.layers)

    def serves(self, quant: str, native: float) -> bool:
        """Whether a run in this format, with unquantized weights of `native` bytes, holds what the file holds."""
        if quant != self.quant:
            return False
        return quant != "none" or PLAIN_BYTES.get(self.by_type[0][0] if self.by_type else "") == native
