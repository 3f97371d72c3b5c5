"""Export by torch's own exporter, for networks that our rules do not know.

It takes seconds and the package onnxscript, and knows nearly every operation. Nothing
is optimised, or weights would be folded into others and could not be patched.
"""

from __future__ import annotations

import importlib.util
import logging
import warnings
from collections.abc import Set

import onnx
import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

from tengen.distribution import pip_install
from tengen.errors import RunError
from tengen.tensors import Signature

__all__ = ["export_by_torch"]

_ADVICE = "set inference.backend=torch"


def export_by_torch(
    program: ExportedProgram,
    signature: Signature,
    prefix: str,
    names: Set[str],
    reason: str,
) -> onnx.ModelProto:
    """Returns a traced network as an ONNX graph with its tensors under their own names.

    Args:
        program: The traced network.
        signature: Names of its inputs and outputs, in order.
        prefix: What the program puts before the network's own names.
        names: Every tensor of the network.
        reason: Why our rules do not do, for messages.

    Raises:
        RunError: onnxscript is not installed, or the exporter fails.
    """
    if importlib.util.find_spec("onnxscript") is None:
        raise RunError(
            f"{reason}, and torch's exporter needs onnxscript; {_ADVICE}, or "
            f"{pip_install('onnxscript')}"
        )
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    try:
        logger.setLevel(logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = torch.onnx.export(
                program, dynamo=True, optimize=False, verbose=False
            )
        assert made is not None
        graph: onnx.ModelProto = made.model_proto
    except Exception as error:
        words = str(error).strip().partition("\n")[0]
        raise RunError(
            f"{reason}, and torch's exporter fails: {words}; {_ADVICE}"
        ) from error
    finally:
        logger.setLevel(level)
    _rename(graph.graph, signature, prefix, names)
    found = {item.name for item in graph.graph.initializer}
    if lost := sorted(_used(program, prefix) - found):
        raise RunError(
            f"{reason}, and torch's exporter folds tensor ({lost[0]}), which cannot be "
            f"patched then; {_ADVICE}"
        )
    return graph


def _used(program: ExportedProgram, prefix: str) -> set[str]:
    """Returns the tensors of the network that inference reads."""
    read = {n.name for n in program.graph.nodes if n.op == "placeholder" and n.users}
    return {
        str(spec.target).removeprefix(prefix)
        for spec in program.graph_signature.input_specs
        if spec.kind in (InputKind.PARAMETER, InputKind.BUFFER)
        and spec.arg.name in read
    }


def _rename(
    graph: onnx.GraphProto, signature: Signature, prefix: str, names: Set[str]
) -> None:
    """Gives tensors the network's names; those that are none become constants.

    By nodes that do nothing, so that graphs inside of nodes need no change.
    """
    before: list[onnx.NodeProto] = []
    after: list[onnx.NodeProto] = []
    weights: list[onnx.TensorProto] = []
    make = onnx.helper.make_node
    for item in graph.initializer:
        old = item.name
        name = old.removeprefix(prefix)
        if name in names:
            item.name = name
            weights.append(item)
            before.append(make("Identity", [name], [old]))
        else:
            before.append(make("Constant", [], [old], value=item))
    for value, name in zip(graph.input, signature.inputs, strict=True):
        before.append(make("Identity", [name], [value.name]))
        value.name = name
    for value, name in zip(graph.output, signature.outputs, strict=True):
        after.append(make("Identity", [value.name], [name]))
        value.name = name
    nodes = [*before, *graph.node, *after]
    del graph.node[:], graph.initializer[:], graph.value_info[:]
    graph.node.extend(nodes)
    graph.initializer.extend(weights)
