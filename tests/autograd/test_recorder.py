"""The rules of autograd that memory follows from, one by one on tiny graphs."""

from __future__ import annotations

from llmfeas.autograd.basic import add, dropout, mul, scaled, unary_of_output
from llmfeas.autograd.graph import Node, Parameter, Tensor
from llmfeas.autograd.products import linear
from llmfeas.autograd.recorder import Recorder
from llmfeas.autograd.storage import ACTIVATIONS, COMPONENT_BITS, GRADIENTS, HOST, WEIGHTS, numeric_sizes, packed_fields

WIDTH = 512
"""Elements of 4 bytes: four blocks a tensor."""
BYTES = 4 * WIDTH


def recorder(*, autocast: bool = False) -> Recorder:
    return Recorder(numeric_sizes(1, 1), autocast=autocast)


def weight(on: Recorder, *, trains: bool = True) -> Parameter:
    return on.parameter((WIDTH, WIDTH), width=4, trains=trains)


def made(on: Recorder, x: Tensor, w: Parameter) -> Tensor:
    return scaled(on, linear(on, x, w))


def alive(on: Recorder) -> int:
    return packed_fields(on.ledger.level, ACTIVATIONS)[0]


def test_a_product_keeps_its_input_only_for_a_weight_that_trains() -> None:
    for trains, kept in ((True, BYTES), (False, 0)):
        on = recorder()
        w, head = weight(on, trains=trains), weight(on)
        out = made(on, made(on, on.new(WIDTH, 4), w), head)
        assert alive(on) - BYTES - BYTES == kept  # the result and the head's input beside it
        del out


def test_an_input_without_gradient_costs_nothing() -> None:
    on = recorder()
    out = made(on, on.new(WIDTH, 4), weight(on, trains=False))
    assert out.node is None
    assert alive(on) == BYTES


def test_dropout_without_effect_is_its_input_and_with_effect_keeps_a_byte_an_element() -> None:
    on = recorder()
    x = linear(on, on.new(WIDTH, 4), weight(on))
    before = alive(on)
    assert dropout(on, x, False) is x
    y = dropout(on, x, True)
    assert alive(on) - before == BYTES + WIDTH
    del y


def test_a_residual_stream_adds_its_gradients_in_place_and_two_products_do_not() -> None:
    def highest(meet_at_products: bool) -> int:
        on = recorder()
        narrow = on.parameter((WIDTH, 1), width=4, trains=True)
        x = unary_of_output(on, linear(on, on.new(1, 4), narrow))
        weights = [weight(on, trains=False) for _ in range(2)]
        if meet_at_products:
            out = add(on, linear(on, x, weights[0]), linear(on, x, weights[1]))
        else:
            out = add(on, scaled(on, x), scaled(on, x))
        del x
        on.ledger.marks.clear()
        on.backward(out)
        return max(
            sum(packed_fields(level, part)[0] for part in range(GRADIENTS, HOST, COMPONENT_BITS))
            for level, _, _ in on.ledger.marks
        )

    assert highest(True) - highest(False) >= BYTES


def test_gradients_of_weights_stay_and_everything_else_goes() -> None:
    on = recorder()
    x = on.new(WIDTH, 4)
    weights = [weight(on), weight(on)]
    out = made(on, made(on, x, weights[0]), weights[1])
    on.backward(out)
    del out, x
    assert alive(on) == 0
    assert packed_fields(on.ledger.level, GRADIENTS)[0] == packed_fields(on.ledger.level, WEIGHTS)[0]


def test_a_replay_stops_when_the_last_kept_tensor_exists() -> None:
    on = recorder()
    first, last = weight(on), weight(on)
    runs: list[str] = []
    x = unary_of_output(on, linear(on, on.new(WIDTH, 4), weight(on)))

    def block() -> Tensor:
        hidden = unary_of_output(on, linear(on, x, first))
        runs.append("entered")
        hidden = linear(on, hidden, last)
        runs.append("left")
        return hidden

    out = on.checkpoint(block)
    on.backward(out)
    assert runs == ["entered", "left", "entered"]


def test_autocast_shares_one_copy_of_a_weight_until_its_region_ends() -> None:
    on = recorder(autocast=True)
    w, x = weight(on, trains=True), on.new(WIDTH, 2)
    on.enter_autocast()
    first, second = linear(on, x, w), linear(on, x, w)
    assert w.copied is not None
    assert first.width == second.width == 2
    on.leave_autocast()
    assert w.copied is None
    del first, second


def test_a_product_of_two_tensors_keeps_each_for_the_other() -> None:
    on = recorder()
    a = scaled(on, linear(on, on.new(WIDTH, 4), weight(on)))
    b = scaled(on, linear(on, on.new(WIDTH, 4), weight(on)))
    before = alive(on)
    out = mul(on, a, b)
    del a, b
    assert alive(on) - before == BYTES
    del out
    assert alive(on) < before


def test_gradients_that_meet_are_added_in_place_only_where_nobody_else_holds_the_first() -> None:
    for is_held in (False, True):
        on = recorder()
        node = Node()
        node.grads = [on.new(WIDTH, 4)]
        held = node.grads[0] if is_held else None
        before = alive(on)
        on._deliver(node, 0, on.new(WIDTH, 4), [])
        assert alive(on) - before == (BYTES if is_held else 0)
        del held
