"""Recipes for environments by actor and learner."""

from __future__ import annotations

from tengen.actors import EnvironmentActorConfig
from tengen.inference import InferenceConfig
from tengen.learners import AdamWConfig, LearnerConfig, VtraceConfig
from tengen.nets import MlpConfig
from tengen.recipes.resources import Resources
from tengen.roles import RunConfig
from tengen.store import QueueConfig

__all__ = ["classic_control"]


def classic_control(task: str, resources: Resources) -> RunConfig:
    """CartPole and its like: a small network, one process."""
    return RunConfig(
        task=task,
        agent="vtrace",
        recipe="classic-control",
        minutes=3.0,
        net=MlpConfig(),
        actor=EnvironmentActorConfig(),
        learner=LearnerConfig(
            batch_size=16,
            num_shards=1,
            optimizer=AdamWConfig(
                learning_rate=4e-3,
                weight_decay=0.0,
                num_warmup_steps=0,
                max_grad_norm=40.0,
                # An average would act with weights of a hundred steps ago.
                average_decay=0.0,
            ),
        ),
        loss=VtraceConfig(),
        store=QueueConfig(),
        # A vector network is too small to gain from a compiler.
        inference=InferenceConfig(
            devices="cpu", backend="torch", precision="fp32", batch_shape="dynamic"
        ),
    )
