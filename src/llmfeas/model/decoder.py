"""A whole decoder as it runs: embeddings, masks, rotation, layers, final norm, head."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..autograd.basic import add, cast, copied, dropout, hooked, scaled
from ..autograd.graph import Parameter, Tensor, view
from ..autograd.products import embedding
from ..autograd.recorder import Recorder
from ..autograd.storage import ACTIVATIONS, HOST, stored
from ..autograd.views import respread, sliced
from ..catalog.architecture import Architecture
from ..record import dataclass
from .beside import LayerTables, StreamProjections, passing_by
from .build import tape_of
from .context import Context
from .layer import LayerProgram
from .learned import behind, learned
from .mixers.rotation import Around, Lent, Rotation, SourceStream
from .operator import Operator, Program

if TYPE_CHECKING:
    from .streams import StreamsProgram


class Decoder:
    """A model's weights (allocated when built) and its forward pass. Its names are those of the public code."""

    __slots__ = (
        "before",
        "built",
        "by",
        "context",
        "embedding_norm",
        "enter",
        "final",
        "front",
        "head",
        "inputs",
        "late",
        "layers",
        "learned",
        "looks_back",
        "loops",
        "positions",
        "reader",
        "reads",
        "streams",
        "table",
        "tape",
    )

    def __init__(
        self, context: Context, layers: Sequence[int], table: Parameter | None = None, read: Sequence[int] | None = None
    ) -> None:
        setup, tape = context.setup, tape_of(context.setup)
        self.reads = setup.architecture.encoder and setup.architecture.source is not None
        self.context = context
        self.tape = tape
        looked = tape.look_ups[: len(tape.look_ups) - len(tape.beside)]
        weights = [weight for operator in looked for weight in operator.weights] if setup.embeds else []
        if setup.heads and tape.head.tied and not setup.embeds:
            # A last stage has a table of its own where the head is tied to it.
            weights = [tape.embedding.table]
        made = context.made(weights)
        self.table, self.positions = made.parameters.get("embedding", table), made.parameters.get("positions")
        beside = tape.beside if setup.embeds else ()
        self.inputs = self._inputs(beside)
        self.streams = self._streams(beside)
        self.by = passing_by(context, beside[(self.inputs is not None) + (self.streams is not None) :])
        sound = self.reads and len(tape.for_decoder) > 1
        self.front: Program | None = tape.for_decoder[1].program(context) if sound else None
        self.reader = self._reader(read)
        self.before = 0 if self.reader is None else len(self.reader.layers) + 1
        """Places before those of its layers: of the encoder's, and of what stands between them."""
        enter, late = made.projections.get("project_in"), setup.architecture.projects_late
        self.enter = None if late else enter
        self.late = enter if late else None
        norm = tape.embedding_norm
        self.embedding_norm = norm.program(context) if setup.embeds and norm is not None else None
        self.looks_back = setup.architecture.shared_block is not None
        self.loops = _loops(setup.architecture, layers)
        """Places of the last layers of loops that another one follows, behind which the final norm runs."""
        self.layers: list[LayerProgram] = []
        self.built: list[int] = [*(() if self.reader is None else self.reader.built), context.recorder.ledger.level]
        self._make(layers)
        self.learned = learned(context) if setup.embeds and not self.reads else []
        norm = tape.final_norm
        self.final = norm.program(context) if (setup.heads or self.loops) and norm is not None else None
        self.head = tape.head.program(context, self.table) if setup.heads and not self.reads else None
        self._add_buffers()

    def _make(self, layers: Sequence[int]) -> None:
        """Make the layers, each with its place in the walk."""
        context = self.context
        for place, index in enumerate(layers, self.before + 1):
            context.place = place
            context.enter_layer(index)
            self.layers.append(self.tape.layer(index).program(context))
            self.built.append(context.recorder.ledger.level)
        context.place, context.bare, context.lends = 0, context.recipe.bare_layers > 0, False

    def _inputs(self, beside: Sequence[Operator]) -> Program | None:
        """What makes the embeddings of each layer, where layers are built for them."""
        architecture = self.context.setup.architecture
        if architecture.per_layer_embedding is None or not beside:
            return None
        from .layer_inputs import TablesProgram

        tables = beside[0]
        assert isinstance(tables, LayerTables)
        return TablesProgram(self.context, tables)

    def _streams(self, beside: Sequence[Operator]) -> StreamsProgram | None:
        """What makes parallel streams of the embedding, and one of them again, where their weights are."""
        if self.context.setup.architecture.altup is None or not beside:
            return None
        from .streams import StreamsProgram

        return StreamsProgram(self.context, next(each for each in beside if isinstance(each, StreamProjections)))

    def _reader(self, layers: Sequence[int] | None) -> Decoder | None:
        """The encoder that runs before the layers of a training step; a prompt's pass has it behind it."""
        context, source = self.context, self.context.setup.architecture.source
        setup = context.setup.reading
        if setup is None or source is None or context.cache is not None:
            return None
        from .mixers.cross_attention import source_sizes

        grain = tape_of(setup).whole_tokens or 1
        inner = context.sized(source_sizes(context.sizes, -(-source.tokens // grain) * grain))
        inner.setup = setup
        return Decoder(inner, setup.span if layers is None else layers, self.table)

    def judged(self, ids: Tensor) -> None:
        """Have the model as it was, where one is asked, see the same tokens without a gradient; else do nothing.

        Its weights count apart; no copy of a frozen weight is shared.
        """
        context, recorder = self.context, self.context.recorder
        if not context.recipe.reference:
            return
        shared = [weight for weight in context.weights if weight.shared]
        for weight in shared:
            weight.shared = False
        recorder.recording, context.adapts = False, False
        recorder.enter_autocast()
        self.loss(ids)
        recorder.leave_autocast()
        recorder.recording, context.adapts = True, True
        for weight in shared:
            weight.shared = True

    def loss(self, ids: Tensor) -> Tensor:
        """Body, head and loss, whose results are named until the loss exists; a stage without head gives its stream."""
        hidden = self.body(ids)
        return hidden if self.head is None else self.head(hidden)

    def _add_buffers(self) -> None:
        """What the model keeps beside its weights."""
        context, traits = self.context, self.context.traits
        rows = self.tape.positions.rows if self.tape.positions is not None else 0
        sizes = [(rows**2, 1)] if traits.mask_buffer and rows else []
        sizes += [(1, 4)] if traits.scales_embedding == "table" else []
        # Inverse frequencies, and the copy of them that dynamic scaling starts from.
        turning = self.tape.most(lambda operator: operator.rotary_width)
        sizes += [(turning // 2, 4)] * (2 * traits.rotary_tables) if turning else []
        context.buffers += [context.recorder.new(n, width) for n, width in sizes]

    def _add_input_buffers(self) -> None:
        """Where inputs of checkpointed blocks come back from the host: one is read while the next one arrives."""
        context, recipe = self.context, self.context.recipe
        if (
            context.recorder.recording
            and context.traits.streams_inputs
            and recipe.checkpointing in ("full", "selective")
        ):
            context.buffers.append(context.recorder.new(2 * context.stream, recipe.weight_bytes))

    def _embedded(self, ids: Tensor) -> Tensor:
        """The token embedding, or what the stage before sends."""
        context, recorder, recipe = self.context, self.context.recorder, self.context.recipe
        if self.front is not None:
            return self.front()  # type: ignore[no-any-return]
        if self.table is None or not context.setup.embeds:
            altup = context.setup.architecture.altup
            return self._received(self.tape.embedding.hidden * (altup.streams if altup is not None else 1))
        embedded = self.by(embedding(recorder, self.table, ids))
        scales = context.traits.scales_embedding
        if scales == "table":
            embedded = scaled(recorder, embedded)
        if self.learned and context.adapts:
            embedded = behind(context, self.learned, embedded)
        elif recorder.recording and recipe.lifts_input:
            # Checkpointed blocks of a frozen base need an input with a gradient.
            embedded.node = context.input_leaf(embedded)
        return scaled(recorder, embedded) if scales == "model" else embedded

    def _received(self, width: int) -> Tensor:
        """What the stage before sends of each token."""
        context = self.context
        received = context.recorder.new(context.sizes.bs * width, context.recipe.weight_bytes)
        received.node = context.input_leaf(received) if context.recorder.recording else None
        return received

    def _layer_inputs(self, ids: Tensor, embedded: Tensor) -> Tensor | None:
        """The embeddings of each layer, which a later stage gets with the stream, those of all layers."""
        if self.inputs is not None:
            return self.inputs(ids, embedded)  # type: ignore[no-any-return]
        setup = self.context.setup
        each = setup.architecture.per_layer_embedding
        if each is None or setup.embeds:
            return None
        return self._received(each.width * setup.architecture.layers)

    def body(self, ids: Tensor) -> Tensor:
        """Run everything below the head."""
        context, recorder, sizes = self.context, self.context.recorder, self.context.sizes
        self._add_input_buffers()
        source = self._source(ids)
        embedded = self._embedded(ids)
        places = recorder.new(sizes.bs if context.traits.positions_per_sequence else sizes.s, 8)
        hidden = embedded
        if self.positions is not None:
            placed = self._placed(self.positions, places)
            if self.enter is not None:
                embedded = context.apply(self.enter, embedded)
            hidden = add(recorder, embedded, placed)
        elif self.enter is not None:
            hidden = embedded = context.apply(self.enter, embedded)
        if self.embedding_norm is not None:
            hidden = self.embedding_norm(recorder, hidden)
        if self.late is not None:
            hidden = context.apply(self.late, hidden)
        hidden = respread(recorder, hidden, context.stream) if context.ranks > 1 else hidden
        inputs = self._layer_inputs(ids, embedded)
        if self.streams is not None:
            hidden = self.streams.enter(hidden)
        masks = self._masks(embedded.width)
        bias = self._position_bias(hidden.width)
        hidden = dropout(recorder, hidden, context.recipe.drop_embedding)
        rotations, lent = self._rotations(embedded.width), Lent()
        passed = places if context.traits.passes_places else None
        kept = copied(recorder, hidden) if self.looks_back else None
        for place, layer in enumerate(self.layers, 1):
            self._enters(place)
            turn = rotations[layer.windowed] if rotations else None
            around = Around(masks[layer.windowed], turn, bias, passed, kept, source, inputs, lent)
            hidden = self._layer(layer, hidden, around)
            if place in self.loops and self.final is not None:
                hidden = self.final(recorder, hidden)
            if place > 1:
                self.layers[place - 2].scores = None
        self._enters(len(self.layers) + 1)
        return self._left(hidden)

    def _left(self, hidden: Tensor) -> Tensor:
        """The stream through what is behind the last layer, which forgets what layers named for each other."""
        for layer in self.layers:
            layer.scores = None
        if self.streams is not None and self.context.setup.heads:
            hidden = self.streams.leave(hidden)
        if self.final is not None and self.context.setup.heads:
            hidden = self.final(self.context.recorder, hidden)
            if self.context.traits.residual_fp32:
                hidden = cast(self.context.recorder, hidden, self.context.recipe.weight_bytes)
        leave = self.head.leave if self.head is not None else None
        return hidden if leave is None else self.context.apply(leave, hidden)

    def _enters(self, place: int) -> None:
        if self.context.recorder.recording:
            self.context.recorder.ledger.enter(self.before + place)

    def _source(self, ids: Tensor) -> SourceStream | None:
        """What the encoder makes of its text (as long as `ids`, or of the length that it has), or made before."""
        context, source = self.context, self.context.setup.architecture.source
        if source is None or self.reads:
            return None
        recorder, tokens, cut = context.recorder, source.tokens, False
        from .mixers.cross_attention import source_sizes

        if self.reader is not None:
            inner = self.reader.context
            stream = self.reader.body(recorder.new(inner.sizes.bs, 8))
            read = source_sizes(context.sizes, tokens).bs * (source.hidden or self.tape.embedding.hidden)
            cut = read != stream.n
            stream = sliced(recorder, stream, read) if cut else stream
        else:
            bs = context.sizes.b * tokens if tokens else context.sizes.bs
            stream = recorder.new(bs * (source.hidden or self.tape.embedding.hidden), context.recipe.weight_bytes)
            stream.node = context.input_leaf(stream) if recorder.recording else None
        bias: Tensor | None = None
        if context.setup.architecture.positions == "distances":
            # Zeros, which code adds where there is no table.
            pairs = context.sizes.s * tokens if tokens else context.sizes.ss
            bias = recorder.new(self.tape.most(lambda operator: operator.biased_heads) * pairs, stream.width)
        return SourceStream(stream, Around(None, None, bias, None), cut)

    def _position_bias(self, width: int) -> Tensor | None:
        """ALiBi: a slope a head times the distance, written out for all sequences or once in fp32."""
        context, heads = self.context, self.tape.most(lambda operator: operator.biased_heads)
        if not heads:
            return None
        if context.setup.architecture.positions == "distances":
            return context.recorder.new(heads * context.sizes.ss, width)
        if "bias" in context.traits.scores:
            return context.recorder.new(heads * context.sizes.s, 4)
        return context.recorder.new(heads * context.sizes.bs, width)

    def _placed(self, table: Parameter, places: Tensor) -> Tensor:
        if self.context.traits.positions_per_sequence:
            # The table's first rows are for padding: places are shifted.
            places = self.context.recorder.new(places.n, 8)
        return embedding(self.context.recorder, table, places)

    def _masks(self, width: int) -> tuple[Tensor | None, Tensor | None]:
        """The masks of whole and of windowed layers: numbers for eager code, truth values for a fused kernel."""
        recorder, sizes = self.context.recorder, self.context.sizes
        traits, recipe = self.context.traits, self.context.recipe
        if self.reads and not traits.masks_source:
            # Texts of one length need none.
            return None, None
        kinds = {layer.windowed for layer in self.layers}
        if "fill" in traits.scores:
            mask = recorder.new(sizes.bss, 1)
            return mask, mask
        if "choose" in traits.scores:
            mask = recorder.new(sizes.bss, width)
            return mask, mask
        if recipe.eager and traits.compiled:
            return None, None
        if recipe.eager:
            whole, windowed = (recorder.new(sizes.bss, width) if kind in kinds else None for kind in (False, True))
            return whole, windowed
        always = traits.always_masks or self.context.learns_keys
        if not (recipe.windowed or always):
            return None, None
        truth = recorder.new(sizes.ss, 1)
        mask = view(truth.storage, sizes.bss, 1)
        return mask if always else None, mask

    def _rotations(self, width: int) -> tuple[Rotation, Rotation] | None:
        """The tables of whole and of windowed layers."""
        recorder, traits = self.context.recorder, self.context.traits
        n = self.context.sizes.s * self.tape.most(lambda operator: operator.rotary_width)
        if not n:
            return None
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

    def _layer(self, layer: LayerProgram, x: Tensor, around: Around) -> Tensor:
        if self.context.recorder.recording and self.context.recipe.checkpointing in ("full", "selective"):
            recorder, streams = self.context.recorder, self.context.traits.streams_inputs
            if streams or recorder.offloads:
                # The stream itself lives as long as it has a name.
                x = view(x.storage.copied(HOST), x.n, x.width, x.node)
            if self.context.recipe.holds_inputs:
                x = hooked(recorder, x)
            return recorder.checkpoint(Replay(layer, x, around, None if streams else recorder))
        return layer(x, around)


def _loops(architecture: Architecture, layers: Sequence[int]) -> frozenset[int]:
    if not architecture.loop_norm:
        return frozenset()
    held = architecture.own_layers
    ends = (place for place, index in enumerate(layers, 1) if (index + 1) % held == 0)
    return frozenset(place for place in ends if layers[place - 1] + 1 < architecture.layers)


@dataclass(frozen=True, slots=True)
class Replay:
    """A layer call with its arguments, to run again in backward."""

    layer: LayerProgram
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
