"""Events as runs write them, for the tests of what is drawn of them."""

from tengen.run import RunDirectory

ACTED = {"kind": "turn", "role": "actor", "turn_s": 1.0, "num_rows": 500}


def acted(time_s, mean_return, **fields):
    return {"time_s": time_s, **ACTED, "mean_return": mean_return, **fields}


def learned(time_s, num_rows, total_steps, **fields):
    return {
        "time_s": time_s,
        "kind": "turn",
        "role": "learn",
        "turn_s": 2.0,
        "num_steps": 4,
        "total_steps": total_steps,
        "loss": 0.5,
        "stopped": False,
        "checkpoint": 3,
        "grown_at": [],
        "table": {"num_items": 9, "num_rows": num_rows, "num_episodes": 7},
        **fields,
    }


def make_run(path, roles=("actor", "learn"), **config):
    run = RunDirectory.create_or_resume(path)
    run.write_run({"config": {"task": "t", **config}, "roles": list(roles)})
    return run
