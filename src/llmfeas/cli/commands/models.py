"""`llmfeas models`: the catalog of models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...contract import Added
from ...record import dataclass
from ...units import parse_count
from ..listings import Filter, Kind, ListedEntry, Opened, group

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...catalog.architecture import Model
    from ...catalog.store import Catalog
    from ...importers.tensors import ImportedModel
    from ...render.report import Json, Report


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedModel(ListedEntry):
    """A model in a listing."""

    family: str
    organisation: str
    released: str
    parameters: int
    active_parameters: int
    context: int
    has_weights: Added[bool]

    @staticmethod
    def computed(model: Model) -> Json:
        """Its parameters."""
        from ...workload.parameters import parameters

        counts = parameters(model)
        return {"parameters": counts.total, "active_parameters": counts.active}


def _found(name: str, catalog: Catalog) -> tuple[Any, str | None]:
    from ...catalog.named import find_model

    match = find_model(name, catalog)
    return match.record, match.note


def _counts(model: Model) -> Json:
    from dataclasses import asdict

    from ...workload.parameters import parameters

    return {"parameters": asdict(parameters(model))}


def _opened(text: str, catalog: Catalog) -> Opened | None:
    """Read a file or folder: what was understood, what is stored, what had to be assumed."""
    from dataclasses import asdict

    from ...importers.model_file import is_model_path, model_from_file
    from ...importers.stores.local import local_model
    from ...workload.published import with_published_bytes

    if not is_model_path(text):
        found = local_model(text)
        if found is None:
            return None
        text = str(found.path)
    imported = with_published_bytes(model_from_file(text, catalog.models.values(), catalog.tables.quantization.formats))
    notes = [*imported.notes, *(f"not in the file, assumed: {each}" for each in imported.assumed)]
    stored = imported.stored
    fields = {
        "format": imported.format,
        "paths": list(imported.paths),
        "stored": None if stored is None else {**asdict(stored), "by_type": dict(stored.by_type)},
        "stored_parameters": imported.parameters,
        "stored_buffers": imported.buffers,
        "assumed": list(imported.assumed),
    }
    return Opened(imported.model, fields, [*notes, *_unlike(imported)])


def _unlike(imported: ImportedModel) -> list[str]:
    """Say where the architecture counts other parameters than the file holds."""
    from ...workload.parameters import parameters

    if imported.parameters is None:
        return []
    held = imported.parameters - imported.buffers - imported.model.mtp_parameters
    counted = parameters(imported.model).total
    return [] if held == counted else [f"the file holds {held:,} parameters, the architecture counts {counted:,}"]


def _page(title: str, fields: Mapping[str, Any], remarks: Sequence[str]) -> Report:
    """The fields as people read them: no bias of keys where queries and values have none, contexts as sentences."""
    from ...render.pages.entry import entry

    shape = {
        name: value
        for name, value in fields["architecture"].items()
        if name != "key_bias" or (fields["architecture"].get("qkv_bias") and not value)
    }
    if "key_bias" in shape:
        shape["key_bias"] = "no"
    contexts = [
        f"{each['context']:,} where a name has {' '.join(each['words'])}" for each in fields.get("contexts") or ()
    ]
    return entry(title, {**fields, "architecture": shape, "contexts": contexts}, remarks)


KIND = Kind(
    singular="model",
    plural="models",
    records=lambda catalog: catalog.models,
    found=_found,
    listed=ListedModel,
    page=_page,
    filters=(
        Filter(name="family", help="are of this family.", keeps=lambda row, v: row["family"].lower() == v.lower()),
        Filter(
            name="organisation",
            help="come from this organisation.",
            keeps=lambda row, v: v.lower() in row["organisation"].lower(),
        ),
        Filter(
            name="min_parameters",
            help="have at least so many parameters, such as 7B.",
            keeps=lambda row, v: row["parameters"] >= v,
            read=lambda text: parse_count(text, "--min-parameters"),
            metavar="COUNT",
        ),
        Filter(
            name="max_parameters",
            help="have at most so many parameters.",
            keeps=lambda row, v: row["parameters"] <= v,
            read=lambda text: parse_count(text, "--max-parameters"),
            metavar="COUNT",
        ),
    ),
    spare=lambda row: not row["has_weights"],
    spare_words="models without published weights",
    extra=_counts,
    opened=_opened,
)

command = group(KIND, "Models that the catalog knows: list, show, search.")
