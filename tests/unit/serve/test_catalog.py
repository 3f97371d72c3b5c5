import pytest

from tengen.errors import UsageError
from tengen.run import RunDirectory
from tengen.serve.catalog import Catalog
from tests.refusals import refused


def make(path):
    run = RunDirectory.create_or_resume(path)
    run.write_run({"config": {"task": "tictactoe"}})
    return run


def test_runs_below_a_folder_have_ids_and_new_ones_appear(tmp_path):
    folder = tmp_path / "runs"
    catalog = Catalog([], folder)
    assert catalog.runs() == {}
    make(folder / "go" / "9")
    make(folder / "a b")
    make(folder / "a" / "b")
    assert list(catalog.runs()) == ["a~b", "a~b~2", "go~9"]
    assert catalog.name(catalog.find("go~9")) == "go/9"
    assert catalog.find("go~9").path == folder / "go" / "9"


def test_named_runs_are_all_that_there_is(tmp_path):
    make(tmp_path / "runs" / "other")
    catalog = Catalog([make(tmp_path / "mine").path], tmp_path / "runs")
    assert [run.path for run in catalog.runs().values()] == [tmp_path / "mine"]


def test_a_link_leads_nowhere(tmp_path):
    outside = make(tmp_path / "outside")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "link").symlink_to(outside.path)
    assert Catalog([], tmp_path / "runs").runs() == {}


@pytest.mark.parametrize("name", ["", "..", "../outside", "go/9", "go~9~", "\0"])
def test_other_ids_are_refused(tmp_path, name):
    make(tmp_path / "runs" / "go" / "9")
    with refused(UsageError, f"run ({name!r})"):
        Catalog([], tmp_path / "runs").find(name)


def test_what_is_no_run_is_refused(tmp_path):
    with refused(UsageError, f"run ({tmp_path})"):
        Catalog([tmp_path], tmp_path)
