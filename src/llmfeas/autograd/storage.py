"""What is alive: storages, counted by component while their last reference lives.

A count of bytes is one integer of packed fields, a field for each component and monomial of {1, b, s, bs, s², bs²}
(micro-batch b, length s), some of these also times the experts of a rank. So one walk with symbolic sizes yields every
level as a polynomial, one integer addition an event, and the same walk with numbers as sizes yields plain bytes.

Bits of a level, from the lowest: seven components of ten fields of 64 bits. `3 * bs` is `3 << 192`, and as activations
`3 << 192 + 3 * 640`. Coefficients stay below 2^62, so that sums of levels never carry from field to field; sizes are
multiplied by plain numbers alone, so that no two monomials meet.
"""

from __future__ import annotations

from typing import Final

from ..record import dataclass

FIELD_BITS: Final = 64
FIELD_MASK: Final = (1 << FIELD_BITS) - 1
MONOMIALS: Final = 6
"""1, b, s, bs, s², bs²."""
FIELDS: Final = 10
"""The monomials, then the first four of them times the routed experts of a layer on this rank."""
BLOCK_BYTES: Final = 512
"""The caching allocator's grain: every storage of constant size is rounded up to it."""

COMPONENT_BITS: Final = FIELD_BITS * FIELDS
COMPONENTS: Final = ("weights", "gradients", "arriving", "activations", "logits", "workspace")
"""`arriving`: gradients of weights not handed over yet."""
WEIGHTS, GRADIENTS, ARRIVING, ACTIVATIONS, LOGITS, WORKSPACE = (COMPONENT_BITS * i for i in range(6))
HOST: Final = COMPONENT_BITS * 6
"""What lies in the memory of the host: in no level of the device."""

EXPERTS: Final = 1 << FIELD_BITS * MONOMIALS
"""Any number of routed experts of a layer on this rank."""
ONE_TENSOR: Final = 1 << COMPONENT_BITS
"""In a tally of what was made: a tensor, beside the fields of its bytes."""
_TIMES_EXPERTS: Final = sum(
    ((1 << COMPONENT_BITS) - EXPERTS) << COMPONENT_BITS * i for i in range(HOST // COMPONENT_BITS + 1)
)


def with_experts(packed: int, count: int) -> int:
    """A packed level for a number of experts: the fields that count them, times it, are added to those beside them."""
    times = packed & _TIMES_EXPERTS
    return packed - times + (times >> FIELD_BITS * MONOMIALS) * count if times else packed


@dataclass(frozen=True, slots=True)
class Sizes:
    """The lengths that tensors are made of, as numbers or as packed monomials."""

    b: int
    s: int
    bs: int
    ss: int
    bss: int
    padded: int
    """b times s rounded up to 32: rows of the memory-efficient kernel's log-sum-exp."""
    single: bool = False
    """One sequence: shifted labels are a view."""


_B, _S, _BS, _SS, _BSS = (1 << FIELD_BITS * i for i in range(1, MONOMIALS))
SYMBOLIC: Final = Sizes(_B, _S, _BS, _SS, _BSS, padded=_BS)


def sizes_at(seq_len: int) -> Sizes:
    """Sizes of a walk for any batch of sequences of one length."""
    s = seq_len
    return Sizes(_B, s, _B * s, s * s, _B * s * s, padded=_B * -(-s // 32) * 32)


def numeric_sizes(micro_batch: int, seq_len: int) -> Sizes:
    """Sizes of one plain walk."""
    b, s = micro_batch, seq_len
    return Sizes(b, s, b * s, s * s, b * s * s, b * -(-s // 32) * 32, b == 1)


Polynomial = tuple[int, int, int, int, int, int]
"""Coefficients of 1, b, s, bs, s², bs²."""


def packed_fields(packed: int, component: int) -> Polynomial:
    """Split one component (its bit offset) of a packed level into its coefficients."""
    packed >>= component
    return (
        packed & FIELD_MASK,
        packed >> FIELD_BITS & FIELD_MASK,
        packed >> 2 * FIELD_BITS & FIELD_MASK,
        packed >> 3 * FIELD_BITS & FIELD_MASK,
        packed >> 4 * FIELD_BITS & FIELD_MASK,
        packed >> 5 * FIELD_BITS & FIELD_MASK,
    )


class Ledger:
    """The level of all live storages, and a mark (level, moment, place) at each local maximum."""

    __slots__ = ("entered", "here", "last", "level", "made", "marks", "rising", "tally", "told")

    def __init__(self) -> None:
        self.level = 0
        self.rising = False
        self.here = "forward", 0
        """The moment, and where the step is: layer i is i + 1 in forward and ~(i + 1) in backward."""
        self.last = self.here
        """Where the level rose last."""
        self.entered: dict[int, int] = {}
        """The level when each place was first entered."""
        self.marks: list[tuple[int, str, int]] = []
        self.tally = self.told = 0
        """Tensors made so far with the bytes of those that no product made, now and before the place was entered."""
        self.made: dict[tuple[str, int], int] = {}
        """Such tallies by moment and place, once these were left."""

    def start(self) -> int:
        """Forget what was marked while weights were made; the level where the step begins."""
        self.marks.clear()
        self.made.clear()
        self.told, self.rising = self.tally, False
        return self.level

    def begin(self, moment: str) -> None:
        """Go on to a moment."""
        self.leave()
        self.here = moment, self.here[1]

    def leave(self) -> None:
        """Note what was made here since the place was entered."""
        self.made[self.here] = self.made.get(self.here, 0) + self.tally - self.told
        self.told = self.tally

    def enter(self, place: int) -> None:
        """Go to a place."""
        self.leave()
        self.here = self.here[0], place
        self.entered.setdefault(place, self.level)

    def mark(self) -> None:
        """Record the level if it rose since the last mark."""
        if self.rising:
            moment, place = self.last
            self.marks.append((self.level, moment, place))
            self.rising = False


class Storage:
    """Bytes on the device from construction to the death of the last reference."""

    __slots__ = ("component", "ledger", "size")

    ledger: Ledger
    component: int
    size: int
    """Packed."""

    def __del__(self) -> None:
        ledger = self.ledger
        if ledger.rising:
            moment, place = ledger.last
            ledger.marks.append((ledger.level, moment, place))
            ledger.rising = False
        ledger.level -= self.size

    def copied(self, component: int) -> Storage:
        """As many bytes under another component."""
        return stored(self.ledger, self.size >> self.component, component)

    def move(self, component: int) -> None:
        """Count these bytes under another component from now on."""
        moved = (self.size >> self.component) << component
        self.ledger.level += moved - self.size
        self.component, self.size = component, moved


def stored(ledger: Ledger, size: int, component: int) -> Storage:
    """Allocate so many bytes under a component."""
    if size <= FIELD_MASK:
        size = size + BLOCK_BYTES - 1 & -BLOCK_BYTES
    # A class without a constructor is made in half the time, and a walk is made of little else.
    storage = Storage()
    storage.ledger = ledger
    storage.component = component
    storage.size = size = size << component
    ledger.level += size
    ledger.rising = True
    ledger.last = ledger.here
    return storage
