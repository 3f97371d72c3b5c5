"""Plays tic-tac-toe with a trained network against itself, without tengen.

    tengen train tictactoe --minutes 1
    tengen data export-onnx runs/tictactoe tictactoe.onnx
    python examples/play_onnx.py tictactoe.onnx      # needs numpy and onnxruntime

The network's input is the board as planes, first the side to move; its output is one
logit per cell. `docs/howto/play/onnx.md` lists the planes of other games.
"""

import sys

import numpy as np
import onnxruntime

network = onnxruntime.InferenceSession(sys.argv[1])
cells = np.zeros((3, 3), int)  # 0 empty, 1 X, -1 O
lines = [
    *np.arange(9).reshape(3, 3),
    *np.arange(9).reshape(3, 3).T,
    [0, 4, 8],
    [2, 4, 6],
]
for player in (1, -1, 1, -1, 1, -1, 1, -1, 1):
    planes = np.stack([np.ones((3, 3)), cells == player, cells == -player])
    (policy,) = network.run(["policy"], {"planes": planes[None].astype(np.float32)})
    cells.flat[np.where(cells.ravel() == 0, policy[0], -np.inf).argmax()] = player
    print("\n".join(" ".join(".XO"[cell] for cell in row) for row in cells), "\n")
    if any(abs(cells.ravel()[line].sum()) == 3 for line in lines):
        break
