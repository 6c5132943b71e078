"""From safetensors headers to a model: by its config.json where there is one, else from names and shapes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from ...catalog.architecture import Architecture, Dtype, Model
from ...errors import DataError
from ...record import replace
from ...units import MIB
from ..stores.hub_cache import name_of
from ..tensors import ImportedModel, bytes_by_type
from .header import bad_file, bounded_bytes
from .layout import Formats, TensorLayout, identifier, layout_of, stored_weights
from .packed import unpacked
from .safetensors import SafetensorsHeader, parsed_json, read_safetensors, shard_paths
from .shapes import CannotExpressError, Facts, Inferred, architecture_from_layout

CONFIG_LIMIT = 8 * MIB
HEADER_ALONE = "the file holds a header and no weights"


def model_from_safetensors(path: Path, known: Iterable[Model], formats: Formats) -> ImportedModel:
    """Understand a safetensors file, any shard of a sharded model, or the folder that holds it.

    A config.json beside it gives the architecture. Without one it is inferred from names and shapes; what shapes cannot
    say is taken from a model of `known` whose shapes are equal, else assumed and listed.

    Raises:
        DataError: a file is damaged or missing, or the model is one that no architecture can express.
    """
    paths = shard_paths(path)
    if not paths:
        raise bad_file(path, "the folder holds no .safetensors file", hint="Give the file itself.")
    header = read_safetensors(paths)
    config = _config(paths[0].parent)
    weights = unpacked(header.tensors, quantization_config(config))
    layout = layout_of(weights.tensors)
    model, assumed, notes = _model(path, config, header, layout, known)
    stored = stored_weights(
        weights.tensors,
        layout,
        formats,
        container="safetensors",
        label=weights.label,
        file_bytes=header.file_bytes,
        by_type=bytes_by_type(header.tensors),
    )
    if not header.weights_present:
        notes.append(HEADER_ALONE)
    if layout.other:
        notes.append(f"{layout.other} parameters of other encoders (images, sound) are stored beside the text model")
    return ImportedModel(
        model=replace(model, published_quant=stored.quant),
        stored=stored,
        parameters=sum(tensor.elements for tensor in weights.tensors),
        buffers=layout.buffers + _twin_of_tied_head(layout, model.architecture),
        format="safetensors",
        paths=header.paths,
        assumed=tuple(assumed),
        notes=tuple(notes),
    )


def quantization_config(config: Mapping[str, object]) -> Mapping[str, object]:
    """The quantization part of a config.json, wherever the exporter put it; empty where there is none."""
    inner = config.get("text_config")
    for place in (config, inner if isinstance(inner, dict) else {}):
        for key in ("quantization_config", "compression_config", "quantization"):
            section = place.get(key)
            if isinstance(section, dict):
                return section
    return {}


def _config(folder: Path) -> dict[str, object]:
    path = folder / "config.json"
    if not path.is_file():
        return {}
    return parsed_json(path, bounded_bytes(path, CONFIG_LIMIT, "a configuration"), 100_000)


def _twin_of_tied_head(layout: TensorLayout, architecture: Architecture) -> int:
    """Elements of a head that is stored although the model uses its embedding."""
    head = layout.top.get("output")
    return head.elements if architecture.tied and head is not None else 0


def _model(
    path: Path, config: dict[str, object], header: SafetensorsHeader, layout: TensorLayout, known: Iterable[Model]
) -> tuple[Model, list[str], list[str]]:
    """The model, what had to be assumed, and notes."""
    if config.get("model_type") is not None:
        try:
            return _configured(Path(header.paths[0]).parent, header, layout)
        except DataError as error:
            # A type that is not known may still be laid out like one that is.
            if error.code != "unknown-model-type":
                raise
    name = _name(path, Path(header.paths[0]))
    try:
        inferred = architecture_from_layout(layout, _facts(config))
        inferred, twin = _completed(inferred, list(known))
    except (CannotExpressError, ValueError) as error:
        raise bad_file(
            path, f"the model cannot be inferred: {error}", hint="Put the model's config.json beside the weights."
        ) from error
    assumed, notes = inferred.assumed, []
    context = twin.context if twin is not None else inferred.architecture.learned_positions
    if twin is not None:
        notes.append(f"shapes equal those of {twin.id}: what shapes do not tell was taken from it")
    elif context is None:
        assumed.append("context 4096")
    model = Model(
        id=identifier(name),
        name=name,
        architecture=inferred.architecture,
        family=twin.family if twin is not None else "",
        dtype=_dtype(header),
        context=context or 4096,
        mtp_parameters=sum(layout.nextn.values()),
        notes="read from safetensors without a config.json",
        sources=header.paths[:1],
    )
    return model, assumed, notes


def _configured(folder: Path, header: SafetensorsHeader, layout: TensorLayout) -> tuple[Model, list[str], list[str]]:
    """The model of the config.json beside the weights, and a note where the weights contradict it."""
    from ..hf.config import model_from_config

    model = model_from_config(folder)
    table = layout.top.get("token_embd")
    notes = []
    if table is not None and len(table.shape) == 2 and table.shape[0] != model.architecture.vocab:
        notes.append(
            f"config.json says {model.architecture.vocab} rows of embedding, the weights hold {table.shape[0]}"
        )
    if layout.layers and len(layout.layers) != model.architecture.layers:
        notes.append(f"config.json says {model.architecture.layers} layers, the weights hold {len(layout.layers)}")
    return replace(model, dtype=_dtype(header), mtp_parameters=sum(layout.nextn.values())), [], notes


def _name(path: Path, first: Path) -> str:
    """Name a model after its folder, or after its file where that says more than `model`."""
    name = name_of(path) if path.is_dir() else first.name.removesuffix(".safetensors")
    if name == "model" or name.startswith("model-"):
        name = name_of(first.parent) or name
    return name


def _completed(inferred: Inferred, known: list[Model]) -> tuple[Inferred, Model | None]:
    """Take over the architecture of a known model of the same shapes, if there is one."""
    architecture = inferred.architecture
    for model in known:
        other = model.architecture
        same = all(getattr(other, name) == getattr(architecture, name) for name in _SHAPED)
        widths = (other.q_width, other.kv_width) == (architecture.q_width, architecture.kv_width)
        if same and widths and _experts_alike(other, architecture):
            return Inferred(other, []), model
    return inferred, None


_SHAPED = ("layers", "hidden", "vocab", "ffn", "gated", "norm_bias", "qkv_bias", "tied", "norms_per_layer", "mla")


def _experts_alike(one: Architecture, other: Architecture) -> bool:
    if one.experts is None or other.experts is None:
        return one.experts is other.experts
    return (one.experts.count, one.experts.width) == (other.experts.count, other.experts.width)


def _facts(config: Mapping[str, object]) -> Facts:
    """Take from a configuration the figures that no shape tells."""
    return Facts(
        heads=_figure(config, "num_attention_heads", "n_heads", "n_head"),
        head_dim=_figure(config, "head_dim"),
        top_k=_figure(config, "num_experts_per_tok", "moe_topk"),
        shared_experts=_figure(config, "n_shared_experts"),
    )


def _figure(config: Mapping[str, object], *names: str) -> int | None:
    values = (config.get(name) for name in names)
    return next((value for value in values if type(value) is int and 0 < value < 10**6), None)


def _dtype(header: SafetensorsHeader) -> Dtype:
    """Name the plain type that most bytes are stored in."""
    names: dict[str, Dtype] = {
        "f32": "float32", "bf16": "bfloat16", "f16": "float16",
    }  # fmt: skip
    return next((names[kind] for kind, _ in bytes_by_type(header.tensors) if kind in names), "bfloat16")
