"""Worked examples of which steps make items, and of the state that goes with them."""

import numpy as np
import pytest
from step_blocks import STATE, state_of

from tengen.errors import UsageError
from tengen.experience import ItemLayout
from tengen.store import Column
from tengen.tensors import TensorSpec
from tests.refusals import refused


def ends(layout, first_step, before, block):
    """Which of a block's steps end an item, of flags of resets as 0 and 1."""
    is_reset = np.array(before + block, np.bool_)
    found = layout.ends(first_step, is_reset)
    assert found.dtype == np.bool_
    return found.astype(int).tolist()


def test_items_of_several_steps_end_every_period():
    layout = ItemLayout(num_steps=5, period=2)
    # Steps 0 to 5: the first item is 0 to 4.
    assert ends(layout, 0, [0] * 4, [0] * 6) == [0, 0, 0, 0, 1, 0]
    # Steps 6 to 9: items 2 to 6 and 4 to 8. Resets are steps of sequences like others.
    assert ends(layout, 6, [0, 0, 1, 0], [0, 1, 0, 0]) == [1, 0, 1, 0]


def test_items_that_share_nothing():
    layout = ItemLayout(num_steps=3, period=3)
    assert ends(layout, 0, [0] * 2, [0] * 3) == [0, 0, 1]
    assert ends(layout, 3, [0] * 2, [0] * 3) == [0, 0, 1]


def test_a_closed_block_is_an_item_whatever_came_before_it():
    layout = ItemLayout(num_steps=4, period=3, is_closed=True)
    for first_step in (0, 4, 8):
        assert ends(layout, first_step, [1] * 3, [0, 1, 0, 0]) == [0, 0, 0, 1]
    one = ItemLayout(num_steps=2, period=1, is_closed=True)
    assert ends(one, 2, [1], [1, 0]) == [0, 1]


def test_no_item_of_period_one_begins_with_a_reset():
    # A transition and what follows: items of two steps.
    layout = ItemLayout(num_steps=2, period=1)
    assert ends(layout, 0, [0], [0, 0, 1, 0, 0]) == [0, 1, 1, 0, 1]
    # The step before the block was a reset: it begins no item with the block's first.
    assert ends(layout, 5, [1], [0, 0, 1]) == [0, 1, 1]
    # Three steps on from a reset the item that begins with it would end.
    assert ends(ItemLayout(num_steps=4, period=1), 3, [0, 1, 0], [0, 0]) == [1, 0]


def test_blocks_are_of_one_period_where_a_state_is_known_at_their_beginning():
    state = {"hidden": TensorSpec(shape=(2,))}
    assert ItemLayout(num_steps=3, period=1).block_steps(40) == 40
    assert ItemLayout(num_steps=9, period=4).block_steps(40) == 4
    assert ItemLayout(num_steps=9, period=4, state=state).block_steps(40) == 4
    # An unroll of one step and the step that closes it.
    assert ItemLayout(num_steps=2, period=1, is_closed=True).block_steps(40) == 1
    # Else the items that begin within the block had no state.
    assert ItemLayout(num_steps=3, period=1, state=state).block_steps(40) == 1


@pytest.mark.parametrize(
    ("num_steps", "period", "is_closed"),
    [(4, 4, False), (7, 3, False), (3, 1, False), (5, 2, False), (5, 4, True)],
)
def test_states_come_back_in_one_piece(num_steps, period, is_closed):
    specs = {**STATE, "number": TensorSpec(dtype="float64")}
    layout = ItemLayout(
        num_steps=num_steps, period=period, is_closed=is_closed, state=specs
    )
    numbers = np.arange(6) * 1000
    state = state_of(specs, numbers)
    pieces = layout.cut(state, len(numbers), period + is_closed)
    declared = layout.state_columns()
    for name, piece in pieces.items():
        column = declared[name]
        assert (piece.dtype, piece.shape[2:]) == (column.dtype, column.shape)
        assert piece.shape[:2] == (6, period + is_closed)
    # The item's other steps hold pieces of the blocks after it.
    rng = np.random.default_rng(1)
    items = {"reward": np.zeros((6, num_steps))}
    for name, piece in pieces.items():
        rest = rng.integers(1, 99, (6, num_steps - piece.shape[1], piece.shape[2]))
        items[name] = np.concatenate([piece, rest.astype(piece.dtype)], axis=1)
    joined = layout.join(items)
    assert joined.keys() == items.keys()
    for name, array in state.items():
        assert joined[f"state/{name}"].dtype == array.dtype
        np.testing.assert_array_equal(joined[f"state/{name}"], array)


def test_a_state_of_128_takes_7_entries_of_each_of_20_steps():
    layout = ItemLayout(
        num_steps=21, period=20, is_closed=True, state={"h": TensorSpec(shape=(128,))}
    )
    assert layout.state_columns() == {"state/h": Column(dtype="float32", shape=(7,))}


def test_layouts_that_cannot_be_are_refused():
    for period in (0, 4):
        with refused(UsageError, f"period ({period})"):
            ItemLayout(num_steps=3, period=period)
    with refused(UsageError, "num_steps (1)"):
        ItemLayout(num_steps=1, period=1)
    with refused(UsageError, "num_steps (5)"):
        ItemLayout(num_steps=5, period=3, is_closed=True)
