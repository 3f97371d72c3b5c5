"""Board games: native games by name, and user-defined games that implement `OwnGame`.

state = tengen.games.make("connect4").new_state()
while not state.is_terminal():
    state.apply(random.choice(state.legal_actions()))
print(state, state.returns())
"""

from tengen.games.book import (
    Book,
    openings_text,
    parse_book,
    read_book,
    read_book_bytes,
)
from tengen.games.check import check_own_game
from tengen.games.framed import Framed
from tengen.games.go_rules import go_result
from tengen.games.go_variety import GoVariety, variants_of
from tengen.games.openspiel import OPENSPIEL_PREFIX
from tengen.games.planes import stone_planes, transform_cell, transform_planes
from tengen.games.positions import (
    mean_random_plies,
    position_after,
    random_positions,
)
from tengen.games.program import load_program
from tengen.games.protocol import Game, OwnGame, Planes, PolicyLayout, State
from tengen.games.registry import is_game, make, names, open_game
from tengen.games.source import CoreGame, core_game, is_external
from tengen.games.typed import (
    add_task_argument,
    allow,
    check_allowed,
    check_typed,
    is_program,
    task_words,
)

__all__ = [
    "OPENSPIEL_PREFIX",
    "Book",
    "CoreGame",
    "Framed",
    "Game",
    "GoVariety",
    "OwnGame",
    "Planes",
    "PolicyLayout",
    "State",
    "add_task_argument",
    "allow",
    "check_allowed",
    "check_own_game",
    "check_typed",
    "core_game",
    "go_result",
    "is_external",
    "is_game",
    "is_program",
    "load_program",
    "make",
    "mean_random_plies",
    "names",
    "open_game",
    "openings_text",
    "parse_book",
    "position_after",
    "random_positions",
    "read_book",
    "read_book_bytes",
    "stone_planes",
    "task_words",
    "transform_cell",
    "transform_planes",
    "variants_of",
]
