"""The pages in a real browser: interaction, display and requests."""

import json

import pytest

from tests.unit.serve.made_runs import learned, write_events
from tests.unit.serve.served import serving

pytestmark = pytest.mark.slow


def text(page, selector):
    return page.run(f"document.querySelector({selector!r})?.innerText ?? ''")


def test_the_runs_are_listed_and_lead_on(page, site, shelf):
    page.open(site.url)
    page.wait("document.querySelectorAll('.card').length === 6")
    assert "105 \u00b1 50" in text(page, ".cards")
    assert "self-play 80%: all is well" in text(page, ".cards")
    page.click("a[href='/runs/go~5']")
    page.wait("document.querySelector('.run-header h1')?.innerText === 'go/5'")
    assert page.run("location.pathname") == "/runs/go~5"
    page.wait("document.querySelectorAll('.chart canvas').length >= 4")
    charts = page.run("document.querySelector('.charts').innerText")
    assert "Accuracy" in charts
    assert "the search's move 40 %" in charts
    assert "105 \u00b1 50" in text(page, ".facts")
    # The canvas uses the page's colours.
    page.wait(
        "(() => { const c = document.querySelector('.chart canvas');"
        "const { data } = c.getContext('2d').getImageData(0, 0, c.width, c.height);"
        "for (let i = 0; i < data.length; i += 4)"
        "  if ([11, 110, 105].every((part, j) => data[i + j] === part)) return true;"
        "return false; })()"
    )
    page.run("history.back()")
    page.wait("document.querySelectorAll('.card').length === 6")


def test_a_curve_moves_while_one_looks(page, publish_run, tmp_path):
    run = publish_run(tmp_path / "live", "tictactoe", exports=False)
    run.write_run({"config": {"task": "tictactoe"}})
    writer = write_events(run, range(1, 4))
    with serving([run.path]) as live:
        name = live.ask("/api/runs").json[0]["id"]
        page.open(f"{live.url}/runs/{name}")
        charts = "[...document.querySelectorAll('.chart')]"
        loss = f"{charts}.find(c => /^Loss/.test(c.innerText))"
        page.wait(f"{loss}?.dataset.points === '3'")
        page.wait(f"{loss}.querySelector('canvas') !== null")
        before = page.run(f"{loss}.querySelector('canvas').toDataURL()")
        writer.write("turn", **learned(50, 0.125))
        page.wait(f"{loss}.dataset.points === '4'")
        assert "0.125" in page.run(f"{loss}.innerText")
        page.wait(f"{loss}.querySelector('canvas').toDataURL() !== {before!r}")
        page.leave()
    writer.close()


@pytest.mark.parametrize("run", ["gomoku~7", "go~5"])
def test_a_whole_game_is_played_by_clicks(page, site, run):
    page.open(f"{site.url}/runs/{run}/play")
    page.wait("document.querySelector('.turn')?.innerText === 'Your turn, Black.'")
    page.run(
        "(() => { const s = document.querySelectorAll('select')[1]; s.value = '1';"
        "s.dispatchEvent(new Event('change', {bubbles: true})); })()"
    )
    is_over = "document.querySelector('.turn-over') !== null"
    is_turn = "/^Your turn/.test(document.querySelector('.turn').innerText)"
    for _ in range(60):
        if page.wait(f"{is_over} ? 'over' : {is_turn} && 'turn'") == "over":
            break
        played = page.run("document.querySelectorAll('.moves li').length")
        place = page.run("document.querySelector('.can-play')?.dataset.action")
        if place is None or (run == "go~5" and played >= 8):
            page.click(".buttons button")  # pass, until the opponent passes as well
        else:
            page.click(f"[data-action='{place}']")
        page.wait(
            f"{is_over} || document.querySelectorAll('.moves li').length > {played + 1}"
        )
    else:
        pytest.fail("the game never ends")
    assert text(page, ".turn").split(".")[0] in ("You win", "You lose", "A draw")
    page.click(".main-button")
    page.wait("document.querySelectorAll('.moves li').length === 0")


