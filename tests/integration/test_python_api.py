"""``tengen.train`` and ``tengen.Run`` in programs of users, in folders of their own."""

import json
import subprocess
import sys

import pytest

import tengen
from tengen.errors import TengenWarning, UsageError
from tests.refusals import refused

pytest.importorskip("gymnasium")

ENV = """
import gymnasium

class Corridor(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0.0, 5.0, (1,))
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = 0
        return self.seen(), {}

    def step(self, action):
        self.place = max(0, self.place + (1 if action else -1))
        return self.seen(), -1.0, self.place == 5, False, {}

    def seen(self):
        return self.observation_space.low + self.place
"""

SCRIPT = """
import json, sys
import tengen
from corridor import Corridor

class Short(Corridor):
    pass

def make():
    return Short()

if __name__ == "__main__":
    out = sys.argv[1]
    seen = []
    run = tengen.train(
        Short, agent="ppo", frames=1000, out=out + "/a", threads=1,
        settings={"learner.batch_size": 8, "net.activation": "relu"},
        on_progress=seen.append,
    )
    with run.agent() as agent:
        agent.reset()
        action = int(agent.act([0.0]))
    stopped = tengen.train(
        make, agent="ppo", frames=10_000_000, out=out + "/b", threads=1,
        on_progress=lambda progress: (progress.num_steps or 0) < 1,
    )
    print(json.dumps({
        "result": run.result,
        "num_seen": len(seen),
        "action": action,
        "measured": run.evaluate(2, seed=3),
        "status": run.status(),
        "stopped": stopped.result,
    }))
"""


def run_script(folder, text, *words):
    (folder / "corridor.py").write_text(ENV)
    (folder / "script.py").write_text(text)
    return subprocess.run(
        [sys.executable, str(folder / "script.py"), *words],
        cwd="/",
        capture_output=True,
        text=True,
        timeout=600,
    )


def test_a_class_of_the_script_is_trained(tmp_path):
    done = run_script(tmp_path, SCRIPT, str(tmp_path))
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["result"]["num_rows"] >= 1000
    assert told["result"]["reason"] == "budget"
    assert told["num_seen"] > 1
    assert told["action"] in (0, 1)
    assert told["measured"]["episodes"] == 2
    assert told["status"]["num_models"] >= 1
    assert told["stopped"]["reason"] == "stopped"
    config = tengen.Run(tmp_path / "a").status()
    assert config["task"] == "script:Short"
    assert tengen.Run(tmp_path / "b").task == "script:make"


def test_a_script_that_trains_when_it_is_imported_is_refused(tmp_path):
    head, _, _ = SCRIPT.partition("if __name__")
    call = f"tengen.train(Short, agent='ppo', frames=500, out={str(tmp_path / 'a')!r})"
    done = run_script(tmp_path, head + call)
    assert done.returncode == 1
    assert "task (script:Short)" in done.stderr.splitlines()[-1]
    assert "__main__" in done.stderr.splitlines()[-1]
    assert not (tmp_path / "a").exists()


def test_an_error_of_on_progress_ends_the_call_and_loses_nothing(tmp_path):
    def fail(progress):
        if (progress.num_steps or 0) > 200:
            raise ZeroDivisionError

    out = tmp_path / "run"
    with pytest.raises(ZeroDivisionError):
        tengen.train(
            "CartPole-v1", agent="ppo", frames=10**7, out=out, on_progress=fail
        )
    before = tengen.Run(out).status()["progress"]["num_steps"]
    run = tengen.train("CartPole-v1", agent="ppo", frames=500, out=out)
    assert run.result["num_steps"] > before > 0


def test_a_game_is_measured_against_an_opponent(tmp_path):
    run = tengen.train(
        tengen.make_game("tictactoe"),
        games=64,
        out=tmp_path / "run",
        threads=1,
        settings=["agent.rating.final_games=0", "agent.rating.time_share=0"],
    )
    assert run.evaluate(4, against="random")["games"] == 4
    assert run.evaluate(2)["games"] == 2
    assert run.curves().rows
    opened = tengen.Run(tmp_path / "run")
    assert (opened.task, opened.result) == ("tictactoe", {})
    with opened.player(0) as player:
        assert player.choose([4]) in range(9)
    with refused(UsageError, "task (tictactoe)"):
        opened.agent()
    with refused(UsageError, "run (", "nowhere"):
        tengen.Run(tmp_path / "nowhere")


def test_a_call_that_learned_nothing_warns(tmp_path):
    settings = {"agent.rating.final_games": 0, "store.min_rows": 100_000}
    with pytest.warns(TengenWarning) as caught:
        run = tengen.train(
            "tictactoe", games=16, out=tmp_path / "run", threads=1, settings=settings
        )
    assert run.result["exit_code"] == 1
    assert "rows (" in str(caught[0].message)


def test_a_run_of_ones_own_task_is_opened_with_the_class(tmp_path):
    done = run_script(tmp_path, SCRIPT, str(tmp_path))
    assert done.returncode == 0, done.stderr
    text = (
        "import sys, tengen\nfrom script import Short\n"
        "print(tengen.Run(sys.argv[1], Short).evaluate(1)['episodes'])"
    )
    command = [sys.executable, "-c", text, str(tmp_path / "a")]
    opened = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert opened.stdout == "1\n", opened.stderr
    with refused(UsageError, "task (go/9)"):
        tengen.Run(tmp_path / "a", "go/9")
