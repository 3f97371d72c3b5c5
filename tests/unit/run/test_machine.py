import os
import platform
import subprocess
import sys

import pytest

from tengen.cgroups import Cgroups
from tengen.errors import TengenWarning, UsageError
from tengen.run.machine import available_cores, cpu_name, machine_line, usable_threads
from tests.refusals import refused


@pytest.fixture
def place(tmp_path):
    def write(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return Cgroups(tmp_path / "membership", tmp_path / "cgroup")

    return write


def test_version_2_takes_the_least_of_all_ancestors(place):
    where = place(
        {
            "membership": "0::/a/b\n",
            "cgroup/a/cpu.max": "150000 100000\n",
            "cgroup/a/b/cpu.max": "400000 100000\n",
        }
    )
    assert where.quota_cores() == 1.5


def test_version_2_inside_a_container_reads_the_root(place):
    where = place(
        {
            "membership": "0::/docker/0123\n",
            "cgroup/cpu.max": "200000 100000\n",
        }
    )
    assert where.quota_cores() == 2.0


def test_version_1(place):
    where = place(
        {
            "membership": "7:memory:/x\n4:cpu,cpuacct:/x\n",
            "cgroup/cpu/x/cpu.cfs_quota_us": "300000\n",
            "cgroup/cpu/x/cpu.cfs_period_us": "100000\n",
            "cgroup/memory/x/memory.limit_in_bytes": "4096\n",
        }
    )
    assert where.quota_cores() == 3.0
    assert where.memory_limit_bytes() == 4096


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"membership": "0::/\n", "cgroup/cpu.max": "max 100000\n"},
        {
            "membership": "4:cpu:/\n",
            "cgroup/cpu/cpu.cfs_quota_us": "-1\n",
            "cgroup/cpu/cpu.cfs_period_us": "100000\n",
        },
    ],
)
def test_no_quota(place, files):
    assert place(files).quota_cores() is None


def test_memory_without_a_limit_is_the_machine(place):
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert place({}).memory_limit_bytes() == machine
    huge = place(
        {
            "membership": "7:memory:/\n",
            "cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        }
    )
    assert huge.memory_limit_bytes() == machine


def test_memory_that_a_container_has_left(place):
    """What it uses counts, but not the files that the kernel may drop."""
    where = place(
        {
            "membership": "0::/\n",
            "cgroup/memory.max": "10000\n",
            "cgroup/memory.current": "7000\n",
            "cgroup/memory.stat": "anon 5000\ninactive_file 1500\n",
        }
    )
    assert where.available_memory_bytes() == 4500


@pytest.mark.parametrize(("quota", "cores"), [(0.5, 1), (1.9, 1), (None, 3), (9.0, 3)])
def test_available_cores(monkeypatch, quota, cores):
    monkeypatch.setattr("tengen.run.machine.quota_cores", lambda: quota)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2}, raising=False)
    assert available_cores() == cores


def test_machine_line_names_cpu_and_cores():
    line = machine_line()
    assert cpu_name() in line
    assert f"{available_cores()} of {os.cpu_count()} cores" in line


def test_threads_beyond_the_cores_are_cut_with_a_warning():
    cores = available_cores()
    assert [usable_threads(n) for n in (1, cores, None)] == [1, cores, cores]
    with pytest.warns(TengenWarning) as told:
        assert usable_threads(cores + 1) == cores
    assert f"threads ({cores + 1})" in str(told[0].message)


@pytest.mark.parametrize("threads", [-3, 0, 1025])
def test_threads_out_of_range_are_refused(threads):
    with refused(UsageError, f"threads ({threads})"):
        usable_threads(threads)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc has the settings")
def test_a_freed_buffer_comes_back_without_a_page_fault():
    """In a process of its own, as the setting is the process's."""
    code = """
import ctypes, resource, sys
from tengen.run.machine import keep_freed_memory
assert not int(sys.argv[1]) or keep_freed_memory()
c = ctypes.CDLL(None)
c.malloc.restype, c.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
c.free.argtypes = [ctypes.c_void_p]
sizes = [9 << 20, 10 << 20, 11 << 20]
def step():
    buffers = [c.malloc(size) for size in sizes]
    for buffer, size in zip(buffers, sizes):
        ctypes.memset(buffer, 1, size)
    for buffer in buffers:
        c.free(buffer)
for _ in range(3):
    step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
    faults = [
        int(subprocess.check_output([sys.executable, "-c", code, str(keeps)]))
        for keeps in (0, 1)
    ]
    pages = 10 * (30 << 20) // os.sysconf("SC_PAGE_SIZE")
    assert faults[0] > pages // 100
    assert faults[1] < faults[0] // 10