def test_one_plays_a_bundled_player_without_any_run(page, tmp_path):
    with serving([], folder=tmp_path) as bare:
        page.open(bare.url)
        page.wait("document.querySelector(\"a[href='/players/connect4']\") !== null")
        assert "according to an exact solver." in text(page, ".players")
        # Without a run the players come first.
        assert page.run(
            "document.querySelector('.players').compareDocumentPosition("
            "document.querySelector('.empty')) === Node.DOCUMENT_POSITION_FOLLOWING"
        )
        page.click("a[href='/players/connect4']")
        page.wait("document.querySelector('.turn')?.innerText.startsWith('Your turn')")
        assert "1 beginner (" in text(page, "fieldset")
        assert "Model" not in text(page, "fieldset")
        page.click("[data-action='3']")
        page.wait(
            "document.querySelector('.turn')?.innerText.startsWith('Your turn')"
            " && document.querySelectorAll('.moves li').length === 2"
        )
        page.leave()


def test_the_page_play_lists_players_and_runs_of_games(page, site):
    page.open(f"{site.url}/runs/go~5")
    page.click("nav[aria-label='Pages'] a[href='/play']")
    page.wait("document.querySelectorAll('.opponent').length === 6 + 4")
    players, runs = page.run(
        "[...document.querySelectorAll('.players')].map(part => part.innerText)"
    )
    assert "Beats GNU Go level 10 in 18 of 20 games." in players
    assert "Never loses." in players
    assert "CartPole" not in runs
    assert "go/5" in runs
    boards = "document.querySelectorAll('.opponent .small-board svg').length"
    assert page.run(boards) == 10
    current = "document.querySelector('nav [aria-current]').innerText"
    assert page.run(current) == "Play"
    # The link covers the card: a click on the board opens the game.
    page.click("li:has(a[href='/runs/go~5/play']) .small-board")
    page.wait("location.pathname === '/runs/go~5/play'")
    assert page.run(current) == "Play"


# Red wins, because Yellow lets three discs become open on both sides with move 4.
LOST = [3, 3, 2, 6, 4, 1, 5]


def open_lost_game(page, site):
    """Opens a finished game against the bundled player, in which the person is Red."""
    page.open(f"{site.url}/players/connect4")
    page.wait("document.querySelector('.can-play') !== null")
    kept = {"moves": LOST, "person": 0, "model": None}
    name = "tengen-game players/connect4 connect4"
    page.run(f"localStorage.setItem({name!r}, {json.dumps(json.dumps(kept))})")
    page.open(f"{site.url}/players/connect4")
    page.wait("document.querySelector('.turn-over')?.innerText.startsWith('You win')")


REVIEW = ".buttons button:nth-child(4)"


def test_a_finished_game_is_reviewed(page, site):
    open_lost_game(page, site)
    assert text(page, REVIEW) == "Review the game"
    page.click(REVIEW)
    page.wait("document.querySelector('.worst') !== null")
    # All eight positions are on the curve; at the end the person has won.
    assert page.run("document.querySelector('.review .chart').dataset.points") == "8"
    assert "100 %" in text(page, ".review figcaption")
    losses = page.run(
        "[...document.querySelectorAll('.worst button')].map(b => b.innerText)"
    )
    assert 1 <= len(losses) <= 3
    blunder = next(i for i, loss in enumerate(losses, 1) if "Move 4" in loss)
    assert "column 6 by Yellow (model)" in losses[blunder - 1]
    assert "to 0 %. Better: column 1" in losses[blunder - 1]
    page.click(f".worst li:nth-child({blunder}) button")
    page.wait("document.querySelector('.hint') !== null")
    assert text(page, ".turn") == (
        "Move 4: Yellow (model) played column 6. Better: column 1."
    )
    discs = "document.querySelectorAll('.board .disc-0, .board .disc-1').length"
    assert page.run(discs) == 3
    assert page.run("document.querySelector('.can-play')") is None
    # By the keyboard, one goes on to the next position.
    page.run("document.querySelector('.review input').focus()")
    page.press("ArrowRight")
    page.wait(f"{discs} === 4")
    page.click(".main-button")
    page.wait("document.querySelector('.review') === null")


