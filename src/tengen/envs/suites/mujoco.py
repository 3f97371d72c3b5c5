"""Gymnasium's MuJoCo tasks, version 5, such as ``mujoco/Hopper``.

Actions are continuous. Scores in version 5 are lower than in versions 2 to 4, so they
cannot be compared. Versions 2 to 4 are available under their Gymnasium ids if their
packages are installed.

Source: Todorov, Erez and Tassa 2012, "MuJoCo: A physics engine for model-based
control"; environments and versions as listed in the Gymnasium documentation.
"""

from __future__ import annotations

from tengen.envs.suites.suite import PackagedSuite

SUITE = PackagedSuite(
    prefix="mujoco/",
    package="mujoco",
    pattern=(
        r"(Ant|HalfCheetah|Hopper|HumanoidStandup|Humanoid|InvertedDoublePendulum|"
        r"InvertedPendulum|Pusher|Reacher|Swimmer|Walker2d)-v(5)"
    ),
)
"""The suite of the tasks ``mujoco/*``."""
