#include "selfplay/testing.h"

namespace tengen {

TENGEN_SELFPLAY_OF(, Connect4)
TENGEN_SELFPLAY_OF(, Go)
TENGEN_SELFPLAY_OF(, Gomoku)
TENGEN_SELFPLAY_OF(, TicTacToe)
TENGEN_SEARCHED_OF(, Connect4)
TENGEN_SEARCHED_OF(, Gomoku)
TENGEN_SEARCHED_OF(, TicTacToe)

}  // namespace tengen
