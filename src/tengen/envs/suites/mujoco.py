"""MuJoCo's continuous control, Gymnasium's version 5: ``mujoco/Hopper``.

Actions are real numbers. Scores of version 5 are lower than those of versions 2 to 4
and cannot be compared with them. Versions 2 to 4 are available by their Gymnasium ids,
where their packages are installed.

Source: Todorov, Erez and Tassa 2012, "MuJoCo: A physics engine for model-based
control"; environments and versions as the Gymnasium documentation lists them.
"""

from __future__ import annotations

from tengen.envs.suites.suite import PackagedSuite

__all__ = ["SUITE"]

SUITE = PackagedSuite(
    prefix="mujoco/",
    package="mujoco",
    pattern=(
        r"(Ant|HalfCheetah|Hopper|HumanoidStandup|Humanoid|InvertedDoublePendulum|"
        r"InvertedPendulum|Pusher|Reacher|Swimmer|Walker2d)-v(5)"
    ),
)
"""The tasks ``mujoco/*``."""
