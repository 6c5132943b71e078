"""`llmfeas claims`: what two articles and some rules of thumb say, computed anew."""

from __future__ import annotations

from typing import Any

import click

from ...contract import envelope, given
from ..parameters import Command, Output, outputs

EXAMPLE = "llmfeas claims longcat-total-params"


def run(ids: tuple[str, ...], **values: Any) -> None:
    """Answer claims, all of them without ids.

    Raises:
        UsageError: there is no such claim.
        DataError: a claim asks for what the catalog does not have.
    """
    from ...catalog.store import catalog
    from ...evidence.claims.answer import ClaimsResult, answered
    from ...evidence.claims.records import all_claims

    output = Output.taken(values)
    known = all_claims(catalog())
    claims = tuple(answered(claim, catalog()) for claim in known.named(ids))
    named = {name for claim in claims for name in claim.documents}
    result = ClaimsResult(claims, tuple(document for document in known.documents if document.id in named))
    answer = envelope("claims", catalog().digest, given({"ids": ids} if ids else {}), result)

    def report() -> Any:
        from ...render.pages.claims import report

        return report(answer, overview=not ids, details=bool(ids) or output.format == "markdown")

    output.write(answer, report)


def _ids(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    from ...catalog.store import catalog
    from ...evidence.claims.records import all_claims

    return [claim.id for claim in all_claims(catalog()).claims if claim.id.startswith(incomplete)]


command = Command(
    "claims",
    params=[click.Argument(["ids"], nargs=-1, metavar="[ID]...", shell_complete=_ids), *outputs()],
    callback=run,
    help="What two articles on training language models and some rules of thumb say, held against what is computed: "
    "each claim holds, holds under conditions, or does not hold, with the figures and the reason.",
    epilog=f"For example: {EXAMPLE}",
)
