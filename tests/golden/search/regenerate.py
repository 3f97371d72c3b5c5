"""Rewrites the golden trees beside this file.

Run ``python tests/golden/search/regenerate.py``.

A golden tree lists all nodes of the native search's tree for one position. Regenerate
the files only if a change of the search is intended, and review the differences.
"""

import json
import pathlib

from tengen import _core
from tengen.search import SearchConfig

FOLDER = pathlib.Path(__file__).parent

CASES = {
    "tictactoe_puct": {
        "game": "tictactoe",
        "moves": [4, 0],
        "settings": {"policy": "puct"},
        "request": {"num_simulations": 150},
    },
    "tictactoe_gumbel": {
        "game": "tictactoe",
        "moves": [0],
        "settings": {"policy": "gumbel"},
        "request": {"num_simulations": 64, "explore": True, "seed": 3},
    },
    "connect4_puct_noise": {
        "game": "connect4",
        "moves": [3, 3, 2],
        "settings": {"policy": "puct", "root_temperature": 1.25},
        "request": {
            "num_simulations": 200,
            "explore": True,
            "seed": 1,
            "generation": 2,
            "game": 3,
        },
    },
    "connect4_puct_reuse": {
        "game": "connect4",
        "moves": [],
        "settings": {"policy": "puct"},
        "request": {"num_simulations": 100},
        "then": [3, 3],
    },
    "connect4_puct_forced": {
        "game": "connect4",
        "moves": [3, 2, 3],
        "settings": {"policy": "puct", "forced_playouts": 2.0, "noise_shaped": True},
        "request": {"num_simulations": 150, "explore": True, "seed": 4, "game": 2},
    },
    "gomoku_9_puct_stdev_lcb": {
        "game": "gomoku/9",
        "moves": [40, 30],
        "settings": {"policy": "puct", "cpuct_stdev_scale": 0.85, "lcb_stdevs": 5.0},
        "request": {"num_simulations": 150},
    },
    "connect4_gumbel": {
        "game": "connect4",
        "moves": [3, 3, 3, 3, 3],
        "settings": {"policy": "gumbel", "gumbel_considered": 4},
        "request": {"num_simulations": 50, "explore": True, "game": 9},
    },
    "gomoku_9_puct": {
        "game": "gomoku/9",
        "moves": [40, 41, 31],
        "settings": {"policy": "puct", "cpuct": 2.0},
        "request": {"num_simulations": 100, "explore": True, "seed": 7},
    },
    "gomoku_15_exact_gumbel": {
        "game": "gomoku/15/exact",
        "moves": [112, 113],
        "settings": {"policy": "gumbel"},
        "request": {"num_simulations": 64, "explore": True, "seed": 7},
    },
    "go_5_puct": {
        "game": "go/5",
        "moves": [12, 11, 7, 6, 8],
        "settings": {"policy": "puct", "cpuct_stdev_scale": 0.85},
        "request": {"num_simulations": 120, "explore": True, "seed": 5},
    },
    "go_5_puct_score": {
        "game": "go/5",
        "moves": [12, 11, 7],
        "settings": {"policy": "puct", "score_weight": 0.4},
        "request": {"num_simulations": 100},
        "then": [8],
    },
    "go_7_handicap_gumbel": {
        "game": "go/7/komi=0/handicap=3",
        "moves": [24, 23],
        "settings": {"policy": "gumbel"},
        "request": {"num_simulations": 64, "explore": True, "seed": 6},
    },
    "go_5_minigo": {
        "game": "go/5/nosuicide",
        "moves": [12, 11, 7],
        "settings": {"policy": "minigo", "noise_weight": 0.3},
        "request": {"num_simulations": 60, "explore": True, "seed": 8},
        "then": [8],
    },
}
"""The position, settings and request of each search, by file name."""


def search(case):
    """Returns the policy and the search tree of one case, as JSON values."""
    request = _core.SearchRequest()
    for name, value in case["request"].items():
        setattr(request, name, value)
    is_minigo = case["settings"]["policy"] == "minigo"
    hash_search = _core.minigo_hash_search if is_minigo else _core.hash_search
    result, nodes = hash_search(
        case["game"],
        case["moves"],
        SearchConfig(**case["settings"]).to_native(),
        request,
        case.get("then", []),
    )
    for node in nodes:
        # The search marks a proven loss with minus infinity, which JSON lacks.
        node["edges"] = [
            [action, prior, visits, None if total < -1e30 else total, child]
            for action, prior, visits, total, child in node["edges"]
        ]
    return {
        "case": case,
        "best_action": result.best_action,
        "policy": [[a.action, a.policy] for a in result.actions],
        "nodes": list(nodes),
    }


def _rounded(value):
    """Rounds floats to nine digits, enough to distinguish all float32 values."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(item) for item in value]
    return value


def main():
    """Writes the files of all cases, with one node per line for readable diffs."""
    for name, case in CASES.items():
        tree = _rounded(search(case))
        nodes = ",\n".join(json.dumps(node) for node in tree.pop("nodes"))
        head = json.dumps(tree)[:-1]
        text = f'{head},\n"nodes": [\n{nodes}\n]}}\n'
        (FOLDER / f"{name}.json").write_text(text)


if __name__ == "__main__":
    main()
