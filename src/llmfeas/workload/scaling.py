"""The scaling law: parameters and tokens that make the best of a compute."""

from __future__ import annotations

from ..contract import Published, published
from ..record import dataclass

Law = tuple[float, float, float, float]
"""A, B, alpha and beta of L(N, D) = E + A / N^alpha + B / D^beta."""
REFITTED: Law = (482.01, 2085.43, 0.3478, 0.3658)
"""Besiroglu et al. 2024 (https://arxiv.org/abs/2404.10102): the runs of Hoffmann et al. fitted anew, which agrees with
their approaches 1 and 2."""
HOFFMANN: Law = (406.4, 410.7, 0.34, 0.28)
"""Approach 3 as Hoffmann et al. 2022 print it, equation 10: rounded, and stopped before it had converged."""

RULE_TOKENS_PER_PARAMETER = 20.0


@dataclass(frozen=True, slots=True)
class Optimum(Published):
    """Parameters and tokens whose 6 N D is the compute that there is."""

    parameters: float
    tokens: float

    @published
    def tokens_per_parameter(self) -> float:
        """Tokens over parameters."""
        return self.tokens / self.parameters


def optimum(flop: float, law: Law = REFITTED) -> Optimum:
    """Parameters and tokens of least loss L(N, D) under 6 N D = `flop`.

    Formula: N = G (C/6)^(beta / (alpha + beta)), G = (alpha A / (beta B))^(1 / (alpha + beta)).
    """
    loss_a, loss_b, alpha, beta = law
    scale = (alpha * loss_a / (beta * loss_b)) ** (1 / (alpha + beta))
    size = scale * (flop / 6) ** (beta / (alpha + beta))
    return Optimum(size, flop / 6 / size)


def optimum_by_rule(flop: float) -> Optimum:
    """The same by the rule of 20 tokens a parameter: N = sqrt(C / 120)."""
    size = (flop / 6 / RULE_TOKENS_PER_PARAMETER) ** 0.5
    return Optimum(size, RULE_TOKENS_PER_PARAMETER * size)
