import numpy as np
import pytest
import torch

from tengen import _core, games
from tengen.inference import RowLayout
from tengen.inference.rows import unpack_rows


def there_and_back(layout, planes):
    rows = np.full((len(planes), layout.num_bytes), 0xA5, np.uint8)
    native = _core.RowLayout(layout.planes_shape, layout.is_packed)
    assert native.num_bytes == layout.num_bytes
    _core.write_rows(native, planes, rows)
    back = np.full(planes.shape, 77, np.float32)
    _core.read_rows(native, rows, back)
    np.testing.assert_array_equal(back, planes)
    return unpack_rows(torch.from_numpy(rows), layout).numpy()


@pytest.mark.parametrize("name", games.names())
def test_planes_of_native_games_come_back_bit_for_bit(name):
    rules = games.make(name)
    planes = games.random_positions(rules, 40, seed=3)
    layout = RowLayout((rules.num_planes, rules.height, rules.width))
    assert layout.num_bytes < planes[0].nbytes
    found = there_and_back(layout, planes)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, planes)


def test_a_plane_may_hold_one_number_of_any_size():
    planes = np.zeros((3, 4, 3, 5), np.float32)
    planes[:, 0] = 1.0
    planes[0, 1] = 7.5  # a constant, such as komi
    planes[1, 1] = -6.5
    planes[2, 2, 1, 4] = 1.0
    planes[2, 3, 2, 4] = 0.25
    np.testing.assert_array_equal(there_and_back(RowLayout((4, 3, 5)), planes), planes)


def test_dense_rows_hold_any_numbers():
    planes = np.random.default_rng(0).normal(size=(4, 2, 3, 3)).astype(np.float32)
    layout = RowLayout((2, 3, 3), is_packed=False)
    np.testing.assert_array_equal(there_and_back(layout, planes), planes)


def test_rows_that_do_not_fit_are_refused():
    layout = _core.RowLayout((2, 3, 3), True)
    planes = np.zeros((2, 2, 3, 3), np.float32)
    with pytest.raises(ValueError, match="must fit the planes"):
        _core.write_rows(layout, planes, np.zeros((2, layout.num_bytes + 4), np.uint8))
    with pytest.raises(ValueError, match="must fit the planes"):
        _core.write_rows(layout, planes, np.zeros((1, layout.num_bytes), np.uint8))
    with pytest.raises(ValueError, match="must fit the planes"):
        _core.read_rows(layout, np.zeros((1, layout.num_bytes), np.uint8), planes)