def test_a_review_can_be_cancelled_and_tells_errors(page, site):
    open_lost_game(page, site)
    page.run("window.asks = window.fetch")
    page.run("window.fetch = (path, options) => new Promise(() => {})")
    page.click(REVIEW)
    page.wait("document.querySelector('.review progress') !== null")
    assert text(page, REVIEW) == "Cancel the review"
    page.click(REVIEW)
    page.wait("document.querySelector('.review') === null")
    assert text(page, REVIEW) == "Review the game"
    page.run("window.fetch = () => Promise.reject(new Error('away'))")
    page.click(REVIEW)
    page.wait("document.querySelector('.trouble') !== null")
    assert text(page, ".trouble") == "the server does not answer"
    page.run("window.fetch = window.asks")
    page.click(REVIEW)
    page.wait("document.querySelector('.worst') !== null")
    assert page.run("document.querySelector('.trouble')") is None


def tick(page, name):
    """Ticks the run with this name on the page Runs."""
    page.wait("document.querySelectorAll('.card').length === 6")
    page.run(
        "[...document.querySelectorAll('.card')]"
        f".find(card => card.querySelector('h2').innerText === {name!r})"
        ".querySelector('input').click()"
    )


def test_runs_are_compared_in_one_chart(page, site):
    page.open(site.url)
    tick(page, "CartPole-v1/seed1")
    page.wait("/Tick another/.test(document.querySelector('.compare-bar')?.innerText)")
    tick(page, "CartPole-v1/seed2")
    page.click(".compare-bar a")
    page.wait("document.querySelector('.chart canvas') !== null")
    assert page.run("location.pathname + location.search") == (
        "/compare?runs=CartPole-v1~seed1,CartPole-v1~seed2"
    )
    assert page.run("document.querySelectorAll('.chart').length") == 1
    keys = text(page, ".chart-keys")
    assert "CartPole-v1/seed1 40" in keys
    assert "CartPole-v1/seed2 80" in keys
    assert page.run("document.querySelectorAll('.chart .swatch-1').length") == 1
    assert "cannot be compared" not in text(page, "article")
    axis = "document.querySelector('.chart-table th').textContent"
    assert page.run(axis) == "agent steps"
    page.click(".choice button:nth-child(2)")
    page.wait(f"{axis}.startsWith('hours')")
    assert "seed\t1\t2" in text(page, ".more")
    # The way back keeps what was ticked.
    page.click(".run-header a")
    page.wait("document.querySelectorAll('.card input:checked').length === 2")


def test_what_cannot_be_compared_is_said(page, site):
    runs = "tictactoe,connect4,CartPole-v1~seed1,gone"
    page.open(f"{site.url}/compare?runs={runs}")
    page.wait("document.querySelectorAll('.chart').length === 2")
    told = text(page, ".limits")
    assert "rating of tictactoe, connect4; mean return of CartPole-v1/seed1" in told
    assert "tictactoe, connect4 are different tasks" in told
    assert "is not served here" in text(page, ".trouble")
    assert "tictactoe 105, connect4 105" in page.run(
        "document.querySelector('.chart-place').ariaLabel"
    )
    page.errors.clear()  # the refusal, as logged by the browser


@pytest.mark.parametrize("path", ["/runs/%E0%A4", "/runs/gone"])
def test_an_address_of_no_run_has_a_heading_and_a_way_on(page, tmp_path, path):
    with serving([], folder=tmp_path) as bare:
        page.open(bare.url + path)
        page.wait("document.querySelector('.trouble') !== null")
        assert "is not served here" in text(page, ".trouble")
        assert text(page, "h1") == path.split("/")[2]
        page.click("main a[href='/']")
        page.wait("document.querySelector('.players') !== null")
        page.errors.clear()  # the refusal, as logged by the browser
        page.leave()


def test_one_plays_by_the_keyboard_and_takes_back(page, site):
    page.open(f"{site.url}/runs/tictactoe/play")
    page.wait("document.querySelector('.can-play') !== null")
    # The board is a single tab stop at its centre; arrow keys move within it.
    assert page.run("document.querySelectorAll('.board [tabindex=\"0\"]').length") == 1
    page.run("document.querySelector('.board [tabindex=\"0\"]').focus()")
    page.press("ArrowUp")
    page.press("ArrowLeft")
    focused = page.run("document.activeElement.getAttribute('aria-label')")
    assert focused == "a3, empty"
    page.press("Enter")
    page.wait("document.querySelectorAll('.moves li').length === 2")
    assert page.run(
        "document.querySelector('[data-action=\"0\"]').ariaLabel"
    ).startswith("a3, X")
    assert page.run("document.querySelector('[aria-live]') !== null")
    page.click(".buttons button:nth-child(2)")
    page.wait("document.querySelectorAll('.moves li').length === 0")
    page.wait("document.querySelector('.can-play') !== null")


