"""DQN in one file, as CleanRL has it, with its replay in tengen.store.

    python examples/store_dqn.py store &         # serves the replay
    python examples/store_dqn.py actor 0 &       # any number of actors with names
    python examples/store_dqn.py learner 20000   # learner steps

Nothing else of tengen is used. Each process may be killed and started again at any
time: the store continues with its content, an actor with the next item, and the learner
with its weights. For other hosts, give the store `listen` and connect with its address.
"""

import os
import signal
import sys
from pathlib import Path

import gymnasium
import numpy as np
import torch
from torch import nn

from tengen.store import Column, RateLimits, Selector, Store, StoreConfig, TableConfig

FOLDER = Path(os.environ.get("STORE_DQN", "/dev/shm/store_dqn"))
STORE, WEIGHTS = FOLDER / "store", FOLDER / "weights.pt"
REPLAY = TableConfig(
    name="replay",
    columns={
        "observation": Column(dtype="float32", shape=(4,)),
        "action": Column(dtype="int64"),
        "reward": Column(dtype="float32"),
        "terminated": Column(dtype="bool"),
    },
    sampler=Selector(kind="prioritized", exponent=0.6),
    max_items=50_000,
    # Actors wait if the learner falls behind, and the learner if the actors do.
    limits=RateLimits.ratio(samples_per_insert=8, min_size=500, error_buffer=4000),
    num_steps=2,
)


def make_net() -> nn.Module:
    """Returns the action values of an observation."""
    layers = (nn.Linear(4, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU())
    return nn.Sequential(*layers, nn.Linear(128, 2))


def serve() -> None:
    """Serves the replay until it is killed."""
    FOLDER.mkdir(exist_ok=True)
    with Store(StoreConfig.of([REPLAY], memory_bytes=64 << 20, directory=str(STORE))):
        signal.pause()


def act(name: str) -> None:
    """Inserts transitions until it is killed."""
    env, net, seen, rng = gymnasium.make("CartPole-v1"), make_net(), 0.0, np.random
    store = Store.connect(str(STORE))
    with store.writer(f"actor-{name}", "replay") as writer:
        while True:
            if WEIGHTS.exists() and (changed := WEIGHTS.stat().st_mtime) > seen:
                net.load_state_dict(torch.load(WEIGHTS, weights_only=True)["net"])
                seen = changed
            observation, _ = env.reset()
            score = 0.0
            while True:
                values = net(torch.as_tensor(observation))
                action = rng.randint(2) if rng.rand() < 0.1 else int(values.argmax())
                step = {"observation": observation, "action": np.int64(action)}
                observation, reward, terminated, truncated, _ = env.step(action)
                step |= {"reward": np.float32(reward), "terminated": terminated}
                writer.append(step)
                if score > 0:
                    writer.insert("replay", num_steps=2, priority=1.0)
                score += float(reward)
                if terminated or truncated:
                    break
            # The last transition needs the last observation; its action is not used.
            writer.append({**step, "observation": observation})
            writer.insert("replay", num_steps=2, priority=1.0)
            print(f"return {score:.0f}", flush=True)


def learn(num_steps: int) -> None:
    """Learns from the replay, and saves its weights every 100 steps."""
    net, target = make_net(), make_net()
    optimizer = torch.optim.Adam(net.parameters(), 5e-4)
    if WEIGHTS.exists():
        saved = torch.load(WEIGHTS, weights_only=True)
        net.load_state_dict(saved["net"])
        optimizer.load_state_dict(saved["optimizer"])
    target.load_state_dict(net.state_dict())
    store = Store.connect(str(STORE))
    with store.table("replay").sampler(128) as sampler:
        for number, batch in zip(range(num_steps), sampler, strict=False):
            x = {name: torch.from_dlpack(rows) for name, rows in batch.columns.items()}
            with torch.no_grad():
                best = net(x["observation"][:, 1]).argmax(1, keepdim=True)
                future = target(x["observation"][:, 1]).gather(1, best)[:, 0]
            goal = x["reward"][:, 0] + 0.99 * future * ~x["terminated"][:, 0]
            values = net(x["observation"][:, 0]).gather(1, x["action"][:, :1])[:, 0]
            weights = torch.as_tensor(batch.importance_weights(0.4))
            error = nn.functional.smooth_l1_loss(values, goal, reduction="none")
            loss = (weights * error).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            batch.ack((values - goal).abs().detach().double().numpy() + 1e-3)
            if number % 100 == 99:
                target.load_state_dict(net.state_dict())
                saved = {"net": net.state_dict(), "optimizer": optimizer.state_dict()}
                torch.save(saved, WEIGHTS.with_suffix(".part"))
                WEIGHTS.with_suffix(".part").replace(WEIGHTS)
                print(f"step {number + 1} loss {loss:.4f}", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    if sys.argv[1] == "store":
        serve()
    elif sys.argv[1] == "actor":
        act(sys.argv[2])
    else:
        learn(int(sys.argv[2]))
