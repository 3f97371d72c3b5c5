"""Templates of networks that the tests of one session share.

Tracing a network takes a process two seconds of CPU, as torch imports its compiler for
it. The first run or test that needs a network traces it.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tengen.models.export import architecture_hash
from tengen.tensors import Signature

if TYPE_CHECKING:
    import onnx

    from tengen.nets import InferenceHead

_VARIABLE = "TENGEN_TEST_TEMPLATES"

# The processes of pytest-xdist are started by one that has made the folder.
if _VARIABLE not in os.environ:
    os.environ[_VARIABLE] = tempfile.mkdtemp(prefix="tengen-templates-")
    atexit.register(shutil.rmtree, os.environ[_VARIABLE], ignore_errors=True)
FOLDER = Path(os.environ[_VARIABLE])


def lend(out: Path | None) -> None:
    """Gives a run that is to be made every template there is."""
    if out is not None and not out.exists():
        (out / "templates").mkdir(parents=True)
        for path in FOLDER.glob("*.onnx"):
            shutil.copy(path, out / "templates")


def keep(out: Path | None) -> None:
    """Takes the templates that a run has traced; leaves nothing where none was made."""
    if out is None:
        return
    for path in out.glob("templates/*.onnx"):
        if not (FOLDER / path.name).exists():
            _write(path.name, path.read_bytes())
    if [path.name for path in out.glob("*")] == ["templates"]:
        shutil.rmtree(out)


def share_traces() -> None:
    """Has the tests of this process share them; for processes that have torch."""
    import onnx

    from tengen.models import trace

    trace_anew = trace.trace

    def trace_once(head: InferenceHead, signature: Signature) -> onnx.ModelProto:
        path = FOLDER / f"{architecture_hash(signature, head.net.config)}.trace"
        if not path.exists():
            _write(path.name, trace_anew(head, signature).SerializeToString())
        return onnx.ModelProto.FromString(path.read_bytes())

    trace.trace = trace_once


def _write(name: str, data: bytes) -> None:
    with tempfile.NamedTemporaryFile(dir=FOLDER, delete=False) as file:
        file.write(data)
    os.replace(file.name, FOLDER / name)
