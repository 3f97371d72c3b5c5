"""The recipe for environments: an agent with the defaults of its own file."""

from __future__ import annotations

from tengen import envs
from tengen.agents import Agent
from tengen.agents.default_nets import shows_screens
from tengen.inference import InferenceConfig, has_bfloat16
from tengen.roles import RunConfig

__all__ = ["environment"]


def environment(agent: str, task: str, num_threads: int) -> RunConfig:
    """Returns the config for any environment; observations decide the network.

    Args:
        agent: The agent's kind.
        task: The environment.
        num_threads: Threads of the CPU, which change nothing.
    """
    spec = envs.env_spec(task)
    made = Agent.kinds()[agent]().for_environment(spec)
    return RunConfig(
        task=task,
        agent=made,
        recipe=agent,
        minutes=3.0,
        net=made.default_net(spec),
        learner=made.default_learner(spec),
        store=made.default_store(spec),
        # Small networks gain nothing from OpenVINO, and only torch runs recurrent ones.
        inference=InferenceConfig(
            devices="cpu",
            backend="torch",
            precision="bf16" if shows_screens(spec) and has_bfloat16() else "fp32",
            batch_shape="dynamic",
        ),
    )
