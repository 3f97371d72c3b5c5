"""Inference with OpenVINO on CPUs: one compiled model, one stream per driver thread.

docs/explanation/performance_inference.md has the measurements behind the settings. One
model with as many streams as driver threads uses all cores; several models do not. The
batch axis is dynamic, because a model compiled for one batch size outputs other bits.
"""

from __future__ import annotations

import functools
import importlib.util
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

ONNX_FILE = "model.onnx"
"""File name of the ONNX graph in a model directory; absent in runs that use torch."""

INT8_FILE = "model_int8.onnx"
"""File name of the int8 graph in a model directory; absent if its errors are large."""

INT8_RULE = "tengen.int8.pairs"
"""Metadata key that marks graphs quantised as in ``tengen.models.int8_graph``."""

# ONNX's key for the file of an external tensor. A file without this key has no external
# tensors.
_LOCATION = b"location"
# Number of batch sizes for which an OpenVinoRunner prepares requests.
_NUM_SIZES = 4
_HINTS: dict[Precision, str] = {"fp32": "f32", "bf16": "bf16"}
# OpenVINO's names for the precisions in its list of CPU capabilities.
_CAPABILITIES: dict[Precision, str] = {"fp32": "FP32", "bf16": "BF16", "int8": "INT8"}
# Number of rows per batch in run_graph.
_CHUNK_ROWS = 64
# Source code locations, which are removed from OpenVINO's error messages.
_SOURCES = re.compile(
    r"Check '.*' failed at \S+:\d+:\s*|Exception from \S+:\d+:\s*|"
    r"FrontEnd API failed with \w+:\s*"
)


@functools.cache
def _core() -> Any:
    """Returns the OpenVINO core, cached because creating one takes tens of ms."""
    try:
        import openvino
    except ImportError as error:
        raise UsageError(
            f"inference.backend (openvino) cannot be imported: {error}; "
            f"{pip_install('openvino')}, or set inference.backend=torch"
        ) from None
    return openvino.Core()


def is_installed() -> bool:
    """Returns whether the openvino package is installed. Does not import it."""
    found = importlib.util.find_spec("openvino")
    # A folder of this name without a package has no origin.
    return found is not None and found.origin is not None


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
        UsageError: The CPU does not support it, or OpenVINO is not installed.
    """
    if precision == "fp32" and is_installed():
        return  # every CPU computes it, so nothing needs to be imported
    if precision not in supported_precisions():
        raise UsageError(
            f"inference.precision ({precision}) is not supported natively by this CPU; "
            "set inference.precision=fp32"
        )


def float_precision() -> Precision:
    """Returns bf16 if this CPU computes it natively, else fp32.

    An int8 model computes its other parts in this precision. If int8 is requested for a
    model without an int8 graph, the complete model uses it.

    Raises:
        UsageError: OpenVINO is not installed.
    """
    return "bf16" if "bf16" in supported_precisions() else "fp32"


def has_int8_graph(directory: Path) -> bool:
    """Returns whether a model has an int8 graph with equal outputs on all CPUs.

    Graphs without ``INT8_RULE``, from earlier versions of tengen, are ignored, because
    CPUs without VNNI evaluate some of them incorrectly.
    """
    try:
        return INT8_RULE.encode() in (directory / INT8_FILE).read_bytes()
    except OSError:
        return False


def run_graph(graph: bytes, planes: FloatArray) -> dict[str, FloatArray]:
    """Evaluates an ONNX graph in float32 with one thread. Blocks.

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
            # A tensor that serves as two outputs is listed once, with both names.
            for name in output.names:
                chunks.setdefault(name, []).append(answers[output].copy())
    return {name: np.concatenate(parts) for name, parts in chunks.items()}


def read_graph(path: Path) -> Any:
    """Reads the floating-point graph in an ONNX file of any name.

    The format is not detected, because OpenVINO's readers of other formats would write
    errors to stderr.

    Raises:
        UsageError: OpenVINO is not installed, or the graph's weights are in other
            files.
        RuntimeError: OpenVINO rejects the file.
    """
    _core()
    _check_is_whole(path)
    from openvino import frontend

    reader = frontend.FrontEndManager().load_by_framework("onnx")
    try:
        return reader.convert(reader.load(str(path)))
    # Catch Exception, because the errors of OpenVINO's reader have no common class.
    except Exception as error:
        raise RuntimeError(_SOURCES.sub("", str(error))) from error


def compile_graph(graph: Any, num_threads: int) -> tuple[Any, str]:
    """Compiles a graph in float32; returns the compiled model and OpenVINO's build.

    Args:
        graph: A graph returned by ``read_graph``.
        num_threads: Number of threads that will evaluate concurrently.

    Raises:
        RuntimeError: OpenVINO rejects the graph.
    """
    core = _core()
    compiled = core.compile_model(graph, "CPU", _settings("fp32", num_threads))
    return compiled, str(core.get_versions("CPU")["CPU"].build_number)


