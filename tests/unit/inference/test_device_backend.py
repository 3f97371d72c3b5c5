"""The backend of devices on the CPU as a device: all but CUDA itself."""

import threading

import numpy as np
import pytest
import torch

from tengen import _core
from tengen.errors import RunError, UsageError
from tengen.inference import InferenceConfig, LaneBackend, RowLayout, choose
from tengen.inference.device import bucket_for, bucket_sizes, unpack_rows
from tengen.inference.device_backend import DeviceBackend
from tengen.inference.torch_backend import TorchBackend, load_head
from tengen.nets.modules.norm import FoldedConv
from tests.host_device import HostDevice
from tests.refusals import refused

NUM_ACTIONS = 25
PACKED = RowLayout((4, 5, 5))
DENSE = RowLayout((4, 5, 5), is_packed=False)


@pytest.fixture(autouse=True)
def no_gpu(give_gpus):
    """Also forgets what fitted the devices of other tests."""
    give_gpus(0)


class TryingDevice(HostDevice):
    """Runs what it records, as a GPU does before it records."""

    num_recorded = 0

    def record(self, function):
        self.num_recorded += 1
        function()
        return super().record(function)


@pytest.fixture
def let_fit(monkeypatch):
    """Returns a function that says for how many rows the memory suffices."""

    def let(max_rows):
        def unpack(rows, layout):
            if len(rows) > max_rows:
                raise torch.OutOfMemoryError("CUDA out of memory")
            return unpack_rows(rows, layout)

        monkeypatch.setattr("tengen.inference.device.unpack_rows", unpack)

    return let


def opened(model, *devices, precision="fp32", max_rows=32):
    return DeviceBackend(
        model,
        precision=precision,
        devices=devices or (HostDevice(),),
        max_rows=max_rows,
    )


def ask(lane, layout, planes):
    native = _core.RowLayout(layout.planes_shape, layout.is_packed)
    n = len(planes)
    _core.write_rows(native, planes, lane.rows[:n])
    lane.run(n)
    return lane.outputs["policy"][:n].copy(), lane.outputs["value"][:n].copy()


def torch_answers(model, planes):
    with torch.inference_mode():
        policy, value = load_head(model).head(torch.from_numpy(planes))
    return policy.numpy(), value.numpy()


@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 2e-5), ("bf16", 0.05)])
@pytest.mark.parametrize("layout", [PACKED, DENSE])
def test_lanes_answer_as_torch_does(model, planes, precision, tolerance, layout):
    backend = opened(model, precision=precision)
    assert isinstance(backend, LaneBackend)
    lanes = backend.open_lanes(layout, 32)
    wanted = torch_answers(model, planes)
    assert wanted[0].std() > tolerance / 10
    # Rows of an earlier, larger batch must not be seen in a later one.
    for turn, num_rows in enumerate((32, 1, 7, 8, 9, 31, 16)):
        rows = slice(turn, turn + num_rows)
        policy, value = ask(lanes[turn % len(lanes)], layout, planes[rows])
        np.testing.assert_allclose(policy, wanted[0][rows], atol=tolerance, rtol=0)
        np.testing.assert_allclose(value, wanted[1][rows], atol=tolerance, rtol=0)


def test_devices_compute_with_folded_norms(model, planes):
    backend = opened(model)
    lane = backend.open_lanes(PACKED, 16)[0]
    before = ask(lane, PACKED, planes[:16])[0].copy()
    folded = [m for m in backend._loaded[0].head.modules() if isinstance(m, FoldedConv)]
    assert folded
    with torch.inference_mode():
        for conv in folded:
            conv.shift.add_(1.0)
    assert not np.allclose(ask(lane, PACKED, planes[:16])[0], before)


def test_lanes_of_two_devices_run_at_once(model, planes):
    backend = opened(model, HostDevice(), HostDevice())
    lanes = backend.open_lanes(PACKED, 16)
    assert sorted({lane.device for lane in lanes}) == [0, 1]
    wanted = torch_answers(model, planes)
    wrong = []

    def work(place):
        torch.set_num_threads(1)
        for turn in range(20):
            rows = slice(turn, turn + 1 + (place + turn) % 16)
            policy, value = ask(lanes[place], PACKED, planes[rows])
            if not np.allclose(policy, wanted[0][rows], atol=2e-5):
                wrong.append(place)
            if not np.allclose(value, wanted[1][rows], atol=2e-5):
                wrong.append(place)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(lanes))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_other_callers_bind_as_everywhere(model, planes):
    policy = np.zeros((60, NUM_ACTIONS), np.float32)
    value = np.zeros(60, np.float32)
    outputs = {"policy": policy, "value": value}
    opened(model).bind({"planes": planes}, outputs).run(60)
    wanted = torch_answers(model, planes)
    np.testing.assert_allclose(policy, wanted[0], atol=2e-5)
    np.testing.assert_allclose(value, wanted[1], atol=2e-5)


def test_weights_cast_once_answer_as_weights_cast_at_every_call(model, planes):
    head = load_head(model).head
    head.net.compute_dtype = torch.bfloat16
    with torch.inference_mode():
        wanted = head(torch.from_numpy(planes))
    policy = np.zeros((60, NUM_ACTIONS), np.float32)
    value = np.zeros(60, np.float32)
    outputs = {"policy": policy, "value": value}
    TorchBackend(model, precision="bf16").bind({"planes": planes}, outputs).run(60)
    np.testing.assert_allclose(policy, wanted[0].numpy(), atol=1e-2)
    np.testing.assert_allclose(value, wanted[1].numpy(), atol=1e-2)


