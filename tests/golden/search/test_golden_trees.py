"""The native search must build the golden trees of this folder, node by node.

Visits, proofs and the order of edges must be equal. Sums and priors have a tolerance,
because log, pow and cos may differ in the last bit between systems.
"""

import importlib.util
import json
import pathlib

import pytest

FOLDER = pathlib.Path(__file__).parent


def load_regenerate():
    spec = importlib.util.spec_from_file_location(
        "regenerate_trees", FOLDER / "regenerate.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


regenerate = load_regenerate()


def test_every_case_is_stored():
    assert {path.stem for path in FOLDER.glob("*.json")} == set(regenerate.CASES)


@pytest.mark.parametrize("name", regenerate.CASES)
def test_tree(name):
    golden = json.loads((FOLDER / f"{name}.json").read_text())
    assert golden["case"] == regenerate.CASES[name]
    tree = regenerate.search(golden["case"])
    assert tree["best_action"] == golden["best_action"]
    assert [a for a, _ in tree["policy"]] == [a for a, _ in golden["policy"]]
    assert [p for _, p in tree["policy"]] == pytest.approx(
        [p for _, p in golden["policy"]], abs=1e-5
    )
    assert len(tree["nodes"]) == len(golden["nodes"])
    for index, (node, stored) in enumerate(
        zip(tree["nodes"], golden["nodes"], strict=True)
    ):
        edges, stored_edges = node.pop("edges"), stored.pop("edges")
        for key in ("value_sum", "value_to_play", "score"):
            found = node.pop(key, None)
            assert found == pytest.approx(stored.pop(key, None), abs=1e-4), index
        assert node == stored, index
        assert len(edges) == len(stored_edges), index
        for edge, stored_edge in zip(edges, stored_edges, strict=True):
            action, prior, visits, value_sum, child = stored_edge
            assert [edge[0], edge[2], edge[4]] == [action, visits, child], index
            assert edge[1] == pytest.approx(prior, abs=1e-6), index
            if value_sum is None:
                assert edge[3] is None, index
            else:
                assert edge[3] == pytest.approx(value_sum, abs=1e-4), index
