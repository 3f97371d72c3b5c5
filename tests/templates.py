"""Templates of networks that the tests of one session share.

Tracing a network takes a process two seconds of CPU, as torch imports its compiler for
it. The first run or test that needs a template traces it.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

from tengen.models import export
from tengen.models.export import OnnxTemplate
from tengen.nets import NetConfig
from tengen.tensors import Signature

_VARIABLE = "TENGEN_TEST_TEMPLATES"

# The processes of pytest-xdist are started by one that has made the folder.
if _VARIABLE not in os.environ:
    os.environ[_VARIABLE] = tempfile.mkdtemp(prefix="tengen-templates-")
    atexit.register(shutil.rmtree, os.environ[_VARIABLE], ignore_errors=True)
FOLDER = Path(os.environ[_VARIABLE])
_trace = export._traced


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


def traced_once(signature: Signature, config: NetConfig) -> OnnxTemplate:
    """Returns a template, traced if no test of this session needed it before."""
    path = FOLDER / f"{export.architecture_hash(signature, config)}.onnx"
    if not path.exists():
        _write(path.name, _trace(signature, config).data)
    return OnnxTemplate(path.read_bytes())


def _write(name: str, data: bytes) -> None:
    with tempfile.NamedTemporaryFile(dir=FOLDER, delete=False) as file:
        file.write(data)
    os.replace(file.name, FOLDER / name)
