"""A person plays episodes in a real browser."""

import pytest

pytest.importorskip("gymnasium")

from tests.unit.serve.playable import playing

pytestmark = pytest.mark.slow

TURN = "document.querySelector('.turn')?.innerText"


def wait(page, pattern):
    """Waits until the line about the episode matches."""
    page.wait(f"/{pattern}/.test({TURN})")


def push(page, name):
    """Clicks on a button."""
    buttons = "[...document.querySelectorAll('.buttons button')]"
    page.run(f"{buttons}.find(b => b.innerText === {name!r}).click()")


def cell_of(page):
    """Returns the index of the coloured cell in the frame of ``Lane``."""
    return page.run(
        "(() => { const c = document.querySelector('canvas').getContext('2d');"
        "return [0, 1, 2, 3].findIndex(i =>"
        " c.getImageData(i, 0, 1, 1).data.join() === '200,100,50,255'); })()"
    )


def test_a_person_plays_step_by_step(page):
    with playing(num_episodes=1, keys=["a", "ArrowRight", "x"]) as (site, _, episodes):
        page.open(site.url)
        wait(page, "^Episode 1 of 1, step 0,")
        assert page.run("location.pathname") == "/record"
        rows = page.run(
            "[...document.querySelectorAll('tbody tr')].map(r => r.innerText)"
        )
        assert [row.split("\t") for row in rows] == [
            ["0", "a"],
            ["1", "\u2192"],
            ["2", "x"],
        ]
        page.run(
            "(() => { const s = document.querySelector('select'); s.value = '';"
            "s.dispatchEvent(new Event('change', {bubbles: true})); })()"
        )
        page.press("q")
        page.press("x")
        wait(page, "step 1,")
        first = cell_of(page)
        for step in range(2, 5 - first):
            page.press("ArrowRight")
            wait(page, f"step {step},")
        wait(page, "return 1: it has ended")
        assert cell_of(page) == 3
        page.press("x")
        push(page, "Record, next episode")
        wait(page, "^All 1 episodes")
    assert episodes[0]["action"].tolist() == [2] + [1] * (3 - first)


def test_a_person_plays_in_real_time(page):
    with playing() as (site, _, episodes):
        page.open(site.url)
        wait(page, "step 0, .*press a key")
        assert page.run("document.querySelector('input').value") == "20"
        page.press("ArrowLeft")
        wait(page, "step ([3-9]|[1-9][0-9]),")  # it stays while no key is pressed
        push(page, "Pause")
        wait(page, "press a key")
        push(page, "Discard")
        wait(page, "step 0,")
        while not page.run(f"/has ended/.test({TURN})"):
            page.press("d")
        push(page, "Record, next episode")
        wait(page, "^Episode 2 of 2, step 0,")
        (episode,) = episodes
        first = int(episode["observation"][0].argmax())
        assert (episode["action"] == 1).sum() == 3 - first


def test_a_key_held_at_an_episode_s_end_does_not_act_in_the_next_one(page):
    with playing() as (site, _, episodes):
        page.open(site.url)
        wait(page, "step 0, .*press a key")
        for is_released_first in (False, True):
            page.press("d", ("keyDown",))
            wait(page, "has ended")
            if is_released_first:
                page.press("d", ("keyUp",))
            push(page, "Record, next episode")
            if not is_released_first:
                wait(page, "^Episode 2 of 2, step 0,")
                page.press("d", ("keyUp",))
                push(page, "Play")
                wait(page, "step [1-9]")
        wait(page, "^All 2 episodes")
    assert [episode["action"][0] for episode in episodes] == [1, 2]
