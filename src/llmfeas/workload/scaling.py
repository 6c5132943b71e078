"""The scaling law: parameters and tokens that make the best of a compute (Hoffmann et al. 2022)."""

from __future__ import annotations

from ..contract import Published, published
from ..record import dataclass

LOSS_A, LOSS_B, ALPHA, BETA = 406.4, 410.7, 0.34, 0.28
"""L(N, D) = E + A / N^alpha + B / D^beta: approach 3 of Hoffmann et al. 2022, equation 10."""

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


def optimum(flop: float) -> Optimum:
    """Parameters and tokens of least loss L(N, D) under 6 N D = `flop`.

    Formula: N = G (C/6)^(beta / (alpha + beta)), G = (alpha A / (beta B))^(1 / (alpha + beta)).
    """
    total = ALPHA + BETA
    scale = (ALPHA * LOSS_A / (BETA * LOSS_B)) ** (1 / total)
    size = scale * (flop / 6) ** (BETA / total)
    return Optimum(size, flop / 6 / size)


def optimum_by_rule(flop: float) -> Optimum:
    """The same by the rule of 20 tokens a parameter: N = sqrt(C / 120)."""
    size = (flop / 6 / RULE_TOKENS_PER_PARAMETER) ** 0.5
    return Optimum(size, RULE_TOKENS_PER_PARAMETER * size)
