"""Opens inference backends, and chooses one with measurements when a run starts.

The choice is stored in ``run.json`` and reused when the run resumes, because a change
of precision or batch shape would change the bits of the network's outputs.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tengen.errors import UsageError
from tengen.inference.architecture import read_architecture
from tengen.inference.backend import Arrays, Backend, Runner, allocate
from tengen.inference.config import (
    BackendName,
    BatchShape,
    InferenceConfig,
    Precision,
    default_devices,
)
from tengen.inference.determinism import FixedBackend, probe
from tengen.inference.native_backend import NativeBackend
from tengen.inference.openvino_backend import (
    ONNX_FILE,
    OpenVinoBackend,
    has_int8_graph,
    is_installed,
    require_precision,
    supported_precisions,
)

if TYPE_CHECKING:
    from tengen.nets import Net, NetConfig

# A precision is chosen only if it is faster than the best higher precision by more than
# this factor.
_WORTHWHILE: dict[Precision, float] = {"bf16": 1.05, "int8": 1.1}
_TRIAL_S = 0.3
# A larger GPU batch is chosen only if its speedup exceeds this, because it needs more
# concurrent games, whose trees do not fit in the cache (benchmarks/results/gpu.md).
_WORTHWHILE_ROWS = 1.05


@dataclass(frozen=True)
class Choice:
    """The backend and settings of inference that a run uses.

    Attributes:
        config: The inference config, with every ``auto`` resolved.
        version: The inference library's version.
        is_deterministic: Whether the outputs for a row depend only on this row.
        rows_per_s: Measured rows per second: of one CPU thread by precision, or of a
            GPU by batch size; empty if nothing was measured.
        int8_s: CPU-seconds to quantise a model, which an ``auto`` precision weighs
            against the speedup of int8; 0 if no model was quantised.
    """

    config: InferenceConfig
    version: str
    is_deterministic: bool
    rows_per_s: dict[str, float]
    int8_s: float = 0.0

    def summary(self) -> str:
        """Returns one line about the measured precisions; empty without measurements.

        The line also lists the precisions that this CPU does not support natively.
        """
        rates = self.rows_per_s
        if "fp32" not in rates:
            return ""
        shown = [f"fp32 {rates['fp32']:,.0f}"]
        shown += [
            f"{name} {rates[name]:,.0f} ({rates[name] / rates['fp32']:.2f}x)"
            for name in _WORTHWHILE
            if name in rates
        ]
        line = (
            f"inference computes in {self.config.precision}; evaluations/s of one "
            f"thread: {', '.join(shown)}"
        )
        if self.config.backend != "openvino":
            return line
        native = supported_precisions()
        lacking = [name for name in _WORTHWHILE if name not in native]
        if lacking:
            line += f"; this processor has no native {' or '.join(lacking)}"
        return line

    def record(self) -> dict[str, Any]:
        """Returns the choice as JSON values for ``run.json``."""
        return {
            "devices": self.config.devices,
            "backend": self.config.backend,
            "version": self.version,
            "precision": self.config.precision,
            "batch_shape": self.config.batch_shape,
            "device_rows": self.config.device_rows,
            "deterministic": self.is_deterministic,
            "rows_per_s": {k: round(v, 1) for k, v in self.rows_per_s.items()},
            "int8_s": round(self.int8_s, 3),
        }


def check_machine(config: InferenceConfig) -> None:
    """Checks that this machine supports the backend and precision of a config.

    Raises:
        UsageError: The backend is not installed or does not support the precision.
    """
    if config.is_on_gpu:
        return
    found = _with_backend(config, None)
    if found.backend == "openvino" and found.precision != "auto":
        require_precision(found.precision)


def needs_graph(config: InferenceConfig, net: NetConfig) -> bool:
    """Returns whether the backend reads a model's ONNX graph; may import torch.

    Args:
        config: The inference config, which may still contain ``auto``.
        net: The kind and size of the network.
    """
    config = dataclasses.replace(config, devices=devices_of(config, net))
    return not config.is_on_gpu and _with_backend(config, net).backend == "openvino"


def open_backend(
    source: Path | Net,
    config: InferenceConfig,
    num_threads: int,
    *,
    outputs: Sequence[str] | None = None,
) -> Backend:
    """Compiles a model and returns its backend.

    If the precision is int8 and the model has no int8 graph, the backend uses bf16, or
    fp32 on a CPU without bf16. Its attribute ``precision`` is the precision in use.

    Args:
        source: A model directory, or a network in memory, in evaluation mode. It has
            the same outputs as a model published from it, and must not change while
            the backend is in use. OpenVINO needs a directory.
        config: The inference config, as resolved by ``choose``. Only ``devices`` may
            still be ``auto``, which then means the CPU.
        num_threads: Number of threads that will evaluate concurrently, at least 1.
        outputs: Names of the outputs to compute; None for all. Unknown names are
            ignored.

    Raises:
        UsageError: The backend is not installed, does not support the precision, or the
            config still contains ``auto``.
        RunError: The backend rejects the model.
    """
    for name in ("backend", "precision", "batch_shape"):
        if getattr(config, name) == "auto":
            raise UsageError(f"inference.{name} (auto) is not resolved; set a value")
    precision: Any = config.precision
    backend: Backend
    if config.is_on_gpu:
        from tengen.inference.device_backend import open_on_devices

        return open_on_devices(source, config, outputs)
    if config.backend == "openvino":
        if not isinstance(source, Path):
            raise UsageError(
                "inference.backend (openvino) needs a graph, and a network in memory "
                "has none; publish it as a model, or use torch"
            )
        backend = OpenVinoBackend(
            source, precision=precision, num_threads=num_threads, outputs=outputs
        )
    elif config.backend == "native":
        backend = NativeBackend(source, outputs=outputs)
    else:
        from tengen.inference.torch_backend import TorchBackend

        backend = TorchBackend(source, precision=precision, outputs=outputs)
    if config.batch_shape == "fixed":
        return FixedBackend(backend, config.batch_rows)
    return backend


def choose(
    directory: Path,
    config: InferenceConfig,
    inputs: Arrays,
    num_threads: int,
    *,
    outputs: Sequence[str] | None = None,
    num_evaluations: float = 0.0,
    int8_s: float = 0.0,
) -> Choice:
    """Replaces every ``auto`` with the best value for the model on this machine.

    Blocks for one or two seconds, to compile, measure and probe the model.

    Args:
        directory: A model directory. int8 is measured only if the model has an int8
            graph, and OpenVINO is chosen only if the model has a graph.
        config: The inference config that the user set.
        inputs: The network's inputs, arrays ``[M, ...]`` by name; M distinct rows of
            real games or episodes, more than ``batch_rows``.
        num_threads: Number of threads that will evaluate concurrently, at least 1.
        outputs: As for ``open_backend``.
        num_evaluations: Approximate number of rows that all threads evaluate with one
            model; 0 if unknown, and then ``int8_s`` is ignored.
        int8_s: CPU-seconds to quantise one model.

    Raises:
        UsageError: The backend is not installed or does not support the precision.
        RunError: The backend rejects the model.
    """
    has_auto = "auto" in (config.devices, config.backend)
    net = read_architecture(directory).net if has_auto else None
    config = dataclasses.replace(config, devices=devices_of(config, net))
    if config.is_on_gpu:
        return _choose_on_gpus(directory, config, outputs)
    has_graph = (directory / ONNX_FILE).exists()
    config = _with_backend(config, net, has_graph=has_graph)
    rows_per_s: dict[str, float] = {}
    if config.precision == "auto":
        rows_per_s = _trial(directory, config, inputs, outputs)
        weighed = dict(rows_per_s)
        if "int8" in weighed and num_evaluations:
            busy_s = num_evaluations / weighed["int8"] + int8_s * num_threads
            weighed["int8"] = num_evaluations / busy_s
        config = dataclasses.replace(config, precision=_worthwhile(weighed))
    shapes: tuple[Any, ...] = (config.batch_shape,)
    if config.batch_shape == "auto":
        shapes = ("dynamic", "fixed")
    for shape in shapes:
        config = dataclasses.replace(config, batch_shape=shape)
        backend = open_backend(directory, config, num_threads, outputs=outputs)
        result = probe(
            backend,
            inputs,
            batch_rows=config.batch_rows,
            num_threads=num_threads,
        )
        if result.is_deterministic:
            break
    return Choice(
        config=config,
        version=backend.version,
        is_deterministic=result.is_deterministic,
        rows_per_s=rows_per_s,
        int8_s=int8_s,
    )


def _choose_on_gpus(
    directory: Path, config: InferenceConfig, outputs: Sequence[str] | None
) -> Choice:
    """Implements ``choose`` for GPUs. Blocks for seconds to measure batch sizes.

    Raises:
        UsageError: A GPU is missing, or the config has a setting that is only for CPUs.
    """
    from tengen.inference.device_backend import open_on_devices

    for name, wanted, found in (
        ("backend", "torch", config.backend),
        ("batch_shape", "dynamic", config.batch_shape),
    ):
        if found not in ("auto", wanted):
            raise UsageError(
                f"inference.{name} ({found}) needs a CPU; set it to {wanted}, or use "
                "--devices cpu"
            )
    backend = open_on_devices(directory, config, outputs)
    rates = backend.rates() if config.device_rows == 0 else {}
    best = max(rates.values(), default=0.0)
    good = [rows for rows, rate in rates.items() if rate * _WORTHWHILE_ROWS >= best]
    return Choice(
        config=dataclasses.replace(
            config,
            backend="torch",
            precision=backend.precision,
            batch_shape="dynamic",
            device_rows=min(good, default=config.device_rows),
        ),
        version=backend.version,
        is_deterministic=False,
        rows_per_s={str(rows): rate for rows, rate in rates.items()},
    )


def devices_of(config: InferenceConfig, net: NetConfig | None) -> str:
    """Returns the devices of an inference config, with ``auto`` resolved.

    May import torch to detect GPUs.

    Args:
        config: The inference config.
        net: The kind and size of the network; None if unknown.
    """
    if config.devices != "auto":
        return config.devices
    # OpenVINO and the core run only on CPUs, and only OpenVINO supports int8.
    is_for_cpus = (
        config.backend in ("openvino", "native")
        or config.precision == "int8"
        or (net is not None and net.is_native)
    )
    return "cpu" if is_for_cpus else default_devices()


def _with_backend(
    config: InferenceConfig, net: NetConfig | None, *, has_graph: bool = True
) -> InferenceConfig:
    if config.backend != "auto":
        return config
    found: BackendName = "openvino" if has_graph and is_installed() else "torch"
    if net is not None and net.is_native:
        found = "native"
    return dataclasses.replace(config, backend=found)


def _trial(
    directory: Path,
    config: InferenceConfig,
    inputs: Arrays,
    outputs: Sequence[str] | None,
) -> dict[str, float]:
    """Measures the rows per second of one CPU thread, by precision.

    The measurements are interleaved, and only the fastest call of each precision
    counts, so that other load on the machine does not favour any precision.
    """
    num_rows = config.batch_rows
    rows = {
        name: array[np.arange(num_rows) % len(array)] for name, array in inputs.items()
    }
    runners: dict[str, Runner] = {}
    for precision in _candidates(directory, config):
        shape: BatchShape = "dynamic"
        tried = dataclasses.replace(config, precision=precision, batch_shape=shape)
        backend = open_backend(directory, tried, 1, outputs=outputs)
        answers = allocate(backend.signature.outputs, num_rows)
        state = allocate(backend.signature.state, num_rows)
        runners[precision] = backend.bind(rows, answers, state)
        runners[precision].run(num_rows)
    fastest_s = dict.fromkeys(runners, float("inf"))
    end = time.perf_counter() + _TRIAL_S * len(runners)
    while time.perf_counter() < end:
        for name, runner in runners.items():
            start = time.perf_counter()
            runner.run(num_rows)
            elapsed_s = time.perf_counter() - start
            fastest_s[name] = min(fastest_s[name], elapsed_s)
    return {name: num_rows / elapsed_s for name, elapsed_s in fastest_s.items()}


def _candidates(directory: Path, config: InferenceConfig) -> tuple[Precision, ...]:
    if config.backend == "openvino":
        has_int8 = has_int8_graph(directory)
        return tuple(p for p in supported_precisions() if p != "int8" or has_int8)
    if config.backend == "native":
        return ("fp32",)
    # torch supports bf16 on every CPU. If bf16 is slow, fp32 is chosen.
    return ("fp32", "bf16")


def _worthwhile(rows_per_s: dict[str, float]) -> Precision:
    chosen: Precision = "fp32"
    for precision, factor in _WORTHWHILE.items():
        if rows_per_s.get(precision, 0.0) > factor * rows_per_s[chosen]:
            chosen = precision
    return chosen
