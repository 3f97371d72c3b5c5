"""Where a run's services are: the run's own, and not those of what it is a copy of."""

import shutil

import pytest

from tengen.errors import RunError
from tengen.run import (
    RunDirectory,
    read_endpoint,
    remove_services,
    service_folder,
    write_endpoint,
)
from tests.refusals import refused


@pytest.fixture
def runs(tmp_path):
    """Returns a run with a service, and a copy of it."""
    run = RunDirectory.create_or_resume(tmp_path / "run")
    write_endpoint(run, "store", "tcp://127.0.0.1:1")
    shutil.copytree(run.path, tmp_path / "copy")
    return run, RunDirectory(tmp_path / "copy")


def test_a_service_is_found_where_it_was_published(runs):
    run, _ = runs
    found = read_endpoint(run, "store")
    assert found.reached("store") == str(service_folder(run, "store"))


def test_a_copy_of_a_run_has_services_of_its_own(runs):
    run, copy = runs
    assert service_folder(run, "store") != service_folder(copy, "store")
    with refused(RunError, "copy"):
        read_endpoint(copy, "store")
    folder = service_folder(run, "store")
    folder.mkdir()
    try:
        remove_services(copy)
        assert folder.exists()
        remove_services(run)
        assert not folder.exists()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_a_moved_run_keeps_its_services(runs, tmp_path):
    run, _ = runs
    folder = service_folder(run, "store")
    run.path.rename(tmp_path / "moved")
    assert service_folder(RunDirectory(tmp_path / "moved"), "store") == folder
