"""Inference with OpenVINO on CPUs: one compiled model, one stream per driver thread.

The settings are based on measurements in docs/explanation/performance_inference.md. One
model with as many streams as driver threads uses all cores; several models do not. The
shapes stay dynamic, because a model compiled for one shape outputs different bits.
"""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tengen.distribution import pip_install
from tengen.errors import RunError, UsageError
from tengen.inference.architecture import answered, read_architecture
from tengen.inference.backend import NO_STATE, Arrays, FloatArray, check_arrays
from tengen.inference.config import BatchShape, Precision
from tengen.tensors import Signature

__all__ = [
    "INT8_FILE",
    "INT8_RULE",
    "ONNX_FILE",
    "OpenVinoBackend",
    "compile_graph",
    "float_precision",
    "has_int8_graph",
    "is_installed",
    "read_graph",
    "require_precision",
    "run_graph",
    "supported_precisions",
]

ONNX_FILE = "model.onnx"
"""The file name of a model's graph; models of runs that use torch have none."""

INT8_FILE = "model_int8.onnx"
"""The file name of the int8 graph; a model whose int8 errors are too large has none."""

INT8_RULE = "tengen.int8.pairs"
"""Metadata key of graphs with weights scaled as in ``tengen.models.int8_graph``."""

# The key with which a tensor refers to another file. A graph without it has no external
# tensors.
_LOCATION = b"location"
# Number of batch sizes of one runner; see OpenVinoRunner.
_NUM_SIZES = 4
_HINTS: dict[Precision, str] = {"fp32": "f32", "bf16": "bf16"}
# OpenVINO's names of the precisions that a CPU may support.
_CAPABILITIES: dict[Precision, str] = {"fp32": "FP32", "bf16": "BF16", "int8": "INT8"}
# Rows that run_graph evaluates at a time.
_CHUNK_ROWS = 64
# References to source files in OpenVINO's errors, which are removed.
_SOURCES = re.compile(
    r"Check '.*' failed at \S+:\d+:\s*|Exception from \S+:\d+:\s*|"
    r"FrontEnd API failed with \w+:\s*"
)


@functools.cache
def _core() -> Any:
    """Returns a cached OpenVINO core, whose creation takes tens of milliseconds."""
    try:
        import openvino
    except ImportError as error:
        raise UsageError(
            f"inference.backend (openvino) is not installed: {error}; "
            f"{pip_install('openvino')}, or set inference.backend=torch"
        ) from None
    return openvino.Core()


def is_installed() -> bool:
    """Returns whether the openvino package can be imported."""
    try:
        _core()
    except UsageError:
        return False
    return True


def supported_precisions() -> tuple[Precision, ...]:
    """Returns the precisions that this CPU computes natively, fp32 first.

    Raises:
        UsageError: OpenVINO is not installed.
    """
    native = _core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    return tuple(name for name, word in _CAPABILITIES.items() if word in native)


def require_precision(precision: Precision) -> None:
    """Checks that this CPU computes a precision natively.

    Raises:
        UsageError: The CPU does not, or OpenVINO is not installed.
    """
    if precision not in supported_precisions():
        raise UsageError(
            f"inference.precision ({precision}) is not computed natively by this CPU; "
            f"set inference.precision=fp32"
        )


def float_precision() -> Precision:
    """Returns the precision of an int8 model's floating-point parts.

    A model without an int8 graph is evaluated in this precision too.

    Raises:
        UsageError: OpenVINO is not installed.
    """
    return "bf16" if "bf16" in supported_precisions() else "fp32"


def has_int8_graph(directory: Path) -> bool:
    """Returns whether a model has an int8 graph with equal outputs on all processors.

    Graphs of earlier versions lack ``INT8_RULE`` and count as absent, because
    processors without VNNI compute some of them wrongly.
    """
    try:
        return INT8_RULE.encode() in (directory / INT8_FILE).read_bytes()
    except OSError:
        return False


