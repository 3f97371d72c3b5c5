"""Prints the learning curves of several seeds."""

import tengen

if __name__ == "__main__":
    for seed in range(3):
        run = tengen.train(
            "CartPole-v1",
            agent="a2c",
            frames=100_000,
            seed=seed,
            out=f"runs/cartpole-{seed}",
        )
        for row in run.curves().rows:
            print(seed, row["frames"], row["return_mean"])
