import importlib.util

import pytest

from tengen.errors import UsageError
from tengen.observe import Progress
from tengen.observe.tensorboard import TensorBoardWriter


def test_absent_tensorboard_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match="pip install 'tengen"):
        TensorBoardWriter(tmp_path)


@pytest.mark.skipif(
    importlib.util.find_spec("tensorboard") is None, reason="tensorboard is absent"
)
def test_scalars_are_written(tmp_path):
    writer = TensorBoardWriter(tmp_path)
    writer.write(Progress(generation=1, elapsed_s=2.0, loss=0.5))
    writer.close()
    assert any(path.stat().st_size > 0 for path in tmp_path.iterdir())
