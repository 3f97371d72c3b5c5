"""Trains PPO with other settings, and stops when the return is high enough."""

import tengen
from tengen.observe import Progress


def is_unsolved(progress: Progress) -> bool:
    """Returns False to end training."""
    return (progress.mean_return or 0.0) < 450.0


if __name__ == "__main__":
    run = tengen.train(
        "CartPole-v1",
        agent="ppo",
        frames=500_000,
        settings={"learner.optimizer.learning_rate": 3e-4, "agent.discount": 0.98},
        on_progress=is_unsolved,
    )
    print(run.evaluate(20)["mean_return"])
