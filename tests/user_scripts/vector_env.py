"""Steps copies of an environment, as actors do."""

import numpy as np

import tengen

if __name__ == "__main__":
    env = tengen.make_env("CartPole-v1", num_envs=4, seed=0)
    print(env.spec.actions)
    env.reset()
    for _ in range(10):
        step = env.step(np.zeros(4, np.int64))
        print(step.reward, step.terminated)
    env.close()
