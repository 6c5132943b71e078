"""What is recorded: tensors without values, nodes that keep storages, and where gradients of weights arrive."""

from __future__ import annotations

from collections.abc import Callable

from .storage import BLOCK_BYTES, FIELD_MASK, ONE_TENSOR, Ledger, Storage

Rule = Callable[..., "list[Tensor | None]"]
"""A node's backward: recorder, node and incoming gradient (of the first output that has one) to those of its inputs, in
a list of its own.
"""


class StopReplay(Exception):  # noqa: N818 - control flow, as in PyTorch
    """The last kept tensor of a replayed block exists: nothing after it need run."""


class AccumulateGrad:
    """Where a trained weight's gradient arrives: it waits for all its contributions, then stays."""

    __slots__ = ("buffer", "gradient", "held", "left", "uses")

    def __init__(self, held: Storage | None = None) -> None:
        self.held = held
        """An input that was made to need a gradient lives as long as the graph that ends in it."""
        self.uses = 0
        self.left = 0
        self.buffer: Tensor | None = None
        self.gradient: Storage | None = None

    @property
    def arrived(self) -> int:
        """Packed bytes of the gradient that stays; 0 where none came."""
        return self.gradient.size if self.gradient is not None and self.held is None else 0


class Tensor:
    """A view of a storage: element count, bytes an element, and the node that made it (None: needs no gradient)."""

    __slots__ = ("heads_first", "n", "narrow", "node", "plain", "recast", "slot", "storage", "width")

    storage: Storage
    n: int
    width: int
    node: Node | AccumulateGrad | None
    slot: int
    plain: bool
    """False for a matrix product's result seen through a reshape: no in-place addition into it."""
    heads_first: bool
    """Lies in memory as [b, heads, s, d], so that merging heads needs a copy."""
    narrow: Tensor | None
    """Its one-byte copy, shared by the products that read it."""
    recast: Tensor | None
    """The copy that all who read it share: in another type, where a compiler makes it, or gathered from ranks."""


def view(storage: Storage, n: int, width: int, node: Node | AccumulateGrad | None = None) -> Tensor:
    """See a storage as a tensor."""
    tensor = Tensor()
    tensor.storage = storage
    tensor.n = n
    tensor.width = width
    tensor.node = node
    tensor.slot = 0
    tensor.plain = True
    tensor.heads_first = False
    tensor.narrow = tensor.recast = None
    return tensor


def tensor_of(ledger: Ledger, n: int, width: int, component: int, node: Node | AccumulateGrad | None) -> Tensor:
    """Allocate a tensor: what `stored` and `view` do, in one go, since most of a walk's time goes here."""
    size = n * width
    if size <= FIELD_MASK:
        size = size + BLOCK_BYTES - 1 & -BLOCK_BYTES
    storage = Storage()
    storage.ledger = ledger
    storage.component = component
    ledger.tally += size + ONE_TENSOR
    storage.size = size = size << component
    ledger.level += size
    ledger.rising = True
    ledger.last = ledger.here
    tensor = Tensor()
    tensor.storage = storage
    tensor.n = n
    tensor.width = width
    tensor.node = node
    tensor.slot = 0
    tensor.plain = True
    tensor.heads_first = False
    tensor.narrow = tensor.recast = None
    return tensor


class Parameter(Tensor):
    """A weight; autocast shares one 2-byte copy of it."""

    __slots__ = ("copied", "packed", "place", "ranks", "routed", "shape", "shared")

    def __init__(self, storage: Storage, shape: tuple[int, ...], width: int, leaf: AccumulateGrad | None) -> None:
        n = 1
        for extent in shape:
            n *= extent
        self.storage = storage
        self.n = n
        self.width = width
        self.node = leaf
        self.slot = 0
        self.plain = True
        self.heads_first = False
        self.narrow = self.recast = None
        self.shape = shape
        self.copied: Tensor | None = None
        self.place = 0
        """Layer i + 1; 0 outside the layers."""
        self.shared = True
        """Autocast keeps one copy for its region; not of a weight that is first transposed."""
        self.packed = False
        """Stored in few bits: a product makes a 2-byte copy of it for a moment."""
        self.ranks = 1
        """Sequence-parallel ranks that its input is spread over (negative: its output)."""
        self.routed = False
        """Belongs to routed experts."""


Edge = tuple["Node | AccumulateGrad", int, int, int]
"""Target, its output slot, elements and width of the forward input."""


class Node:
    """One recorded operator (`Recorder.open`): what it keeps, where its gradients go, and how it makes them."""

    __slots__ = ("data", "edges", "grads", "order", "place", "rule", "saved", "slots")

    order: int
    rule: Rule
    edges: list[Edge | None]
    data: tuple[int, ...]
    slots: int
    place: int
    saved: list[Storage | tuple[Frame, int]]
    grads: list[Tensor | None] | None

    def wants(self, index: int) -> bool:
        """Whether forward input `index` needs a gradient."""
        return self.edges[index] is not None


class Frame:
    """A checkpointed block: its arguments (held by `run`), how many tensors it would keep, and those replayed."""

    __slots__ = ("count", "kept", "output", "products", "run")

    def __init__(self, run: Callable[[], object]) -> None:
        self.products: dict[int, Storage] = {}
        """Outputs of products that are kept instead of run again, by their place in the block."""
        self.run = run
        self.count = 0
        self.kept: dict[int, Storage] | None = None
        self.output: object = None
