"""The hashable key of one walk: all that changes the sequence of events, and nothing else."""

from __future__ import annotations

from ..adapters import ADAPTERS, AdapterKind
from ..catalog.architecture import Architecture
from ..catalog.implementation import Implementation
from ..record import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Types and switches of a training step. Widths in bytes."""

    weight_bytes: int
    """Of a base in few bits: of what is left out of it (norms, tables, head)."""
    autocast: bool
    adapters: int = 0
    """LoRA rank, 1 of adapters without one; 0: all weights train."""
    adapt_mlp: bool = True
    bare_layers: int = 0
    """The first so many layers of the model have no adapters."""
    input_gradients: bool = True
    """Where layers are run again the input of the first one gets a gradient, adapters or not."""
    adapter_dropout: bool = False
    kind: AdapterKind = ADAPTERS["lora"]
    """What the adapters are."""
    virtual_tokens: int = 0
    """How many tokens are learned, where they are tokens."""
    eager: bool = False
    single: bool = False
    """One sequence in eager code: heads are batched as they lie, without a copy."""
    checkpointing: str = "none"
    drop_embedding: bool = False
    drop_attention: bool = False
    drop_residual: bool = False
    folds_tiles: bool = False
    """Tiles of logits become statistics operator by operator, for want of a kernel."""
    flash_in_fp32: bool = False
    """The flash kernel takes fp32 too, on as few heads of keys as there are: PyTorch's on a processor."""
    scores_at_once: bool = False
    """What lies between the two products of attention that is written out is one kernel."""
    wide_masks: bool = False
    """Dropout keeps a mask of its input's type, as on CPUs."""
    softmax_writes: bool = False
    """Backward of a softmax writes out its output times its gradient, as on GPUs."""
    softmax_widens: bool = False
    """Those of fp16 in fp32 are one kernel there."""
    windowed: bool = False
    """The sequence reaches the attention window."""
    filled: int = 0
    """Tokens that fill up the last chunk of a sequence, where code written out runs over chunks."""
    length: int = 0
    """Tokens of a sequence, filled up, where its code needs a multiple of some; 0: any length gives a polynomial."""
    tp: int = 1
    expert_tp: int = 1
    """Tensor-parallel ranks that share a routed expert."""
    sequence_parallel: bool = False
    rank_experts: int = 0
    """Routed experts of a layer that this rank holds; 0: all."""
    quantized: bool = False
    """The frozen base is stored in few bits; each matrix is unpacked where it is used."""
    packs_stacks: bool = False
    """So are stacks of experts: written out whole for their products, and kept so until the backward of these."""
    integers: bool = False
    """It is multiplied in 8 bits as it is, and unpacked in backward alone (LLM.int8)."""
    unpacked_bytes: int = 2
    """Of an element there."""
    fp8: bool = False
    """Products keep their inputs in one byte."""
    narrow_frozen: bool = False
    """Frozen projections exist in one byte alone."""
    narrow_activations: bool = False
    """Activations keep their inputs in one byte."""
    loss: str = ""
    """The program of the head and what follows it; empty: as the implementation has it."""
    reference: bool = False
    """After the forward pass the model as it was, or the base without its adapters, sees the same tokens."""
    holds_inputs: bool = False
    """Inputs of checkpointed blocks and their gradients stay until the backward pass has ended."""
    offloads: bool = False
    """What backward needs waits in the memory of the host."""

    @property
    def lifts_input(self) -> bool:
        """Whether the input of a frozen base gets a gradient, which blocks that run again need."""
        return bool(self.adapters) and self.input_gradients and self.checkpointing in ("full", "selective")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """An architecture, how it is run, and how it trains."""

    architecture: Architecture
    implementation: Implementation
    recipe: Recipe
    first_layer: int = 0
    layers: int = 0
    """Layers of this pipeline stage, from `first_layer` on; 0: all."""
    embeds: bool = True
    """The stage begins with the embedding."""
    heads: bool = True
    """The stage ends with the head and the loss."""

    @property
    def reading(self) -> Setup | None:
        """The encoder whose layers run before those of the first stage, and what follows them; None: there is none."""
        reader = self.architecture.reader
        if reader is None or self.architecture.source is None or not self.embeds:
            return None
        return replace(self, architecture=reader, first_layer=0, layers=0, heads=True)

    @property
    def depth(self) -> int:
        """Layers that this stage holds."""
        return self.layers or self.architecture.layers

    @property
    def span(self) -> range:
        """The layers of this stage, by their number in the model."""
        return range(self.first_layer, self.first_layer + self.depth)