def test_lanes_are_halved_until_they_fit_and_it_is_said_once(model, planes, let_fit):
    let_fit(20)
    first = opened(model, TryingDevice(), max_rows=64)
    lanes = first.open_lanes(PACKED, 64)
    assert {len(lane.rows) for lane in lanes} == {16}
    policy, _ = ask(lanes[0], PACKED, planes[:16])
    np.testing.assert_allclose(policy, torch_answers(model, planes)[0][:16], atol=2e-5)
    assert first.notes == [
        "inference.device_rows (64) exceeds the memory; batches have at most 16 rows"
    ]
    # The next model begins with what fits.
    device = TryingDevice()
    second = opened(model, device, max_rows=64)
    assert {len(lane.rows) for lane in second.open_lanes(PACKED, 64)} == {16}
    assert second.notes == []
    assert device.num_recorded == 2  # 8 and 16 rows, nothing in vain


def test_memory_that_ends_at_the_second_device_halves_the_lanes_of_both(model):
    class Small(HostDevice):
        def host_memory(self, shape, dtype):
            # Where a device shows that it is full, after its programs are recorded.
            if shape[0] > 20:
                raise torch.OutOfMemoryError("CUDA out of memory")
            return super().host_memory(shape, dtype)

    backend = opened(model, HostDevice(), Small())
    lanes = backend.open_lanes(PACKED, 32)
    assert {len(lane.rows) for lane in lanes} == {16}
    assert [lane.device for lane in lanes[:4]] == [0, 1, 0, 1]
    assert len(backend.notes) == 1


def test_a_device_without_memory_for_the_smallest_batch_is_refused(model, let_fit):
    let_fit(4)
    with refused(RunError, "device (cpu)"):
        opened(model, TryingDevice()).open_lanes(PACKED, 32)


def test_lanes_have_at_most_the_rows_of_the_backend(model):
    assert len(opened(model, max_rows=12).open_lanes(PACKED, 100)[0].rows) == 12


@pytest.fixture
def on_host(give_gpus):
    """Chooses on a GPU that is the CPU, whose rates by rows are given."""

    def choose_on(model, rates, **config):
        give_gpus(1, rates=rates)
        rows = np.zeros((1, 4, 5, 5), np.float32)
        return choose(model, InferenceConfig(**config), {"planes": rows}, 2)

    return choose_on


def test_the_fewest_rows_that_are_nearly_as_fast_as_the_best_are_chosen(model, on_host):
    # Beyond 2048 rows the memory ends.
    rates = {128: 10.0, 256: 95.0, 512: 95.5, 1024: 100.0, 2048: 98.0}
    choice = on_host(model, rates)
    assert choice.config == InferenceConfig(
        devices="cuda:0",
        backend="torch",
        precision="bf16",
        batch_shape="dynamic",
        device_rows=512,
    )
    assert not choice.config.has_auto
    assert not choice.is_deterministic
    assert choice.record()["rows_per_s"]["1024"] == 100.0
    assert choice.record()["devices"] == "cuda:0"


def test_batches_that_an_h100_computes_best_are_halved_for_fewer_games(model, on_host):
    # "Fused, bf16" of benchmarks/results/gpu.md, in thousands a second.
    rates = {128: 384.0, 256: 470.0, 512: 577.0, 1024: 649.0, 2048: 699.0, 4096: 727.0}
    assert on_host(model, rates).config.device_rows == 2048


def test_what_the_user_says_of_a_gpu_is_kept(model, on_host):
    choice = on_host(model, {}, devices="cuda:0", precision="fp32", device_rows=100)
    assert (choice.config.precision, choice.config.device_rows) == ("fp32", 100)
    assert choice.rows_per_s == {}


@pytest.mark.parametrize(
    "asked", [{"backend": "openvino", "precision": "fp32"}, {"precision": "int8"}]
)
def test_who_asks_for_what_openvino_alone_has_asks_for_the_cpu(
    model, planes, give_gpus, asked
):
    pytest.importorskip("openvino")
    give_gpus(1)
    choice = choose(model, InferenceConfig(**asked), {"planes": planes}, 1)
    assert (choice.config.devices, choice.config.backend) == ("cpu", "openvino")


@pytest.mark.parametrize(
    ("name", "value"), [("backend", "openvino"), ("batch_shape", "fixed")]
)
def test_what_is_for_cpus_is_refused_on_a_gpu(model, on_host, name, value):
    with refused(UsageError, f"inference.{name} ({value})"):
        on_host(model, {128: 1.0}, devices="cuda:0", **{name: value})


def test_no_memory_for_a_trial_is_a_failure(model, on_host):
    with refused(RunError, "128 rows"):
        on_host(model, {})


def test_the_rate_is_measured(model):
    assert opened(model).rate(8, 0.01) > 0


@pytest.mark.parametrize(
    ("max_rows", "sizes"),
    [
        (1, (1,)),
        (8, (8,)),
        (20, (10, 20)),
        (64, (8, 16, 32, 48, 64)),
        (1000, (15, 31, 62, 125, 250, 500, 750, 1000)),
    ],
)
def test_sizes(max_rows, sizes):
    assert bucket_sizes(max_rows) == sizes


@pytest.mark.parametrize("max_rows", [1, 7, 100, 4096])
def test_every_batch_goes_to_the_smallest_size_that_holds_it(max_rows):
    sizes = bucket_sizes(max_rows)
    for num_rows in range(1, max_rows + 1):
        bucket = bucket_for(num_rows, sizes)
        assert bucket == min(size for size in sizes if size >= num_rows)
