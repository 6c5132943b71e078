"""A shape-only autograd: operators open nodes that keep storages, and a backward pass runs them and only allocates.

It follows PyTorch's autograd engine: nodes run newest first; a node's results are reduced and cast to the type of its
forward inputs while its kept tensors and incoming gradients are still alive; gradients that meet are added in place
where the first is private, else into a third tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from sys import getrefcount

from .graph import AccumulateGrad, Edge, Frame, Node, Parameter, Rule, StopReplay, Tensor, tensor_of, view
from .storage import (
    ACTIVATIONS,
    ARRIVING,
    GRADIENTS,
    HOST,
    LOGITS,
    SYMBOLIC,
    WEIGHTS,
    WORKSPACE,
    Ledger,
    Sizes,
    Storage,
    stored,
)


class Recorder:
    """Records forward operators and runs them backward, on one ledger."""

    softmax_writes = False
    """Backward of a softmax writes out its output times its gradient: kernels of GPUs."""
    softmax_widens = False
    """A softmax of fp16 in fp32 is one kernel, forward and backward."""

    def __init__(self, sizes: Sizes, *, autocast: bool, recording: bool = True, ledger: Ledger | None = None) -> None:
        self.sizes = sizes
        self.ledger = ledger or Ledger()
        self.amp = autocast
        self.autocast = False
        self.recording = recording
        self.component = ACTIVATIONS
        self.order = 0
        self.frame: Frame | None = None
        self.replay: Frame | None = None
        self.replayed = 0
        self.copied: list[Parameter] = []
        self.leaves: list[AccumulateGrad] = []
        self.selective = False
        """Checkpointed blocks keep every second product and what attention kernels make."""
        self.produced = 0
        self.compiled = False
        """A compiler writes the code between two products as one kernel."""
        self.overwrites = False
        """The gradients of a gate and of what it gates are written over them."""
        self.reentrant = False
        """A checkpointed block is run again to its end, and its output lives until its backward is done."""
        self.bytes_kept = 2
        """Bytes of an element of a product's kept 2-byte input."""
        self.offloads = False
        """What is kept below the loss waits in the memory of the host until its operator's backward."""
        self.folds_tiles = False
        """Tiles of logits become statistics operator by operator."""
        self.wide_masks = False
        """Dropout multiplies by a mask of its input's type: PyTorch fuses it on accelerators alone."""
        self.held: list[tuple[int, Storage]] = []
        """What hooks and nodes keep until the backward pass has ended, with the layer."""
        self.named: Tensor | None = None
        """What the training loop has a name for until its step is over."""
        self.outliving: dict[int, dict[int, Storage]] = {}
        """What modules hold beyond their backward, by the layer."""
        self.narrow_activations = False
        """A gate and what it gates are kept in one byte."""

    # tensors

    def new(self, n: int, width: int, node: Node | None = None, component: int = -1) -> Tensor:
        """Allocate a tensor, by default as what the running phase makes."""
        return tensor_of(self.ledger, n, width, self.component if component < 0 else component, node)

    def parameter(self, shape: tuple[int, ...], *, width: int, trains: bool) -> Parameter:
        """Allocate a weight."""
        n = 1
        for extent in shape:
            n *= extent
        leaf = None
        if trains:
            leaf = AccumulateGrad()
            self.leaves.append(leaf)
        return Parameter(stored(self.ledger, n * width, WEIGHTS), shape, width, leaf)

    def product(self, n: int, width: int, node: Node | None, component: int = -1, *, always: bool = False) -> Tensor:
        """Allocate a product's output; under selective checkpointing every second one outlives the forward pass."""
        self.produced += 1
        if self.selective and self.replay is not None:
            storage = self.replay.products.pop(self.produced, None)
            return self.new(n, width, node, component) if storage is None else view(storage, n, width, node)
        out = self.new(n, width, node, component)
        self.ledger.tally -= out.storage.size >> out.storage.component
        if self.selective and self.frame is not None and (always or self.produced % 2):
            self.frame.products[self.produced] = out.storage
        return out

    # recording

    def open(
        self, rule: Rule, inputs: Sequence[Tensor | None], data: tuple[int, ...] = (), slots: int = 1
    ) -> Node | None:
        """Open a node if any input needs a gradient and the recorder records."""
        if not self.recording:
            return None
        edges: list[Edge | None] = []
        node = None
        for x in inputs:
            target = x.node if x is not None else None
            if target is None:
                edges.append(None)
                continue
            if node is None:
                node = Node()
                node.order = self.order = self.order + 1
                node.rule = rule
                node.edges = edges
                node.data = data
                node.slots = slots
                node.place = self.ledger.here[1]
                node.saved = []
                node.grads = None
            edges.append((target, x.slot, x.n, x.width))  # type: ignore[union-attr]
            if type(target) is AccumulateGrad and self.replay is None:
                target.uses += 1
        return node

    def keep(self, node: Node | None, *tensors: Tensor | None) -> None:
        """Keep tensors for a node's backward; under checkpointing only count them."""
        if node is None:
            return
        frame, replay = self.frame, self.replay
        for x in filter(None, tensors):
            if replay is not None:
                assert replay.kept is not None
                replay.kept[self.replayed] = x.storage
                if not self.reentrant:
                    # The graph of the replay keeps it too, for as long as a tensor of the replay has a name elsewhere.
                    node.saved.append(x.storage)
                self.replayed += 1
                if self.replayed == replay.count and not self.reentrant:
                    raise StopReplay
            elif frame is not None:
                node.saved.append((frame, frame.count))
                frame.count += 1
            elif self.offloads and x.storage.component in (ACTIVATIONS, WORKSPACE):
                node.saved.append(x.storage.copied(HOST))
            else:
                node.saved.append(x.storage)

    @property
    def kept_in_replay(self) -> dict[int, Storage]:
        """What a checkpointed block that runs again has kept so far, by number."""
        return {} if self.replay is None else dict(self.replay.kept or {})

    def checkpoint(self, run: Callable[[], Tensor]) -> Tensor:
        """Run a block without keeping what its backward needs; `run` holds the block's arguments."""
        self.frame = Frame(run)
        self.produced = 0
        try:
            return run()
        finally:
            self.frame = None

    def enter_autocast(self) -> None:
        """Begin a region in which products run in 2 bytes (if the recipe has one)."""
        self.autocast = self.amp

    def leave_autocast(self) -> None:
        """End the region: forget the shared copies of weights."""
        self.autocast = False
        for weight in self.copied:
            weight.copied = None
        self.copied.clear()

    # backward

    def _recompute(self, frame: Frame) -> None:
        """Run a checkpointed block again, until the last tensor that its backward needs."""
        before = self.component, self.ledger.here
        frame.kept = {}
        self.replay, self.replayed = frame, 0
        self.produced = 0
        self.component = ACTIVATIONS
        self.enter_autocast()
        try:
            output = frame.run()
            frame.output = output if self.reentrant else None
        except StopReplay:
            pass
        finally:
            self.replay = None
            self.leave_autocast()
            self.component, self.ledger.here = before

    def gradient(self, node: Node, index: int, width: int, plain: bool = True) -> Tensor | None:
        """The gradient of a node's forward input `index`, newly allocated; None where none is needed."""
        edge = node.edges[index]
        if edge is None:
            return None
        component = ARRIVING if type(edge[0]) is AccumulateGrad else self.component
        x = tensor_of(self.ledger, edge[2], width, component, None)
        x.plain = plain
        return x

    def overwritten(self, node: Node, index: int) -> Tensor | None:
        """The gradient of a node's forward input `index`, written by a compiled kernel over that input, the kept tensor
        of the same number.

        What checkpointing replayed is a tensor of the replay's own, so a new one stands for both; so does one for what
        came back from the host.
        """
        edge, kept = node.edges[index], node.saved[index]
        if edge is None or not isinstance(kept, Storage) or kept.component == HOST:
            return self.gradient(node, index, edge[3] if edge else 0)
        return view(kept, edge[2], edge[3])

    def _unpacked(self, node: Node) -> list[Storage]:
        """What comes into being for a node's backward alone: replayed, or back from the host."""
        storages: list[Storage] = []
        for item in node.saved:
            if not isinstance(item, Storage):
                frame, index = item
                if frame.kept is None:
                    self._recompute(frame)
                storages.append(frame.kept.pop(index))  # type: ignore[union-attr]
            elif item.component == HOST:
                storages.append(item.copied(ACTIVATIONS))
        return storages

    def _waits(self, edge: Edge) -> bool:
        """Whether a compiled step leaves a gradient in 2 bytes until the others of its weight are there."""
        return self.compiled and isinstance(edge[0], AccumulateGrad) and edge[0].left > 1

    def _fitted(self, gradient: Tensor, edge: Edge) -> Tensor:
        """Reduce and cast a result to its forward input's size and type."""
        logits = LOGITS if gradient.storage.component == LOGITS else -1
        component = ARRIVING if type(edge[0]) is AccumulateGrad else logits
        if gradient.n != edge[2]:
            gradient = self.new(edge[2], gradient.width, component=component)
        if gradient.width != edge[3]:
            gradient = self.new(edge[2], edge[3], component=component)
        return gradient

    def backward(self, loss: Tensor) -> None:
        """Run all nodes behind `loss`, newest first; none where nothing of a stage trains."""
        self.component = WORKSPACE
        for leaf in self.leaves:
            leaf.left = leaf.uses
            leaf.uses = 0
        root = loss.node
        if not isinstance(root, Node):
            return
        # The caller holds the root's gradient until the end.
        _held = self.new(loss.n, loss.width)
        root.grads = [_held]
        heap: list[tuple[int, Node]] = [(-root.order, root)]
        del root
        while heap:
            self._step(heappop(heap)[1], heap)

    def _step(self, node: Node, heap: list[tuple[int, Node]]) -> None:
        grads, edges, saved = node.grads, node.edges, node.saved
        assert grads is not None
        node.grads = None
        if self.ledger.here[1] != ~node.place:
            self.ledger.enter(~node.place)
        kept = self._unpacked(node) if saved and (self.offloads or type(saved[0]) is not Storage) else None
        results = node.rule(self, node, grads[0] or next(filter(None, grads)))
        # Replayed tensors belong to the operator's call; the others to the node, a moment longer.
        if kept is not None:
            kept.clear()
        for i, edge in enumerate(edges):
            result = results[i]
            if edge is None:
                results[i] = None
            elif result is not None and (result.n != edge[2] or (result.width != edge[3] and not self._waits(edge))):
                results[i] = self._fitted(result, edge)
        result = None
        saved.clear()
        grads.clear()
        for i, edge in enumerate(edges):
            if edge is None:
                continue
            result = results[i]
            results[i] = None
            if result is not None:
                target = edge[0]
                if type(target) is AccumulateGrad:
                    self._arrive(target, result)
                else:
                    self._deliver(target, edge[1], result, heap)  # type: ignore[arg-type]
            result = None

    def _deliver(self, node: Node, slot: int, gradient: Tensor, heap: list[tuple[int, Node]]) -> None:
        if node.grads is None:
            node.grads = [None] * node.slots
            heappush(heap, (-node.order, node))
        first = node.grads[slot]
        node.grads[slot] = None
        node.grads[slot] = gradient if first is None else self._sum(first, gradient)

    def _sum(self, first: Tensor, second: Tensor) -> Tensor:
        if first.plain and getrefcount(first) <= _UNSHARED[0] and getrefcount(first.storage) <= _UNSHARED[1]:
            return first
        return self.new(first.n, first.width)

    def _arrive(self, leaf: AccumulateGrad, gradient: Tensor) -> None:
        leaf.left -= 1
        if leaf.buffer is not None:
            first, leaf.buffer = leaf.buffer, None
            gradient = self._meet(first, gradient)
        if leaf.left > 0:
            leaf.buffer = gradient
        elif leaf.gradient is None:
            gradient.storage.move(GRADIENTS if leaf.held is None else WORKSPACE)
            leaf.gradient = gradient.storage

    def _meet(self, first: Tensor, second: Tensor) -> Tensor:
        # A compiled product adds itself to a gradient of its own type.
        if first.plain or (self.compiled and first.width == second.width == 4):
            return first
        return self.new(first.n, second.width, component=ARRIVING)


class _Probe(Recorder):
    """Counts the references to a gradient, and to its storage, that nothing but the sum of two holds."""

    counted = (0, 0)

    def _sum(self, first: Tensor, second: Tensor) -> Tensor:
        self.counted = getrefcount(first), getrefcount(first.storage)
        return first


def _unshared() -> tuple[int, int]:
    """References that this Python counts to what has no other holder: since 3.14 locals may lend theirs."""
    recorder = _Probe(SYMBOLIC, autocast=False)
    node = Node()
    node.grads = [recorder.new(1, 1)]
    recorder._deliver(node, 0, recorder.new(1, 1), [])
    return recorder.counted


_UNSHARED = _unshared()
