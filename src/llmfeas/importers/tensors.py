"""What every file of weights comes down to: a list of named tensors, and the model that they make."""

from __future__ import annotations

from collections.abc import Iterable

from ..catalog.architecture import Model
from ..catalog.quantization import StoredWeights
from ..record import dataclass
from .quantized.schemes import QuantPlan


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """One tensor of a header. `shape` counts logical elements, rows before columns; `bytes` is what is stored."""

    name: str
    shape: tuple[int, ...]
    type: str
    bytes: int

    @property
    def elements(self) -> int:
        """Logical elements: the product of the shape, 1 for a scalar."""
        count = 1
        for side in self.shape:
            count *= side
        return count


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedModel:
    """A model understood from a file: its architecture, what is stored, and what could not be known.

    `parameters` is the sum of the file's tensors in logical elements (packed formats unpacked; their scales and
    zero points are no parameters); `buffers` of them are no weights (attention masks, rotary tables, a head stored
    beside the embedding that it is tied to). A config.json alone stores nothing: both are None then.
    """

    model: Model
    stored: StoredWeights | None
    parameters: int | None
    buffers: int = 0
    format: str
    """`gguf`, `safetensors` or `config`."""
    paths: tuple[str, ...]
    assumed: tuple[str, ...] = ()
    """Fields of the architecture that the file does not tell, with what was assumed."""
    notes: tuple[str, ...] = ()
    published: QuantPlan | None = None
    """How a config.json alone says that the weights are stored, where they are quantized."""
    predicted: int = 0
    """Blocks of multi-token prediction that its files hold behind the layers."""

    @property
    def quant(self) -> str:
        """The value of `--quant` nearest to what is stored."""
        return self.model.published_quant if self.stored is None else self.stored.quant

    @property
    def file_bytes(self) -> int | None:
        """The files on disk, all parts together."""
        return None if self.stored is None else self.stored.file_bytes


def bytes_by_type(tensors: Iterable[StoredTensor]) -> tuple[tuple[str, int], ...]:
    """Sum the bytes of tensors by their type, largest first."""
    sums: dict[str, int] = {}
    for tensor in tensors:
        sums[tensor.type] = sums.get(tensor.type, 0) + tensor.bytes
    return tuple(sorted(sums.items(), key=lambda item: (-item[1], item[0])))
