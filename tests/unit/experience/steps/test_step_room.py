"""A replay is in memory where half of it suffices, or on disk too, and says which."""

import pytest

import tengen.experience.steps.room
from tengen.errors import UsageError
from tengen.experience import ItemLayout, ReplayConfig, StepTable, plan_steps
from tengen.store import Column

COLUMNS = {
    "observation": Column(dtype="uint8", shape=(1, 84, 84)),
    "is_reset": Column(dtype="uint8"),
    "model_version": Column(dtype="int64"),
}
LAYOUT = ItemLayout(num_steps=4, period=1)


class Machine:
    """A machine with so much memory and disk, in place of this one."""

    def __init__(self, monkeypatch):
        self.memory_bytes = 16 * 10**9
        self.free_bytes = 15 * 10**9
        self.shared_bytes = 16 * 10**9
        self.shared_free_bytes = 15 * 10**9
        self.disk_free_bytes = 100 * 10**9
        room = tengen.experience.steps.room
        monkeypatch.setattr(room, "memory_limit_bytes", lambda: self.memory_bytes)
        monkeypatch.setattr(room, "available_memory_bytes", lambda: self.free_bytes)
        monkeypatch.setattr(room, "_free_bytes", self._free)
        monkeypatch.setattr(room, "_all_bytes", lambda folder: self.shared_bytes)

    def _free(self, folder):
        if folder.name == "shared":
            return self.shared_free_bytes
        return self.disk_free_bytes


@pytest.fixture
def machine(monkeypatch):
    return Machine(monkeypatch)


def plan(folder, directory=None, **config):
    return plan_steps(
        folder / "run" / "steps",
        COLUMNS,
        LAYOUT,
        ReplayConfig(**{"sampler": "prioritized", "max_items": 1_000_000, **config}),
        num_slots=16,
        batch_size=64,
        directory=directory,
    )


def test_a_replay_that_fits_half_of_the_memory_is_there(tmp_path, machine):
    made = plan(tmp_path)
    assert made.room.line == "replay of 1,000,000 steps, 7.1 GB: in memory"
    # Half of the machine, where a quarter of the steps more would be allowed.
    assert made.budget.memory_bytes > made.room.memory_bytes == 8 * 10**9
    machine.memory_bytes = 64 * 10**9
    assert plan(tmp_path).room.memory_bytes == made.budget.memory_bytes
    assert list(tmp_path.iterdir()) == []


def test_one_that_does_not_lies_on_the_disk_too(tmp_path, machine):
    machine.memory_bytes = 8 * 10**9
    room = plan(tmp_path).room
    assert room.memory_bytes == 4 * 10**9
    folder = tmp_path / "run" / "steps"
    assert room.line == (
        "replay of 1,000,000 steps, 7.1 GB: 4.0 GB in memory, the rest on disk in "
        f"{folder}"
    )
    room = plan(tmp_path, memory_bytes=500_000_000, max_items=100_000).room
    assert room.memory_bytes == 500_000_000
    assert room.line == (
        "replay of 100,000 steps, 706.5 MB: 500.0 MB in memory, the rest on disk in "
        f"{folder}"
    )
    assert plan(tmp_path, max_items=1_000).room.line == (
        "replay of 1,000 steps, 7.1 MB: in memory"
    )


def test_a_queue_is_in_memory_and_says_nothing(tmp_path, machine):
    machine.disk_free_bytes = 0
    made = plan(tmp_path, sampler="fifo", max_items=64)
    assert made.room == (made.budget.memory_bytes, 0, "")


def test_shared_memory_is_as_large_as_its_file_system_at_most(tmp_path, machine):
    shared = tmp_path / "shared"
    shared.mkdir()
    assert plan(tmp_path, shared / "new").room.memory_bytes == 8 * 10**9
    machine.shared_bytes = 2 * 10**9
    room = plan(tmp_path, shared).room
    assert room.memory_bytes == 7 * 2 * 10**9 // 8
    assert "1.8 GB in memory, the rest on disk in" in room.line


@pytest.mark.parametrize(
    ("change", "config", "refusal"),
    [
        (
            {"free_bytes": 6 * 10**9},
            {},
            "store.max_items (1000000) needs up to 8.1 GB, more than the 6.0 GB of "
            "free memory; lower store.memory_bytes",
        ),
        (
            {"free_bytes": 6 * 10**9},
            {"max_items": 60_000_000},
            "store.max_items (60000000) needs up to 14.6 GB, more than the 6.0 GB of "
            "free memory; lower it",
        ),
        (
            {"free_bytes": 6 * 10**9},
            {"sampler": "fifo"},
            "store.max_items (1000000) needs up to 14.5 GB, more than the 6.0 GB of "
            "free memory; lower it",
        ),
        (
            {"shared_free_bytes": 3 * 10**9},
            {},
            "store.max_items (1000000) needs up to 8.1 GB, more than the 3.0 GB free "
            "in SHARED, which actors share; lower store.memory_bytes, or enlarge that "
            "file system",
        ),
        (
            {"disk_free_bytes": 7 * 10**9},
            {},
            "store.max_items (1000000) needs 7.4 GB, more than the 7.0 GB free on the "
            "disk of STEPS; free some space, or lower it",
        ),
        (
            {},
            {"memory_bytes": 1_000_000},
            "store.memory_bytes (1000000) must be at least 21431296, for the steps of "
            "a batch and of the actors; raise it, or lower learner.batch_size",
        ),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_written(
    tmp_path, machine, change, config, refusal
):
    shared = tmp_path / "shared"
    shared.mkdir()
    for name, value in change.items():
        setattr(machine, name, value)
    with pytest.raises(UsageError) as error:
        plan(tmp_path, shared, **config)
    refusal = refusal.replace("SHARED", str(shared))
    assert str(error.value) == refusal.replace("STEPS", f"{tmp_path}/run/steps")
    assert [path.name for path in tmp_path.iterdir()] == ["shared"]


def test_what_a_killed_process_left_counts_as_free(tmp_path, machine):
    shared, steps = tmp_path / "shared", tmp_path / "run" / "steps"
    shared.mkdir()
    steps.mkdir(parents=True)
    machine.shared_free_bytes = 8 * 10**9
    machine.disk_free_bytes = 7_250_000_000
    for folder in (shared, steps):
        with pytest.raises(UsageError):
            plan(tmp_path, shared)
        (folder / "slab-0").write_bytes(bytes(200_000_000))
    plan(tmp_path, shared)


def test_a_table_has_the_memory_that_was_planned(tmp_path, machine):
    def table(memory_bytes):
        return StepTable(
            tmp_path / "steps",
            COLUMNS,
            LAYOUT,
            ReplayConfig(
                sampler="uniform", max_items=100_000, memory_bytes=memory_bytes
            ),
            seed=1,
            num_slots=2,
            batch_size=8,
        )

    table(100_000_000).close()
    # A replay that was closed may have another memory when it goes on.
    second = table(50_000_000)
    assert second.room.memory_bytes == 50_000_000
    second.close()
