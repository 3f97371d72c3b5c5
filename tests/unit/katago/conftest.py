"""A shared cache, so that models of KataGo's networks are built once for all tests."""

import pytest


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory):
    """Returns the cache folder, which is not the user's."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield folder / "tengen" / "katago"
