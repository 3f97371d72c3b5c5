"""VizDoom's scenarios, rendered off-screen: tasks such as ``vizdoom/Basic``.

``observation/screen`` is ``[3, 60, 80]`` uint8, RGB, averaged over 2 x 2 pixels.
``observation/variables`` ``[K]`` float32 are the scenario's game variables, such as
health and ammunition, divided by 100. An action holds no button or one of the
scenario's buttons for 4 tics; a frame is a tic. The scenario's time limit truncates
episodes. Each copy runs in a process of VizDoom, which leaves an empty folder
``_vizdoom`` in the working directory.

Source: Kempka et al. 2016, "ViZDoom: A Doom-based AI Research Platform for Visual
Reinforcement Learning" (arXiv:1605.02097).
Differs from the paper: screens are smaller, and in colour. Buttons that take a number,
which only Deathmatch has, are not used. VizDoom does not render the final state of an
episode, so the final observation combines the previous step's screen with the final
variables.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.distribution import pip_install
from tengen.envs.env import Env
from tengen.envs.filmed import draw_screen
from tengen.envs.gymnasium_env import GymnasiumEnv, as_gymnasium
from tengen.envs.suites.suite import ListedSuite
from tengen.errors import UsageError

TICS = 4
"""Number of tics per step. The game of Doom runs at 35 tics per second."""
_PREFIX = "vizdoom/"
_SCENARIOS = {
    "Basic": "basic",
    "DeadlyCorridor": "deadly_corridor",
    "Deathmatch": "deathmatch",
    "DefendCenter": "defend_the_center",
    "DefendLine": "defend_the_line",
    "HealthGathering": "health_gathering",
    "HealthGatheringSupreme": "health_gathering_supreme",
    "MyWayHome": "my_way_home",
    "PredictPosition": "predict_position",
    "TakeCover": "take_cover",
}
_HEIGHT, _WIDTH = 60, 80
_HUNDRED = 100.0
_SCALE = 4
_FPS = 35.0 / TICS


class _Game:
    """One copy of a VizDoom scenario, with the methods of ``gymnasium.Env``."""

    def __init__(self, path: Path) -> None:
        import vizdoom
        from gymnasium import spaces

        self._game = game = vizdoom.DoomGame()
        game.load_config(str(path))
        # Otherwise VizDoom would write its settings to the working directory.
        game.set_doom_config_path(os.devnull)
        game.set_window_visible(False)
        game.set_sound_enabled(False)
        game.set_mode(vizdoom.Mode.PLAYER)
        game.set_screen_resolution(vizdoom.ScreenResolution.RES_160X120)
        game.set_screen_format(vizdoom.ScreenFormat.CRCGCB)
        game.init()
        buttons = game.get_available_buttons()
        binary = [i for i, b in enumerate(buttons) if not vizdoom.is_delta_button(b)]
        # Action 0 presses no button.
        presses = np.zeros((len(binary) + 1, len(buttons)))
        presses[np.arange(len(binary)) + 1, binary] = 1
        self._presses = presses.tolist()
        self._variables = game.get_available_game_variables()
        entries: dict[str, Any] = {
            "screen": spaces.Box(0, 255, (3, _HEIGHT, _WIDTH), np.uint8)
        }
        if self._variables:
            length = (len(self._variables),)
            entries["variables"] = spaces.Box(-np.inf, np.inf, length, np.float32)
        self.observation_space = spaces.Dict(entries)
        self.action_space = spaces.Discrete(len(presses))
        self._screen = np.zeros((3, _HEIGHT, _WIDTH), np.uint8)

    def reset(
        self, *, seed: int | None = None, options: Any = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begins an episode; see ``gymnasium.Env.reset``."""
        if seed is not None:
            # This seeds the generator from which the next episodes get their seeds.
            self._game.set_seed(seed)
        self._game.new_episode()
        return self._seen(), {}

    def step(
        self, action: Any
    ) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Holds the buttons of an action for ``TICS`` tics."""
        game = self._game
        reward = game.make_action(self._presses[int(action)], TICS)
        is_over = game.is_episode_finished()
        timeout = game.get_episode_timeout()
        is_cut = (
            is_over
            and 0 < timeout <= game.get_episode_time()
            and not game.is_player_dead()
        )
        return self._seen(), reward, is_over and not is_cut, is_cut, {}

    def close(self) -> None:
        """Ends the copy's VizDoom process."""
        self._game.close()

    def _seen(self) -> dict[str, Any]:
        state = self._game.get_state()
        if state is not None:
            self._screen = _halved(state.screen_buffer)
        seen: dict[str, Any] = {"screen": self._screen}
        if self._variables:
            values = [self._game.get_game_variable(one) for one in self._variables]
            seen["variables"] = np.array(values, np.float32) / _HUNDRED
        return seen


def _halved(screen: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Averages and rounds each 2 x 2 pixels of a screen: ``[3, H / 2, W / 2]``."""
    rows = screen[:, ::2].astype(np.uint16) + screen[:, 1::2]
    sums = rows[..., ::2] + rows[..., 1::2]
    halved: NDArray[np.uint8] = ((sums + 2) // 4).astype(np.uint8)
    return halved


def _path_of(name: str, short: str) -> Path:
    """Returns the path of a scenario's config file.

    Raises:
        UsageError: The config file or its ``.wad`` file does not exist.
    """
    import vizdoom

    path = Path(vizdoom.scenarios_path) / f"{_SCENARIOS[short]}.cfg"
    for part in (path, path.with_suffix(".wad")):
        if not part.exists():
            raise UsageError(
                f'environment ("{name}") needs a missing file: {part}; '
                f"{pip_install('--force-reinstall', 'vizdoom')}"
            )
    return path


class _VizDoom(ListedSuite):
    def maker_of_one(self, name: str) -> Callable[..., Any]:
        path = _path_of(name, self.short_name(name))
        kind: Any = as_gymnasium(_Game)
        return functools.partial(kind, path)


def _copies(name: str, num_envs: int, seed: int) -> Env:
    make_one = SUITE.maker_of_one(name)
    return GymnasiumEnv(
        make_one, num_envs, seed, name=name, frames_per_step=TICS, finds_masks=False
    )


SUITE = _VizDoom(
    prefix=_PREFIX,
    package="vizdoom",
    listed=tuple(_SCENARIOS),
    make_copies=_copies,
    observed="observation/screen",
    draw=functools.partial(draw_screen, scale=_SCALE),
    pictures_per_s=_FPS,
)
"""The suite of the tasks ``vizdoom/*``."""
