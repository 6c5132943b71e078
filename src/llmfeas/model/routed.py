"""From an architecture to its mixture of experts."""

from __future__ import annotations

from ..catalog.architecture import Architecture
from ..catalog.parts import Experts
from .experts import RoutedExperts


def routed_experts(architecture: Architecture, experts: Experts) -> RoutedExperts:
    """The mixture of experts of an architecture."""
    return RoutedExperts(
        architecture.hidden,
        experts.count,
        experts.zero,
        experts.top_k,
        experts.top_k if experts.expected_real is None else experts.expected_real,
        experts.width,
        experts.shared,
        experts.shared_width,
        experts.shared_gate,
        architecture.gated,
        experts.router_bias,
        experts.bias,
        architecture.activation,
        latent_width=experts.latent_width or 0,
        norms=experts.norms,
        scales=experts.scales,
    )