def run_graph(graph: bytes, planes: FloatArray) -> dict[str, FloatArray]:
    """Evaluates a float graph in float32 with one thread. Blocks.

    Args:
        graph: A serialised ONNX graph with the input ``planes``.
        planes: ``[M, C, H, W]`` float32.

    Returns:
        All outputs ``[M, ...]`` float32, by name.

    Raises:
        UsageError: OpenVINO is not installed.
    """
    core = _core()
    settings = _settings("fp32", 1)
    model = core.compile_model(core.read_model(graph), "CPU", settings)
    chunks: dict[str, list[FloatArray]] = {}
    for start in range(0, len(planes), _CHUNK_ROWS):
        answers = model({"planes": planes[start : start + _CHUNK_ROWS]})
        for output in model.outputs:
            # If two outputs are the same tensor, it is listed once, with both names.
            for name in output.names:
                chunks.setdefault(name, []).append(answers[output].copy())
    return {name: np.concatenate(parts) for name, parts in chunks.items()}


def read_graph(path: Path) -> Any:
    """Returns the float graph in an ONNX file.

    Reads the file as ONNX, whatever its name. If OpenVINO guessed the format, its other
    readers would write to stderr.

    Raises:
        UsageError: OpenVINO is not installed, or the graph's weights are in other
            files.
        RuntimeError: OpenVINO refuses the file.
    """
    _core()
    _check_is_whole(path)
    from openvino import frontend

    reader = frontend.FrontEndManager().load_by_framework("onnx")
    try:
        return reader.convert(reader.load(str(path)))
    # The reader's errors have no specific base class.
    except Exception as error:
        raise RuntimeError(_SOURCES.sub("", str(error))) from error


def compile_graph(graph: Any, num_threads: int) -> tuple[Any, str]:
    """Compiles a float graph in float32; returns it and the library's build.

    Args:
        graph: A graph returned by ``read_graph``.
        num_threads: Number of threads that will evaluate concurrently.

    Raises:
        RuntimeError: OpenVINO refuses the graph.
    """
    core = _core()
    compiled = core.compile_model(graph, "CPU", _settings("fp32", num_threads))
    return compiled, str(core.get_versions("CPU")["CPU"].build_number)


def _streams_own_cores(num_threads: int) -> bool:
    """Returns whether each stream should be pinned to its own core.

    With one stream per core of the process, pinned streams do not collide, and the
    scheduler cannot halve a small network's speed by packing short tasks onto one core.
    With fewer streams, every process would pin its streams to the same first cores.
    """
    if sys.platform != "linux":
        return False
    return num_threads == len(os.sched_getaffinity(0)) > 1


def _settings(precision: Precision, num_threads: int) -> dict[str, Any]:
    """Returns settings to compile a float graph, or an int8 graph's float parts."""
    return {
        "NUM_STREAMS": num_threads,
        "INFERENCE_NUM_THREADS": num_threads,
        "ENABLE_CPU_PINNING": _streams_own_cores(num_threads),
        "INFERENCE_PRECISION_HINT": _HINTS[precision],
    }


class OpenVinoBackend:
    """A ``Backend`` for the graphs of a model directory.

    Attributes:
        name: ``openvino``.
        version: The library's build.
        precision: Precision of the trunk; if int8 was requested and the model has no
            int8 graph, the floating-point precision that is used instead.
        batch_shape: ``dynamic``.
        signature: Inputs and outputs.
    """

    name = "openvino"
    batch_shape: BatchShape = "dynamic"

    def __init__(
        self,
        directory: Path,
        *,
        precision: Precision,
        num_threads: int,
        outputs: Sequence[str] | None = None,
    ) -> None:
        """Compiles the model, which takes 0.1 to 0.3 s.

        Args:
            directory: A model directory.
            precision: Precision of the trunk; see ``has_int8_graph``.
            num_threads: Number of threads that will call runners concurrently.
            outputs: As for ``tengen.inference.open_backend``.

        Raises:
            UsageError: OpenVINO is not installed, the CPU does not support the
                precision, or the model has no graph or one that refers to other files.
            RunError: OpenVINO refuses the model.
        """
        require_precision(precision)
        if precision == "int8" and not has_int8_graph(directory):
            precision = float_precision()
        core = _core()
        signature = read_architecture(directory).signature
        path = directory / (INT8_FILE if precision == "int8" else ONNX_FILE)
        if not path.exists():
            raise UsageError(
                f"model ({directory}) has no {ONNX_FILE}, which the openvino backend "
                f"reads; set inference.backend=torch"
            )
        _check_is_whole(path)
        floats = float_precision() if precision == "int8" else precision
        settings = _settings(floats, num_threads)
        try:
            graph = core.read_model(str(path))
            self.signature = _prepared(graph, signature, outputs)
            self._model = core.compile_model(graph, "CPU", settings)
        # UnicodeDecodeError is raised if a name in the file is not valid UTF-8.
        except (RuntimeError, UnicodeDecodeError) as error:
            reason = " ".join(str(error).split())
            raise RunError(
                f"model ({path}) is refused by OpenVINO: {reason}; "
                f"export it again or set inference.backend=torch"
            ) from error
        self.version = str(core.get_versions("CPU")["CPU"].build_number)
        self.precision = precision

    def bind(
        self, inputs: Arrays, outputs: Arrays, state: Arrays = NO_STATE
    ) -> OpenVinoRunner:
        """Returns a runner over the given arrays; see ``Backend.bind``."""
        check_arrays(self.signature, inputs, outputs, state)
        num_rows = len(next(iter(inputs.values())))
        return OpenVinoRunner(self._model, {**inputs, **outputs}, num_rows)


