"""A whole decoder: embeddings, masks, rotation, layers, final norm, head."""

from __future__ import annotations

from collections.abc import Sequence

from ...autograd.basic import add, dropout, scaled
from ...autograd.graph import Parameter, Tensor, view
from ...autograd.loss import LOSSES, LOSSES_WITH_HEAD
from ...autograd.products import embedding, linear
from ...autograd.recorder import Recorder
from ...autograd.storage import ACTIVATIONS, HOST, LOGITS, stored
from ...autograd.views import respread
from ...model.context import Context, Linear
from ...model.rotation import Around, Rotation
from ...model.scores import softcapped
from ...record import dataclass
from .attention import rotary_width
from .layer import Layer
from .norms import Norm
from .shortcut import ShortcutLayer


class Model:
    """A model's weights (allocated when built) and its forward pass."""

    __slots__ = (
        "built",
        "context",
        "embedding_norm",
        "enter",
        "final",
        "head",
        "head_bias",
        "indices",
        "layers",
        "leave",
        "positions",
        "table",
    )

    def __init__(self, context: Context, layers: Sequence[int]) -> None:
        setup = context.setup
        a = setup.architecture
        self.context = context
        width = a.embedding_dim or a.hidden
        self.embedding_norm = Norm(context, width, bias=a.norm_bias) if setup.embeds and a.embedding_norm else None
        self.table = context.parameter(a.vocab, width) if setup.embeds or (setup.heads and a.tied) else None
        self.enter = context.linear(width, a.hidden) if setup.embeds and width != a.hidden else None
        self._add_ngram_tables()
        learned = setup.embeds and a.learned_positions
        self.positions = context.parameter(a.learned_positions or 0, a.hidden) if learned else None
        self.layers: list[Layer | ShortcutLayer] = []
        self.built = [context.recorder.ledger.level]
        self.indices = layers
        for context.place, index in enumerate(layers, 1):
            self._add_indexer()
            kind = ShortcutLayer if a.attention_blocks == 2 else Layer
            self.layers.append(kind(context, index))
            self.built.append(context.recorder.ledger.level)
        context.place = 0
        self.final: Norm | None = None
        self.leave: Linear | None = None
        self.head: Parameter | None = None
        self.head_bias: Parameter | None = None
        if setup.heads:
            self.final = Norm(context, a.hidden, bias=a.norm_bias, streams=True) if a.final_norm else None
            self.leave = context.linear(a.hidden, width) if width != a.hidden else None
            self.head = self.table if a.tied and self.table is not None else context.parameter(a.vocab, width)
            self.head.ranks = context.ranks if width == a.hidden else 1
            self.head_bias = context.parameter(a.vocab) if a.head_bias else None
        if context.traits.mask_buffer and a.learned_positions:
            context.buffers.append(context.recorder.new(a.learned_positions**2, 1))
        if context.traits.scales_embedding == "table":
            context.buffers.append(context.recorder.new(1, 4))
        if a.positions == "rope":
            # Inverse frequencies, and the copy of them that dynamic scaling starts from.
            width = a.mla.rope_head_dim if a.mla is not None else a.head_dim
            for _ in range(2 * context.traits.rotary_tables):
                context.buffers.append(context.recorder.new(width // 2, 4))

    def _add_ngram_tables(self) -> None:
        """Weights of hashed n-gram tables; what their look-ups make is as small as the embedding."""
        context = self.context
        a = context.setup.architecture
        if a.ngram is None or not context.setup.embeds:
            return
        tables = a.ngram.splits * (a.ngram.max_order - 1)
        width, rows = a.hidden // tables, int(a.ngram.ratio * a.vocab)
        for index in range(tables):
            context.parameter(rows + 2 * index + 1, width)
            context.linear(width, a.hidden)

    def _add_indexer(self) -> None:
        """Weights of a layer's sparse-attention indexer; training over the whole sequence keeps none of its scores."""
        context = self.context
        a = context.setup.architecture
        if a.indexer is not None and a.mla is not None:
            context.linear(a.mla.q_lora_rank or a.hidden, a.indexer.heads * a.indexer.head_dim)
            context.linear(a.hidden, a.indexer.head_dim)
            context.parameter(a.indexer.head_dim)
            context.linear(a.hidden, a.indexer.heads)

    def _add_buffers(self) -> None:
        """Where inputs of checkpointed blocks come back from the host: one is read while the next one arrives."""
        context, recipe = self.context, self.context.recipe
        if context.traits.streams_inputs and recipe.checkpointing in ("full", "selective"):
            context.buffers.append(context.recorder.new(2 * context.stream, recipe.weight_bytes))

    def _embedded(self, ids: Tensor) -> Tensor:
        """The token embedding, or what the stage before sends."""
        context, recorder = self.context, self.context.recorder
        setup = context.setup
        recipe = setup.recipe
        if self.table is None or not setup.embeds:
            received = recorder.new(context.sizes.bs * setup.architecture.hidden, recipe.weight_bytes)
            received.node = context.input_leaf(received)
            return received
        embedded = embedding(recorder, self.table, ids)
        scales = setup.implementation.scales_embedding
        if scales == "table":
            embedded = scaled(recorder, embedded)
        if recipe.adapters and recipe.checkpointing in ("full", "selective"):
            # Checkpointed blocks of a frozen base need an input with a gradient.
            embedded.node = context.input_leaf(embedded)
        return scaled(recorder, embedded) if scales == "model" else embedded

    def body(self, ids: Tensor) -> Tensor:
        """Run everything below the head."""
        context, recorder, sizes = self.context, self.context.recorder, self.context.sizes
        setup = context.setup
        self._add_buffers()
        embedded = self._embedded(ids)
        places = recorder.new(sizes.bs if setup.implementation.positions_per_sequence else sizes.s, 8)
        hidden = embedded
        if self.positions is not None:
            placed = self._placed(self.positions, places)
            if self.enter is not None:
                embedded = context.apply(self.enter, embedded)
            hidden = add(recorder, embedded, placed)
        if self.embedding_norm is not None:
            hidden = self.embedding_norm(recorder, hidden)
        hidden = respread(recorder, hidden, context.stream) if context.ranks > 1 else hidden
        masks = self._masks(embedded.width)
        bias = self._position_bias(hidden.width)
        hidden = dropout(recorder, hidden, setup.recipe.drop_embedding)
        rotations = self._rotations(embedded.width)
        passed = places if setup.implementation.passes_places else None
        for place, (index, layer) in enumerate(zip(self.indices, self.layers, strict=True), 1):
            recorder.ledger.enter(place)
            windowed = setup.architecture.layer_kinds[index].windowed
            turn = rotations[windowed] if rotations else None
            hidden = self._layer(layer, hidden, Around(masks[windowed], turn, bias, passed))
            if place > 1:
                self.layers[place - 2].scores = None
        recorder.ledger.enter(len(self.layers) + 1)
        for layer in self.layers:
            layer.scores = None
        if self.final is not None:
            hidden = self.final(recorder, hidden)
        if self.leave is not None:
            hidden = context.apply(self.leave, hidden)
        return hidden

    def _position_bias(self, width: int) -> Tensor | None:
        """ALiBi: a slope a head times the distance, written out for all sequences or once in fp32."""
        context, sizes = self.context, self.context.sizes
        a = context.setup.architecture
        if a.positions != "alibi":
            return None
        if "bias" in context.traits.scores:
            return context.recorder.new(a.heads * sizes.s, 4)
        return context.recorder.new(a.heads * sizes.bs, width)

    def _placed(self, table: Parameter, places: Tensor) -> Tensor:
        if self.context.traits.positions_per_sequence:
            # The table's first rows are for padding: places are shifted.
            places = self.context.recorder.new(places.n, 8)
        return embedding(self.context.recorder, table, places)

    def _masks(self, width: int) -> tuple[Tensor | None, Tensor | None]:
        """The masks of whole and of windowed layers: numbers for eager code, truth values for a fused kernel."""
        setup, recorder, sizes = self.context.setup, self.context.recorder, self.context.sizes
        a, recipe = setup.architecture, setup.recipe
        kinds = {a.layer_kinds[index].windowed for index in self.indices}
        if "fill" in setup.implementation.scores:
            mask = recorder.new(sizes.bss, 1)
            return mask, mask
        if "choose" in setup.implementation.scores:
            mask = recorder.new(sizes.bss, width)
            return mask, mask
        if recipe.eager and setup.implementation.compiled:
            return None, None
        if recipe.eager:
            whole, windowed = (recorder.new(sizes.bss, width) if kind in kinds else None for kind in (False, True))
            return whole, windowed
        always = setup.implementation.always_masks
        if not (recipe.windowed or always):
            return None, None
        truth = recorder.new(sizes.ss, 1)
        mask = view(truth.storage, sizes.bss, 1)
        return mask if always else None, mask

    def _rotations(self, width: int) -> tuple[Rotation, Rotation] | None:
        """The tables of whole and of windowed layers."""
        a, traits = self.context.setup.architecture, self.context.traits
        if a.positions != "rope":
            return None
        recorder = self.context.recorder
        turning = a.mla.rope_head_dim if a.mla is not None else rotary_width(a.head_dim, a.rope_fraction)
        n = self.context.sizes.s * turning
        if traits.rotation == "apart":
            n //= 2
        width = 4 if traits.rotation_fp32 else width
        if traits.rotation == "complex":
            table = recorder.new(n, 4)
            return (table, table), (table, table)
        if not traits.rotary_tables:
            # Each layer makes its own; only their size is known here.
            nothing = stored(recorder.ledger, 0, ACTIVATIONS)
            table = view(nothing, n, width)
            return (table, table), (table, table)
        whole = recorder.new(n, width), recorder.new(n, width)
        return whole, (recorder.new(n, width), recorder.new(n, width)) if traits.rotary_tables > 1 else whole

    def _layer(self, layer: Layer | ShortcutLayer, x: Tensor, around: Around) -> Tensor:
        if self.context.recipe.checkpointing in ("full", "selective"):
            recorder, streams = self.context.recorder, self.context.traits.streams_inputs
            if streams or recorder.offloads:
                # The stream itself lives as long as it has a name.
                x = view(x.storage.copied(HOST), x.n, x.width, x.node)
            return recorder.checkpoint(Replay(layer, x, around, None if streams else recorder))
        return layer(x, around)

    def loss(self, ids: Tensor) -> Tensor:
        """Run body, head and loss; all three results are named until the loss exists."""
        hidden = self.body(ids)
        if self.head is None:
            return hidden
        loss = self.context.traits.loss
        if loss in LOSSES_WITH_HEAD:
            return LOSSES_WITH_HEAD[loss](self.context.recorder, hidden, self.head, self.head_bias)
        logits = linear(self.context.recorder, hidden, self.head, self.head_bias, logits=True)
        logits = self._shaped(logits)
        return LOSSES[loss](self.context.recorder, logits)

    def _shaped(self, logits: Tensor) -> Tensor:
        """Logits through a cap or times a number, each step replacing the one before."""
        context, recorder = self.context, self.context.recorder
        if context.traits.compiled:
            # Part of the loss's kernels.
            return logits
        before, recorder.component = recorder.component, LOGITS
        if context.setup.architecture.softcap:
            logits = softcapped(recorder, logits)
        if context.traits.scales_logits:
            logits = scaled(recorder, logits)
        recorder.component = before
        return logits


@dataclass(frozen=True, slots=True)
class Replay:
    """A layer call with its arguments, to run again in backward."""

    layer: Layer | ShortcutLayer
    x: Tensor
    around: Around
    recorder: Recorder | None
    """On which an input comes back from the host as a tensor; None: it is read through a buffer."""

    def __call__(self) -> Tensor:
        """Run the layer."""
        x = self.x
        if self.recorder is not None and self.recorder.offloads and self.recorder.replay is not None:
            x = view(x.storage.copied(ACTIVATIONS), x.n, x.width, x.node)
        return self.layer(x, self.around)
