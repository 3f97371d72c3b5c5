"""Plays one episode of CartPole with a trained agent, without tengen.

tengen train CartPole-v1 --agent ppo --frames 100k
tengen data export-onnx runs/CartPole-v1 cartpole.onnx
python examples/act_onnx.py cartpole.onnx    # needs gymnasium and onnxruntime
"""

import sys

import gymnasium
import onnxruntime

network = onnxruntime.InferenceSession(sys.argv[1])
env = gymnasium.make("CartPole-v1")
observation, _ = env.reset(seed=0)
score, is_over = 0.0, False
while not is_over:
    rows = {"observation": observation[None].astype("float32")}
    (policy,) = network.run(["policy"], rows)
    observation, reward, ended, cut, _ = env.step(policy[0].argmax())
    score, is_over = score + reward, ended or cut
print(f"return {score:.0f}")