def _streams_own_cores(num_threads: int) -> bool:
    """Returns whether each OpenVINO stream should be pinned to its own core.

    With one stream per core of the process, pinned streams do not collide, and the
    scheduler cannot halve a small network's speed by packing short tasks onto one core.
    With fewer streams, all processes would pin their streams to the same cores.
    """
    if sys.platform != "linux":
        return False
    return num_threads == len(os.sched_getaffinity(0)) > 1


def _settings(precision: Precision, num_threads: int) -> dict[str, Any]:
    """Returns OpenVINO settings; ``precision`` is that of floating-point operations."""
    return {
        "NUM_STREAMS": num_threads,
        "INFERENCE_NUM_THREADS": num_threads,
        "ENABLE_CPU_PINNING": _streams_own_cores(num_threads),
        "INFERENCE_PRECISION_HINT": _HINTS[precision],
    }


class OpenVinoBackend:
    """A ``Backend`` that evaluates a model's ONNX graph on CPUs with OpenVINO.

    Attributes:
        name: ``openvino``.
        version: OpenVINO's build.
        precision: Precision of the trunk; if int8 was requested and the model has no
            int8 graph, the floating-point precision that is used instead.
        batch_shape: ``dynamic``.
        signature: The network's inputs and requested outputs.
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
            RunError: OpenVINO rejects the model.
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
                "needs; set inference.backend=torch"
            )
        _check_is_whole(path)
        floats = float_precision() if precision == "int8" else precision
        settings = _settings(floats, num_threads)
        try:
            graph = core.read_model(str(path))
            self.signature = _prepared(graph, signature, outputs)
            self._model = core.compile_model(graph, "CPU", settings)
        # OpenVINO raises UnicodeDecodeError if a name in the file is not valid UTF-8.
        except (RuntimeError, UnicodeDecodeError) as error:
            reason = " ".join(str(error).split())
            raise RunError(
                f"model ({path}) is rejected by OpenVINO: {reason}; export it again, "
                "or set inference.backend=torch"
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
    """Removes outputs that are not requested from ``graph``; returns its signature."""
    if len(graph.inputs) == len(signature.inputs) == 1:
        # Models up to schema 2 name the input of a vector network "planes"; rename it.
        graph.input(0).get_tensor().set_names(set(signature.inputs))
    known = {name for output in graph.outputs for name in output.names}
    # Graphs from earlier versions lack the score, even if the network estimates it.
    there = answered(signature, [name for name in signature.outputs if name in known])
    wanted = answered(there, outputs)
    for name in there.outputs.keys() - wanted.outputs.keys():
        # Without a result node, an output is not computed. Other outputs do not change.
        graph.remove_result(graph.output(name).get_node())
    return wanted


class OpenVinoRunner:
    """A ``Runner`` whose inference requests use the port's arrays as tensors.

    Requests are bound once, because setting tensors or passing arrays would take 6 to
    50 us per call. A change of the batch size takes as long as the evaluation of 1 row
    (network 6x96) to 10 rows (2x32). So batch sizes are rounded up to quarters of the
    capacity, and the outputs of the additional rows are ignored.
    """

    def __init__(self, model: Any, arrays: Arrays, capacity: int) -> None:
        """Binds arrays by the names of the graph's inputs and outputs.

        Args:
            model: The compiled OpenVINO model.
            arrays: Inputs and outputs, arrays of shape ``[capacity, ...]``.
            capacity: Number of rows in the arrays.
        """
        # Hold references to the arrays, because OpenVINO's tensors do not.
        self._arrays = arrays
        step = max(1, capacity // _NUM_SIZES)
        self._requests: list[Any] = [None]
        while len(self._requests) <= capacity:
            num_rows = min(capacity, len(self._requests) - 1 + step)
            request = self._bind_rows(model, num_rows)
            missing = num_rows + 1 - len(self._requests)
            self._requests += [request] * missing

    def run(self, num_rows: int) -> None:
        """Evaluates the first ``num_rows`` rows; see ``Runner.run``."""
        self._requests[num_rows].infer(share_outputs=True)

    def _bind_rows(self, model: Any, num_rows: int) -> Any:
        from openvino import Tensor

        request = model.create_infer_request()
        for name, array in self._arrays.items():
            request.set_tensor(name, Tensor(array[:num_rows], shared_memory=True))
        return request


def _check_is_whole(path: Path) -> None:
    """Checks that an ONNX file does not refer to other files.

    Otherwise a tensor could make OpenVINO read any file of this machine.

    Raises:
        UsageError: The data of a tensor is in another file.
    """
    # Ignore unreadable or invalid files, whose errors OpenVINO reports later.
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
                f"graph ({path}) must contain its tensors, and {tensor.name!r} is in "
                "another file; save it as one file"
            )


def _tensors(message: Any) -> Iterator[Any]:
    """Yields every tensor in a protobuf message, at any depth."""
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        is_one = hasattr(value, "ListFields")
        for part in (value,) if is_one else value:
            if field.message_type.name == "TensorProto":
                yield part
            else:
                yield from _tensors(part)
