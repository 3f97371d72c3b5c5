"""The script that compares launchers: whose a process is."""

import pytest


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("roles", "python -P -m tengen.launch.child --index=0 -- /run 1 actor"),
        ("roles", "python -P -m tengen.launch.fork_server /run 6"),
        ("tengen", "python -P -m tengen train go/7 --launch ray"),
        ("launcher", "mpirun -n 3 python -P -m tengen train go/7 --launch mpi"),
        ("launcher", "ray::Holder.read"),
        ("launcher", "/lib/site-packages/ray/core/src/ray/raylet/raylet --port=0"),
        ("launcher", "python -u /lib/site-packages/ray/_private/log_monitor.py"),
        ("", "python -c pass"),
    ],
)
def test_a_process_is_a_role_of_tengen_or_of_the_launcher(load_script, kind, line):
    assert load_script("training/launchers")._kind(line.split()) == kind