def test_one_sees_what_it_thinks(page, site):
    page.open(f"{site.url}/runs/connect4/play")
    page.click(".check input")
    page.click("[data-action='3']")
    page.wait("document.querySelectorAll('.thoughts tbody tr').length > 2")
    page.wait("document.querySelector('.can-play') !== null")
    page.click(".buttons button:nth-child(1)")
    page.wait("document.querySelector('.hint') !== null")
    page.wait("document.querySelector('.shade') !== null")
    # A reloaded page continues the game.
    page.open(f"{site.url}/runs/connect4/play")
    page.wait("document.querySelectorAll('.moves li').length === 2")


def test_a_kept_game_is_walked_through(page, site):
    page.open(f"{site.url}/runs/go~5/games?of=selfplay-0.1.000001&game=1")
    page.wait("document.querySelector('.player') !== null")
    page.click(".player button:nth-child(1)")
    page.wait("/^Start of/.test(document.querySelector('.turn').innerText)")
    page.run("document.activeElement.blur()")
    page.press("ArrowRight")
    page.wait("/^Move 1 of .*opening/.test(document.querySelector('.turn').innerText)")
    page.wait("document.querySelector('.shade') !== null")
    # A button that becomes disabled keeps the focus.
    page.run("document.querySelector('.player button:nth-child(5)').focus()")
    page.press("Enter")
    page.wait("document.querySelectorAll('.player .unready').length === 2")
    assert page.run("document.activeElement.ariaLabel") == "To the end"
    page.run("document.activeElement.blur()")
    page.press("Home")
    page.wait("/^Start of/.test(document.querySelector('.turn').innerText)")
    page.press("End")
    page.wait("document.querySelectorAll('.player .unready').length === 2")
    page.click(".player button:nth-child(2)")
    page.click(".play-side > button")
    page.wait("document.querySelectorAll('.play-side .actions th').length === 5")


def test_environments_and_stores_are_shown(page, site):
    page.open(f"{site.url}/environments")
    page.wait("document.querySelector('.chart canvas') !== null")
    assert page.run("document.querySelectorAll('video').length") == 2
    page.click("a[href='/store']")
    # Screen readers continue at the newly opened page.
    page.wait("document.activeElement.id === 'main'")
    page.wait("document.querySelectorAll('.task').length === 6")


def test_a_phone_needs_no_scrolling_sideways(page, site):
    page.resize(360, 740)
    paths = ["/", "/play", "/environments", "/store"]
    paths.append("/compare?runs=CartPole-v1~seed1,CartPole-v1~seed2")
    for run in ("tictactoe", "connect4", "gomoku~7", "go~5"):
        paths += [f"/runs/{run}{page}" for page in ("", "/games", "/play")]
    for path in paths:
        page.open(site.url + path)
        page.wait("document.querySelector('h1') !== null")
        page.wait("document.querySelector('.waiting') === null")
        wide = page.run("document.documentElement.scrollWidth")
        assert wide <= 360, path


def test_every_control_has_a_name_and_dark_is_dark(page, site):
    page.dark()
    for path in (
        "/",
        "/play",
        "/runs/tictactoe",
        "/runs/go~5/play",
        "/runs/go~5/games",
    ):
        page.open(site.url + path)
        page.wait("document.querySelector('.waiting') === null && document.title")
        nameless = page.run(
            "[...document.querySelectorAll('button, a, input, select')].filter(e =>"
            "!e.innerText.trim() && !e.ariaLabel && !e.closest('label'))"
            ".map(e => e.outerHTML)"
        )
        assert nameless == []
        assert page.run("document.querySelectorAll('h1').length") == 1
    assert page.run("getComputedStyle(document.body).backgroundColor") == (
        "rgb(22, 22, 20)"
    )
    page.click(".theme")  # from auto to light
    page.wait(
        "getComputedStyle(document.body).backgroundColor === 'rgb(250, 248, 244)'"
    )
