"""From a GGUF header to a model: facts from its metadata, shapes from its tensors, and what is stored.

What GGUF neither stores nor shows in a shape stands in data/gguf.yaml, by `general.architecture`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from ...catalog.architecture import Activation, Architecture, Dtype, Model
from ...catalog.parts import Window
from ...record import dataclass, replace
from ...text import printable
from ..config_file import MOST_LAYERS
from ..tensors import ImportedModel
from .gguf import PLAIN_TYPES, ArrayLength, GgufHeader, Value, read_gguf, table
from .header import bad_file
from .layout import Formats, TensorLayout, identifier, layout_of, stored_weights
from .shapes import CannotExpressError, Facts, architecture_from_layout


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """Traits of one `general.architecture`. The header of data/gguf.yaml documents each field."""

    implementation: str = "hf-llama"
    activation: Activation | None = None
    alibi: bool = False
    parallel_block: bool = False
    softcap: bool = False
    l2_norm: bool = False
    local: int = 0
    full: int = 1
    window: int | None = None
    chunked: bool = False
    no_rope_every: int | None = None
    experts_implementation: str | None = None
    corrected_implementation: str | None = None


def model_from_gguf(path: Path, formats: Formats) -> ImportedModel:
    """Understand a GGUF file (any part of a split one): architecture, quantization, bytes.

    Raises:
        DataError: the file is damaged, holds no language model, or one that no architecture can express.
    """
    header = read_gguf(path)
    name = header.metadata.get("general.architecture")
    if not isinstance(name, str):
        raise bad_file(path, "metadata key general.architecture is missing: this is no model")
    _refuse_other_content(path, name, header.metadata.get("general.type", "model"))
    keys = _Keys(path, name, header.metadata)
    layout = layout_of(header.tensors)
    traits = table()["architectures"].get(name)
    try:
        facts = _facts(keys, Traits(**(traits or {})), layout)
        inferred = architecture_from_layout(layout, facts)
        _agree(keys, inferred.architecture, layout)
        architecture = _looped(keys, inferred.architecture)
    except (CannotExpressError, ValueError) as error:
        problem = f"architecture '{printable(name, 60)}' cannot be expressed: {error}"
        raise bad_file(path, problem, hint=_HINT) from error
    label, remark = _label(header)
    stored = stored_weights(header.tensors, layout, formats, "gguf", label, header.file_bytes)
    model = _model(path, keys, header, architecture, layout, facts)
    notes = [remark] if remark else []
    if traits is None:
        notes.append(f"architecture {printable(name)!r} is not known by name: read like Llama from its tensors")
    if not header.weights_present:
        notes.append("the file holds a header and no weights")
    return ImportedModel(
        model=replace(model, published_quant=stored.quant),
        stored=stored,
        parameters=sum(tensor.elements for tensor in header.tensors),
        buffers=layout.buffers,
        format="gguf",
        paths=header.paths,
        assumed=tuple(inferred.assumed),
        notes=tuple(notes),
    )


def _refuse_other_content(path: Path, name: str, kind: object) -> None:
    other = table()["no_language_model"].get(name)
    if other or kind not in ("model", "base"):
        what = other or f"of type '{printable(kind, 60)}'"
        hint = "Give the file of the language model itself."
        raise bad_file(path, f"the file is {what}, no language model", hint=hint)


_HINT = "Give a config.json of the model, or describe it in a catalog of your own."


class _Keys:
    """Metadata of one architecture, read by the part of the key behind its name."""

    def __init__(self, path: Path, name: str, metadata: Mapping[str, Value]) -> None:
        self.path = path
        self.name = name
        self.metadata = metadata

    def raw(self, key: str) -> Value | None:
        return self.metadata.get(f"{self.name}.{key}")

    def count(self, key: str) -> int | None:
        """A positive whole number, None where the key is missing or 0; lists must hold one number."""
        value = self.raw(key)
        if isinstance(value, tuple):
            different = {side for side in value if side}
            if len(different) > 1:
                raise CannotExpressError(f"{self.name}.{key} differs between layers ({sorted(different)[:4]})")
            value = next(iter(different), 0)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 10**12:
            raise CannotExpressError(f"{self.name}.{key} is {printable(value)}, no possible number")
        return value or None

    def flag(self, key: str) -> bool:
        value = self.raw(key)
        return isinstance(value, bool | int | float) and bool(value)

    def text(self, key: str) -> str:
        """A text of the general part, empty where there is none."""
        value = self.metadata.get(f"general.{key}")
        return value if isinstance(value, str) else ""


def _facts(keys: _Keys, traits: Traits, layout: TensorLayout) -> Facts:
    head_dim = keys.count("attention.key_length")
    if layout.anywhere("attn_kv_a_mqa") is not None:
        head_dim = None
    heads = keys.count("attention.head_count")
    rotated, widest = keys.count("rope.dimension_count"), head_dim
    hidden = keys.count("embedding_length")
    if widest is None and heads and hidden:
        widest = hidden // heads
    partial = rotated is not None and widest and layout.anywhere("attn_kv_a_mqa") is None
    return Facts(
        heads=heads,
        head_dim=head_dim,
        context=keys.count("context_length"),
        activation=traits.activation,
        norm=_norm(keys),
        positions="alibi" if traits.alibi or keys.flag("attention.max_alibi_bias") else "rope",
        parallel_block=traits.parallel_block or keys.flag("use_parallel_residual"),
        softcap=traits.softcap or keys.flag("attn_logit_softcapping"),
        l2_norm=traits.l2_norm and layout.anywhere("attn_q_norm") is None,
        rope_fraction=min(1.0, rotated / widest) if partial and rotated and widest else 1.0,
        no_rope_every=traits.no_rope_every,
        window=_window(keys, traits),
        windowed=_windowed(keys),
        top_k=keys.count("expert_used_count"),
        shared_experts=keys.count("expert_shared_count"),
        key_heads=keys.count("ssm.group_count"),
        implementation=_implementation(traits, layout),
    )


def _implementation(traits: Traits, layout: TensorLayout) -> str:
    if traits.corrected_implementation and layout.anywhere("exp_probs_b") is not None:
        return traits.corrected_implementation
    if traits.experts_implementation and layout.anywhere("ffn_gate_inp") is not None:
        return traits.experts_implementation
    return traits.implementation


def _norm(keys: _Keys) -> Literal["rms", "layer"] | None:
    if keys.raw("attention.layer_norm_rms_epsilon") is not None:
        return "rms"
    return "layer" if keys.raw("attention.layer_norm_epsilon") is not None else None


def _window(keys: _Keys, traits: Traits) -> Window | None:
    """Say which layers slide: by the file's own pattern, else by the architecture's; without either none does."""
    size = keys.count("attention.sliding_window") or traits.window
    if size is None or keys.raw("attention.sliding_window") == 0:
        return None
    pattern = keys.raw("attention.sliding_window_pattern")
    if isinstance(pattern, tuple) and pattern:
        return _window_of_pattern(size, [bool(place) for place in pattern])
    if isinstance(pattern, int) and not isinstance(pattern, bool) and pattern > 0:
        return Window(size=size, local=pattern - 1, full=1) if pattern > 1 else None
    if not traits.local:
        return None
    return Window(size=size, local=traits.local, full=traits.full, chunked=traits.chunked)


def _windowed(keys: _Keys) -> tuple[bool, ...]:
    """Which layers slide, where the file lists them; empty where it does not."""
    pattern = keys.raw("attention.sliding_window_pattern")
    return tuple(bool(place) for place in pattern) if isinstance(pattern, tuple) else ()


def _window_of_pattern(size: int, slides: list[bool]) -> Window | None:
    """The group of layers that a list of layer kinds repeats, or begins with."""
    if not any(slides):
        return None
    if all(slides):
        return Window(size=size)
    full_first = not slides[0]
    first = slides.index(not slides[0])
    second = next((i for i in range(first, len(slides)) if slides[i] == slides[0]), len(slides))
    leading, following = first, second - first
    local, full = (following, leading) if full_first else (leading, following)
    return Window(size=size, local=local, full=full, full_first=full_first)


def _agree(keys: _Keys, architecture: Architecture, layout: TensorLayout) -> None:
    """Check the metadata's own figures against the tensors: they describe the same model."""
    claims = {
        "embedding_length": (architecture.embedding_dim or architecture.hidden, 0),
        "block_count": (architecture.layers + len(layout.nextn), len(layout.nextn)),
        "attention.head_count": (architecture.heads, 0),
        "expert_count": (architecture.experts.count if architecture.experts else 0, 0),
    }
    for key, (inferred, slack) in claims.items():
        stated = keys.count(key)
        if stated is not None and not inferred - slack <= stated <= inferred:
            raise CannotExpressError(f"{keys.name}.{key} is {stated}, but the tensors make it {inferred}")


