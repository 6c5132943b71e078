"""Objectives: what a training makes better where that is not the next token of plain text, one row each.

Which models are there besides the one that trains, what passes through them in a step, and with which loss.
"""

from __future__ import annotations

from typing import Final, Literal

from .record import dataclass, replace

# fmt: off
Task = Literal[
    "pretrain", "finetune", "lora", "qlora", "inference", "dpo", "grpo", "distill", "reward", "embed", "rerank",
]
# fmt: on


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """One value of --loss."""

    task: Task
    """The task that it belongs to; the first of a task is that task's default."""
    loss: str
    """The program of the head and what follows it (`autograd.loss`); empty: the model's own, over plain text."""
    sequences: int = 1
    """Sequences of an example, which pass through the model together."""
    reference: bool = False
    """A frozen copy of the model as it was; with adapters the base itself is that."""
    forwards: float = 0.0
    """Passes without a gradient of the trained model over as many sequences, beside the one that trains."""
    reference_forwards: float = 0.0
    """Passes of the reference over as many sequences."""
    default_reference: str = "loaded"
    """What --reference is where nobody says."""
    scores: bool = False
    """A number or a vector for a text comes out: nothing is projected to the vocabulary."""
    last_token: bool = False
    """But by a decoder without a label: the logits of its last token are what comes out."""
    turns: int = 1
    """Passes, one after the other, in which the sequences of an example see the model."""
    kept: bool = True
    """What these passes keep stays until the backward of all; else each has its own, behind vectors made before."""
    spares: bool = True
    """Where nobody says, blocks are run again and nothing is dropped, as trl's trainers do."""
    beside: bool = True
    """The reference sees the tokens while what the trained model keeps is alive."""
    rollouts: bool = False
    """The model writes the answers itself, a group for each prompt."""
    group: int = 1
    """Answers to a prompt where nobody says."""
    teacher: bool = False
    """Another model sees the same tokens, and what it expects is what is learned."""
    critic: bool = False
    """A model that foresees rewards trains beside."""


_WRITTEN: Final = Objective(
    task="grpo", loss="in-tiles", reference=True, forwards=1, reference_forwards=1, beside=False, rollouts=True
)
"""The model's own answers, with a reference."""
_IN_BATCH: Final = Objective(task="embed", loss="", sequences=2, turns=2, scores=True, spares=False)
"""Pairs of texts, against all others of the batch."""

OBJECTIVES: Final[dict[str, Objective]] = {
    # Chosen and rejected answers as one batch (Rafailov 2023; trl, DPOTrainer._compute_loss).
    "dpo": Objective(task="dpo", loss="in-tiles", sequences=2, reference=True, reference_forwards=1),
    "ipo": Objective(task="dpo", loss="in-tiles", sequences=2, reference=True, reference_forwards=1),
    # One answer, and it beside another prompt for the divergence (Ethayarajh 2024; trl, KTOTrainer._compute_loss).
    "kto": Objective(task="dpo", loss="in-tiles", reference=True, forwards=1, reference_forwards=2),
    # Nothing to compare with (Hong 2024, Meng 2024); trl's trainers are experimental and hold all logits.
    "orpo": Objective(task="dpo", loss="of-pairs-and-text", sequences=2),
    "simpo": Objective(task="dpo", loss="of-pairs", sequences=2),
    # The model's own answers, judged against others of their group (Shao 2024, Ahmadian 2024; trl, GRPOTrainer and
    # RLOOTrainer): probabilities of the answers as they were written, and of the reference where the loss has one.
    "grpo": replace(_WRITTEN, group=8, default_reference="none"),
    "rloo": replace(_WRITTEN, group=8),
    # The same with a critic in place of the group (Schulman 2017, Ouyang 2022).
    "ppo": replace(_WRITTEN, critic=True),
    # What a teacher expects at each place of the student's own answers, or of given ones (Agarwal 2024, Hinton 2015;
    # trl, DistillationTrainer, whose default is the first).
    "reverse-kl": Objective(task="distill", loss="in-tiles-of-two", teacher=True, rollouts=True),
    "forward-kl": Objective(task="distill", loss="in-tiles-of-two", teacher=True),
    # A number for each of two answers, as one batch (trl, RewardTrainer.compute_loss).
    "bradley-terry": Objective(task="reward", loss="", sequences=2, scores=True),
    # Texts that belong together against all others of the batch: one column after the other passes (sentence-
    # transformers, MultipleNegativesRankingLoss; with a mined negative a third). Cached: a batch as large as one likes,
    # in parts that pass twice, the first time without a gradient (Gao 2021; CachedMultipleNegativesRankingLoss).
    "in-batch": _IN_BATCH,
    "in-batch-hard": replace(_IN_BATCH, sequences=3, turns=3),
    "in-batch-cached": replace(_IN_BATCH, kept=False, forwards=1),
    # A score for a query and a text that pass together as one sequence (sentence-transformers, BinaryCrossEntropyLoss);
    # of a model whose class writes, the logits of tokens at its end (its LogitScore).
    "pair-score": Objective(task="rerank", loss="", scores=True, last_token=True, spares=False),
}
"""By the values of --loss."""

GUIDED: Final = frozenset(each.task for each in OBJECTIVES.values())
"""Tasks with an objective of their own."""
METHODS: Final = {"none": "finetune", "lora": "lora", "qlora": "qlora"}
"""How the weights of a task with an objective change, by the values of --adapters: as in the task of that name."""
ADAPTED: Final = ("lora", "qlora")
"""Of these the ones in which adapters train, beside a frozen base."""


def method_of(task: str, adapters: str | None) -> str:
    """How weights change: the task itself, or with an objective what --adapters says."""
    return METHODS[adapters or "none"] if task in GUIDED else task


def losses_of(task: str) -> tuple[str, ...]:
    """The values that --loss may have."""
    return tuple(name for name, each in OBJECTIVES.items() if each.task == task)
