"""Evaluates external ONNX networks whose inputs are the planes of MLPerf's minigo.

Legend: N rows of a port, n rows of one batch, H W board, A actions.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tengen.config import check
from tengen.errors import RunError, UsageError
from tengen.inference.backend import NO_STATE, Arrays, allocate, check_arrays
from tengen.inference.config import BatchShape, Precision
from tengen.inference.openvino_backend import compile_graph, read_graph
from tengen.tensors import Signature

_NUM_FEATURES = 13
# Index of the input plane that is all ones if Black is to move.
_BLACK_PLANE = 9
_LEAST = 1e-30
# Batch size of the test. It is not 1 or 2, because graphs are often exported for these.
_TRIAL_ROWS = 3
_TOLERANCE = 1e-3


class ForeignGraph:
    """A ``Backend`` for an ONNX file converted from minigo's frozen graph.

    The graph's input is ``[n, 13, H, W]``, float32, bool or uint8. Its output with A
    numbers per row is the policy: probabilities if a Softmax computes it, otherwise
    logits. Its output with one number per row is the value, in [-1, 1] for Black. A
    graph that was exported for a fixed n may work with any n; see ``check_rows``.

    Attributes:
        name: ``openvino``.
        version: OpenVINO's build.
        precision: ``fp32``.
        batch_shape: ``dynamic``.
        signature: The signature of a board game, with policy and value.
    """

    name = "openvino"
    precision: Precision = "fp32"
    batch_shape: BatchShape = "dynamic"

    def __init__(self, path: Path, signature: Signature, num_threads: int) -> None:
        """Compiles the graph.

        Args:
            path: The ONNX file.
            signature: The signature of a game with minigo's planes.
            num_threads: Number of threads that will call runners concurrently.

        Raises:
            UsageError: OpenVINO is not installed, the file cannot be read, or the
                graph's inputs or outputs have unsupported shapes.
            RunError: OpenVINO rejects the graph.
        """
        self.signature = signature
        self._shape = signature.inputs["planes"].shape
        num_actions = signature.outputs["policy"].shape[0]
        has_planes = self._shape[0] == _NUM_FEATURES + 1
        rule = "needs the planes of go/N/planes=minigo; choose such a task"
        check(has_planes, "graph", path, rule)
        try:
            graph = read_graph(path)
            self._dtype = _input_dtype(path, graph, self._shape[1:])
            self._policy, self._value = _outputs(path, graph, num_actions)
            _open_rows(path, graph)
            self._model, self.version = compile_graph(graph, num_threads)
        except RuntimeError as error:
            reason = " ".join(str(error).split())
            raise RunError(
                f"graph ({path}) is rejected by OpenVINO: {reason}; export it again"
            ) from error
        self._path = path
        node = graph.output(self._policy).get_node().input_value(0).get_node()
        self._is_softmax = node.get_type_name() == "Softmax"

    def check_rows(self) -> None:
        """Checks that the graph evaluates any number of rows, each independently.

        A graph may depend on its batch size at export in ways that only a test
        evaluation reveals.

        Raises:
            UsageError: The graph's outputs are wrong, or its evaluation fails.
        """
        inputs = allocate(self.signature.inputs, _TRIAL_ROWS)
        rng = np.random.default_rng(0)
        inputs["planes"][:] = rng.integers(0, 2, inputs["planes"].shape)
        # Evaluate the last row alone, to compare the outputs with those in a batch.
        alone = {name: array[-1:] for name, array in inputs.items()}
        try:
            one, all_of_them = self._answers(alone), self._answers(inputs)
        except (RuntimeError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise UsageError(f"{_row_rule(self._path)} ({reason})") from error
        for name, wanted in one.items():
            found = all_of_them[name][-1:]
            if not np.allclose(found, wanted, _TOLERANCE, _TOLERANCE):
                raise UsageError(_row_rule(self._path))

    def _answers(self, inputs: Arrays) -> Arrays:
        num_rows = len(inputs["planes"])
        outputs = allocate(self.signature.outputs, num_rows)
        self.bind(inputs, outputs).run(num_rows)
        return outputs

    def bind(
        self, inputs: Arrays, outputs: Arrays, state: Arrays = NO_STATE
    ) -> _ForeignRunner:
        """Returns a runner over the given arrays; see ``Backend.bind``."""
        check_arrays(self.signature, inputs, outputs, state)
        request = self._model.create_infer_request()
        places = (self._policy, self._value)
        return _ForeignRunner(
            request, inputs, outputs, places, self._dtype, self._is_softmax
        )


class _ForeignRunner:
    """A ``Runner`` that copies its rows; fast enough for matches, its only use."""

    def __init__(
        self,
        request: Any,
        inputs: Arrays,
        outputs: Arrays,
        places: tuple[int, int],
        dtype: Any,
        is_softmax: bool,
    ) -> None:
        self._request = request
        self._inputs = inputs
        self._outputs = outputs
        self._places = places
        self._dtype = dtype
        self._is_softmax = is_softmax

    def run(self, num_rows: int) -> None:
        """Evaluates the first ``num_rows`` rows; see ``Runner.run``."""
        planes = self._inputs["planes"][:num_rows]
        self._request.infer({0: np.ascontiguousarray(planes[:, 1:], self._dtype)})
        policy, value = (
            self._request.get_output_tensor(place).data for place in self._places
        )
        if self._is_softmax:
            policy = np.log(np.maximum(policy, _LEAST))
        self._outputs["policy"][:num_rows] = policy
        sign = 2.0 * planes[:, _BLACK_PLANE].max(axis=(1, 2)) - 1.0
        self._outputs["value"][:num_rows] = value.reshape(num_rows) * sign


def _row_rule(path: Path) -> str:
    return (
        f"graph ({path}) must evaluate any number of rows independently; export it "
        "with a dynamic batch axis"
    )


def _open_rows(path: Path, graph: Any) -> None:
    """Makes the batch axis of a graph dynamic.

    Raises:
        UsageError: The graph supports only the batch size with which it was exported.
    """
    sides = list(graph.inputs[0].partial_shape)[1:]
    try:
        # Set a fixed size first, because OpenVINO detects incompatible shapes only if
        # they are known. With dynamic shapes, a matrix product would crash.
        graph.reshape({0: [_TRIAL_ROWS, *sides]})
        found = [list(one.partial_shape)[:1] for one in graph.outputs]
        graph.reshape({0: [-1, *sides]})
    except RuntimeError as error:
        raise UsageError(_row_rule(path)) from error
    if any(first != [_TRIAL_ROWS] for first in found):
        raise UsageError(_row_rule(path))


def _input_dtype(path: Path, graph: Any, board: tuple[int, ...]) -> Any:
    wanted = (_NUM_FEATURES, *board)
    shapes = [list(_sides(one)) for one in graph.inputs]
    fits = len(shapes) == 1 and _sides(graph.inputs[0]) == wanted
    rule = f"must have one input with rows {list(wanted)}, not {shapes}"
    advice = "export it for this board, channels first"
    check(fits, "graph", path, f"{rule}; {advice}")
    dtype = graph.inputs[0].get_element_type().to_dtype()
    known = dtype in (np.float32, np.bool_, np.uint8)
    rule = f"must have an input of float32, bool or uint8, not {dtype}; export it again"
    check(known, "graph", path, rule)
    return dtype


def _outputs(path: Path, graph: Any, num_actions: int) -> tuple[int, int]:
    """Returns the indices of the policy and value among the graph's outputs."""
    sizes = [int(np.prod(_sides(one), dtype=np.int64)) for one in graph.outputs]
    policies = [place for place, size in enumerate(sizes) if size == num_actions]
    values = [place for place, size in enumerate(sizes) if size == 1]
    if len(policies) != 1 or len(values) != 1:
        raise UsageError(
            f"graph ({path}) must have an output of size {num_actions} and one of size "
            f"1, not {sizes}; export only policy and value"
        )
    return policies[0], values[0]


def _sides(one: Any) -> tuple[int, ...]:
    """Returns a tensor's axis lengths except the first; -1 for a dynamic axis."""
    axes = list(one.partial_shape)[1:]
    return tuple(-1 if axis.is_dynamic else axis.get_length() for axis in axes)
