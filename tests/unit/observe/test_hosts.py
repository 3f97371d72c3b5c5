"""On which hosts the processes of a call are."""

from __future__ import annotations

from tengen.observe import HostsLog, Place, read_hosts
from tengen.run import RunDirectory


def place(name: str, host: str) -> Place:
    roles = (name.partition("-")[0],)
    return Place(place="node 1", host=host, name=name, roles=roles, num_threads=2)


def test_a_process_is_where_it_began_last(tmp_path):
    run = RunDirectory.create_or_resume(tmp_path / "run")
    assert read_hosts(run) is None
    log = HostsLog(run, "call", "7 on head", [place("learn", "a")])
    log.moved(place("actor-0", "b"))
    log.moved(place("learn", "c"))
    log.moved(place("actor-0", "b"))
    log.lost("node 2 is gone")
    log.close()
    found = read_hosts(run)
    assert found is not None
    assert found.places == (place("learn", "c"), place("actor-0", "b"))
    assert (found.process, found.lost) == ("7 on head", ("node 2 is gone",))
    # The next call begins anew.
    HostsLog(run, "next", "8 on head", ()).close()
    found = read_hosts(run)
    assert found is not None
    assert (found.call, found.places) == ("next", ())