def _prepared(
    graph: Any, signature: Signature, outputs: Sequence[str] | None
) -> Signature:
    """Removes outputs that are not requested; returns the remaining signature."""
    if len(graph.inputs) == len(signature.inputs) == 1:
        # Up to schema 2 the input of a vector network was named "planes".
        graph.input(0).get_tensor().set_names(set(signature.inputs))
    known = {name for output in graph.outputs for name in output.names}
    # Graphs of earlier versions lack the score, even if the network estimates it.
    there = answered(signature, [name for name in signature.outputs if name in known])
    wanted = answered(there, outputs)
    for name in there.outputs.keys() - wanted.outputs.keys():
        # Removed outputs are not computed, and the other outputs keep their bits.
        graph.remove_result(graph.output(name).get_node())
    return wanted


class OpenVinoRunner:
    """A ``Runner`` whose requests use the arrays as their tensors.

    Requests are bound once, because setting tensors or passing arrays would cost 6 to
    50 us of Python per call. A change of the batch size costs as much as 1 row (network
    6x96) to 10 rows (2x32), so sizes are rounded up to quarters of the arrays; the
    additional rows are computed and ignored.
    """

    def __init__(self, model: Any, arrays: Arrays, capacity: int) -> None:
        """Binds arrays by the names of the graph's inputs and outputs.

        Args:
            model: The compiled model.
            arrays: Arrays of shape ``[capacity, ...]``.
            capacity: Number of rows in the arrays.
        """
        # Keeps the arrays alive, which tensors over shared memory do not.
        self._arrays = arrays
        step = max(1, capacity // _NUM_SIZES)
        self._requests: list[Any] = [None]
        while len(self._requests) <= capacity:
            num_rows = min(capacity, len(self._requests) - 1 + step)
            request = self._bind_rows(model, num_rows)
            missing = num_rows + 1 - len(self._requests)
            self._requests += [request] * missing

    def run(self, num_rows: int) -> None:
        """Evaluates the first rows; see ``Runner.run``."""
        self._requests[num_rows].infer(share_outputs=True)

    def _bind_rows(self, model: Any, num_rows: int) -> Any:
        from openvino import Tensor

        request = model.create_infer_request()
        for name, array in self._arrays.items():
            request.set_tensor(name, Tensor(array[:num_rows], shared_memory=True))
        return request


def _check_is_whole(path: Path) -> None:
    """Checks that an ONNX file does not refer to other files.

    A tensor could refer to any file of this machine, and a reader would open the file.

    Raises:
        UsageError: A tensor is in another file.
    """
    # Unreadable or invalid files pass, because the reader reports their errors.
    try:
        data = path.read_bytes()
    except OSError:
        return
    if _LOCATION not in data:
        return
    import onnx

    try:
        model = onnx.load_model_from_string(data)
    except Exception:
        return
    for tensor in _tensors(model):
        if tensor.data_location == onnx.TensorProto.EXTERNAL or tensor.external_data:
            raise UsageError(
                f"graph ({path}) must hold its tensors itself, and "
                f"{tensor.name!r} is in another file; save it again as one file"
            )


def _tensors(message: Any) -> Iterator[Any]:
    """Yields every tensor in a message, at any depth."""
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        is_one = hasattr(value, "ListFields")
        for part in (value,) if is_one else value:
            if field.message_type.name == "TensorProto":
                yield part
            else:
                yield from _tensors(part)
