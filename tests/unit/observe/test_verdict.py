import pytest

from tengen.observe import Shares, verdict


def test_the_whole_line():
    shares = Shares(inference_busy=0.94, actors_wait=0.03, learner_idle=0.61)
    assert verdict(shares) == (
        "inference 94% busy; actors wait 3%; learner idle 61%: add actors"
    )


@pytest.mark.parametrize(
    ("shares", "advice"),
    [
        ((0.5, 0.1, 0.1, {}), "balanced"),
        (
            (0.3, 0.1, 0.02, {"actors_blocked": 0.6}),
            "the learner limits; give it more cores or a device",
        ),
        (
            (0.95, 0.6, 0.5, {}),
            "inference limits; add a device or use a smaller net",
        ),
        (
            (0.4, 0.6, 0.5, {"batch_fill": 0.3}),
            "batches run part empty; add slots to the actors",
        ),
        ((0.4, 0.6, 0.5, {}), "inference starts late; add inference threads"),
        (
            (0.8, 0.1, 0.7, {"cores_busy": 0.97}),
            "every core is busy; add cores or use a smaller net",
        ),
        ((0.8, 0.1, 0.7, {"cores_busy": 0.5}), "add actors"),
        (
            (0.1, 0.1, 0.7, {"actors_blocked": 0.7}),
            "the rate limiter holds both sides; lower its minimum size",
        ),
    ],
)
def test_advice(shares, advice):
    busy, wait, idle, rest = shares
    line = verdict(
        Shares(inference_busy=busy, actors_wait=wait, learner_idle=idle, **rest)
    )
    assert line.rpartition(": ")[2] == advice


def test_blocked_actors_are_shown_only_when_it_matters():
    shares = {"inference_busy": 0.5, "actors_wait": 0.1, "learner_idle": 0.1}
    assert "blocked" not in verdict(Shares(**shares, actors_blocked=0.1))
    line = verdict(Shares(**shares, actors_blocked=0.4))
    assert "; actors blocked by the store 40%: " in line