def _looped(keys: _Keys, architecture: Architecture) -> Architecture:
    """The architecture with its layers as often as they run, where the file says that they run again."""
    times, held = keys.count("num_loops") or 1, architecture.layers
    if times == 1:
        return architecture
    if architecture.layer_runs or times * held > MOST_LAYERS:
        raise CannotExpressError(f"{keys.name}.num_loops is {times}")
    between = not keys.flag("skip_loop_final_norm")
    return replace(architecture, layers=times * held, held_layers=held, loop_norm=between)


def _label(header: GgufHeader) -> tuple[str, str]:
    """Name what is stored: the file's own word where its largest tensors agree, else the largest type; and a remark."""
    sums: dict[str, int] = {}
    for tensor in header.tensors:
        if len(tensor.shape) > 1:
            sums[tensor.type] = sums.get(tensor.type, 0) + tensor.elements
    leading = max(sums, key=lambda name: sums[name]) if sums else "f32"
    number = header.metadata.get("general.file_type")
    stated = _file_type(number & ~1024) if isinstance(number, int) and number >= 0 else None
    if stated is not None and leading in table()["led_by"].get(stated, (stated, stated.removesuffix("_s"))):
        return "none" if stated in PLAIN_TYPES else stated, ""
    if stated is not None and stated.startswith("iq") and leading.startswith("iq"):
        return stated, ""
    mixes = {"q4_k": "q4_k", "q5_k": "q5_k", "q3_k": "q3_k"}
    label = f"{mixes[leading]}_{'m' if 'q6_k' in sums or leading == 'q3_k' else 's'}" if leading in mixes else leading
    remark = f"general.file_type says {stated}, but most weights are {leading}" if stated is not None else ""
    return "none" if label in PLAIN_TYPES else label, remark


def _file_type(number: int) -> str | None:
    return next((name for name, numbers in table()["file_types"].items() if number in numbers), None)


def _model(
    path: Path, keys: _Keys, header: GgufHeader, architecture: Architecture, layout: TensorLayout, facts: Facts
) -> Model:
    name = keys.text("name") or path.name.removesuffix(".gguf")
    types = {tensor.type for tensor in header.tensors if len(tensor.shape) > 1}
    dtype: Dtype = "float16"
    if types <= {"f32"}:
        dtype = "float32"
    elif "bf16" in types:
        dtype = "bfloat16"
    vocabulary = header.metadata.get("tokenizer.ggml.tokens")
    words = f"; {vocabulary.length} tokens in its vocabulary" if isinstance(vocabulary, ArrayLength) else ""
    return Model(
        id=identifier(name),
        name=printable(name),
        architecture=architecture,
        family=keys.name,
        organisation=printable(keys.text("organization") or keys.text("author")),
        license=printable(keys.text("license")),
        dtype=dtype,
        context=facts.context or architecture.learned_positions or 4096,
        mtp_parameters=sum(layout.nextn.values()),
        notes=f"read from a GGUF file{words}",
        sources=tuple(header.paths[:1]),
    )
