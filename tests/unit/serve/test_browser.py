"""The pages in a real browser: interaction, display and requests."""

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
        assert "moves that an exact solver calls optimal" in text(page, ".players")
        # Without a run the players come first, in columns: name, strength, link.
        assert page.run(
            "document.querySelector('.players').compareDocumentPosition("
            "document.querySelector('.empty')) === Node.DOCUMENT_POSITION_FOLLOWING"
        )
        tops = page.run(
            "[...document.querySelector('.opponent').children]"
            ".map(part => part.getBoundingClientRect().top)"
        )
        assert len(tops) == 3
        assert tops == sorted(set(tops))
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
    paths = ["/", "/environments", "/store"]
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
    for path in ("/", "/runs/tictactoe", "/runs/go~5/play", "/runs/go~5/games"):
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
