"""The arguments of a ``tengen train`` call, and the checks of its config."""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tengen.config import check, check_range, to_dict
from tengen.errors import UsageError
from tengen.inference import check_machine, devices_of, has_driver
from tengen.launch import (
    Budget,
    launcher_of,
)
from tengen.minigo.history import has_calls, note_call
from tengen.minigo.opponent import checked_target
from tengen.observe.curves.charts import check_wandb
from tengen.recipes.registry import USUAL_THREADS, make_config, recipe_of
from tengen.recipes.resolve import (
    fresh_config,
    grows_by_recipe,
    identity,
    resolved,
    sets,
)
from tengen.roles import RunConfig, change_config, read_config, write_config
from tengen.roles.config.run_file import asked_generations, with_asked_generations
from tengen.roles.devices import check_devices, move_run, possible_inference
from tengen.roles.experience import check_room
from tengen.roles.inputs import (
    checked_book,
    checked_initial_model,
    checked_source,
    keep_book,
)
from tengen.run import RunDirectory, check_no_mirror, check_writable

# Far above any realistic budget, and far below integer overflow.
_MAX_MINUTES = 10_000_000
_MAX_GAMES = 1_000_000_000
_MAX_FRAMES = 1_000_000_000_000


@dataclass(kw_only=True)
class Call:
    """The arguments of a ``tengen train`` call; ``train_task`` describes them.

    Raises:
        UsageError: A number is out of range, or the launcher does not support that
            number of actors.
    """

    task: str
    agent: str | None = None
    recipe: str | None = None
    launch: str | None = None
    actors: int | None = None
    minutes: float | None = None
    cpu_seconds: float | None = None
    games: int | None = None
    frames: int | None = None
    out: Path | str | None = None
    seed: int | None = None
    demos: Path | str | None = None
    threads: int | None = None
    devices: str | None = None
    settings: Sequence[str] = ()
    known: RunConfig | None = field(init=False, default=None)
    """The run's config before this call; None for a new run."""
    told: list[str] = field(init=False, default_factory=list)
    """Messages to show to the user once the config has been written."""
    _book: bytes | None = field(init=False, default=None)
    _fits_generations: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        """Checks numeric arguments; converts some arguments to settings."""
        check(
            self.launch != "inline" or self.actors is None or self.actors == 1,
            "actors",
            self.actors,
            "must be 1 if roles take turns; use --launch local",
        )
        check(
            self.minutes is None or 0 < self.minutes <= _MAX_MINUTES,
            "minutes",
            self.minutes,
            f"must be above 0 and at most {_MAX_MINUTES}; 10 suits a first run",
        )
        check(
            self.cpu_seconds is None or 0 < self.cpu_seconds <= 60 * _MAX_MINUTES,
            "cpu-seconds",
            self.cpu_seconds,
            f"must be above 0 and at most {60 * _MAX_MINUTES}; 1200 suits a first run",
        )
        for name, most in (("games", _MAX_GAMES), ("frames", _MAX_FRAMES)):
            if (number := getattr(self, name)) is not None:
                check_range(name, number, 0, most, "leave it out")
        first = [] if self.seed is None else [f"seed={self.seed}"]
        if self.actors is not None:
            first.append(f"launch.roles.actor.count={self.actors}")
        if self.demos is not None:
            # Not resolved, because another host may have other symlinks.
            path = os.path.abspath(self.demos)
            first.append(f"store.demos={json.dumps(path)}")
        self.settings = [*first, *self.settings]

    @property
    def only_makes(self) -> bool:
        """Whether the call only writes the config, and does not train."""
        return self.games == 0 or self.frames == 0

    def open(self) -> RunDirectory:
        """Returns the new or existing run directory, after checking that it is usable.

        Raises:
            UsageError: The directory cannot be used.
        """
        check(self.out != "", "out", "", "must be a folder; use . for the current one")
        name = self.task.replace(":", "_")
        run = RunDirectory(Path("runs") / name if self.out is None else Path(self.out))
        check_writable(run.path)
        check_no_mirror(run)
        run.check_new()
        return run

    def new_config(self, num_threads: int = USUAL_THREADS) -> RunConfig:
        """Returns the config of a new run, without reading files.

        Args:
            num_threads: The number of cores to use.

        Raises:
            UsageError: The task, the agent, the recipe or a setting is not valid.
        """
        fresh = fresh_config(
            *(self.task, self.agent, self.recipe, self.settings),
            seconds=Budget(
                minutes=self.minutes, cpu_seconds=self.cpu_seconds
            ).seconds_on(num_threads),
            games=self.games,
            frames=self.frames,
            num_threads=num_threads,
        )
        config = resolved(fresh, self.settings)
        self.check_budget(config)
        return config

    def changed_config(self, run: RunDirectory) -> RunConfig:
        """Returns the config of a resumed run, with the settings of this call.

        Raises:
            UsageError: The run's task or agent differs, or a setting is not valid.
        """
        kept = read_config(run)
        agent, recipe = self.agent, self.recipe
        if agent is None:
            # To resume a run, the user need not repeat the agent.
            recipe = recipe or recipe_of(kept, self.task)
            agent = kept.agent.kind if kept.task == self.task else None
        fresh = make_config(self.task, agent, recipe)
        known = with_asked_generations(run, kept)
        # Add the recipe's stages only if the user sets none.
        grown = known
        if not sets(self.settings, "agent.stages"):
            grown = grows_by_recipe(run, known, fresh)
        if grown != known:
            self.told.append(
                f"{run.path} is from an earlier version, and its network now grows; "
                "--set 'agent.stages=[]' keeps its size"
            )
        self.known = grown
        given, theirs = identity(fresh), identity(grown)
        for name in ("task", "agent"):
            wanted, kept_name = given[name], theirs[name]
            if wanted != kept_name:
                raise UsageError(
                    f"{name} ({wanted}) must be {kept_name}, that of the run at "
                    f"{run.path}; choose another --out"
                )
        config = change_config(grown, self.settings)
        self.check_budget(config)
        return config

    def check_budget(self, config: RunConfig) -> None:
        """Checks that a budget in games or frames fits the kind of task.

        Raises:
            UsageError: The budget has games for an environment, or frames for a game.
        """
        schedule = config.schedule
        counts_games = not schedule.counts_frames
        check(
            bool(schedule.acting) or not self.games,
            "games",
            self.games,
            "must be left out if the run plays no games; use --minutes",
        )
        check(
            self.games is None or counts_games,
            "games",
            self.games,
            "must be left out for an environment; use --frames",
        )
        check(
            self.frames is None or not counts_games,
            "frames",
            self.frames,
            "must be left out for a game; use --games",
        )

    def checked(self, config: RunConfig, run: RunDirectory) -> RunConfig:
        """Checks the config for this machine and completes it; writes nothing.

        Paths become absolute, and unset machine-dependent settings are filled in.

        Raises:
            UsageError: A setting does not work on this machine.
        """
        for part in (
            self._games,
            self._learner_and_store,
            self._devices,
            self._observe,
            self._inference,
            self._task,
            self._launcher,
            self._room,
        ):
            config = part(config, run)
        return config

    def publish(self, config: RunConfig, run: RunDirectory) -> None:
        """Writes the config, and a copy of its opening book, into the run.

        Args:
            config: The config that ``checked`` returned.
            run: The run; the caller holds its locks.

        Raises:
            RunError: A file operation fails.
        """
        if self._book is not None and config.games is not None:
            keep_book(run, self._book, config.games.book)
        sizes = {} if config.games is None else config.games.generation_sizes()
        settings = [*(f"agent.actor.{name}" for name in sizes), "store.min_rows"]
        is_set = sets(self.settings, *settings)
        generation = asked_generations(run, config, is_set=is_set)
        self._fits_generations = generation is not None
        write_config(
            run,
            config,
            keeps_asked=not sets(self.settings, "inference"),
            generation=generation,
        )
        run.write_code()
        run.clear_stop()
        # Standalone roles need the record even if this call only writes the config.
        num_models = config.schedule.num_models
        if num_models or has_calls(run):
            note_call(run, to_dict(config), trains=not self.only_makes)
        if num_models and not self.only_makes and not config.schedule.opponent:
            self.told.append(
                "agent.target.opponent is empty, so models are trained without an "
                "opponent; set it now, or in a later call"
            )

    def budget(self, config: RunConfig) -> Budget:
        """Returns the call's budget, or the recipe's minutes if the call has none."""
        models = config.schedule.num_models or None
        given = (self.minutes, self.cpu_seconds, self.games, self.frames, models)
        is_open = all(limit is None for limit in given)
        return Budget(
            minutes=config.minutes if is_open else self.minutes,
            cpu_seconds=self.cpu_seconds,
            games=self.games,
            frames=self.frames,
            models=models,
            fits_generations=self._fits_generations,
        )

    def _games(self, config: RunConfig, run: RunDirectory) -> RunConfig:
        if config.games is None:
            return config
        config = checked_source(config)
        is_typed = sets(self.settings, "agent.target.opponent")
        config = checked_target(config, run, self.known, is_typed=is_typed)
        config, self._book = checked_book(config, run)
        return config

    def _learner_and_store(self, config: RunConfig, run: RunDirectory) -> RunConfig:
        config = checked_initial_model(config, run)
        return dataclasses.replace(config, store=config.store.checked(config.task))

    def _devices(self, config: RunConfig, run: RunDirectory) -> RunConfig:
        # On a cluster, each role detects its GPUs when it starts.
        is_on_cluster = self.launch is not None and launcher_of(self.launch).package
        is_here = not (self.only_makes or is_on_cluster)
        config = move_run(run, config, self.devices, is_here=is_here)
        if is_here:
            check_devices(config)
        return config

    def _observe(self, config: RunConfig, run: RunDirectory) -> RunConfig:
        check_wandb(config.observe)
        return config

    def _inference(self, config: RunConfig, run: RunDirectory) -> RunConfig:
        if sets(self.settings, "inference"):
            check_machine(config.inference)
            return config
        possible = possible_inference(run, config.inference)
        return dataclasses.replace(config, inference=possible)

    def _task(self, config: RunConfig, run: RunDirectory) -> RunConfig:
        config.check_task()
        config.family.check_given(run)
        return config

    def _launcher(self, config: RunConfig, run: RunDirectory) -> RunConfig:
        has_actors = self.actors is not None
        self.launch = self.launch or launch_for(config, has_actors=has_actors)
        if self.known is not None and self.launch == "ray" and not self.only_makes:
            check_typed_cluster(self.known, self.settings, run.path)
        count = f"launch.roles.{config.schedule.acting}.count"
        launcher = launcher_of(self.launch)
        return launcher.fit(config, keeps_count=sets(self.settings, count))

    def _room(self, config: RunConfig, run: RunDirectory) -> RunConfig:
        assert self.launch is not None
        if self.only_makes:
            return config
        launcher = launcher_of(self.launch)
        # On a cluster, the learner checks its own host's memory and disk instead.
        if not launcher.package:
            room = check_room(config, run, at_once=not launcher.takes_turns)
            self.told.extend([room] if room else [])
        # If the run is training, it uses its ports itself; taking its lock fails later.
        if run.is_new or run.lock_holder("train") is None:
            launcher.check_doors(config)
        return config


def check_typed_cluster(
    known: RunConfig, settings: Sequence[str], source: object
) -> None:
    """Rejects a Ray cluster address or runtime environment that the user did not type.

    A run may come from an untrusted source. A process that joins a cluster runs the
    cluster's code, and a runtime environment can start programs and install packages.

    Args:
        known: The run's config before this call.
        settings: The call's settings.
        source: The run, for the message.

    Raises:
        UsageError: The config has a setting of this kind that the call does not set.
    """
    for name in ("launch.address", "launch.runtime_env"):
        kept = getattr(known.launch, name.removeprefix("launch."))
        if kept and not sets(settings, name):
            raise UsageError(
                f"{name} ({kept}) of {source} starts programs, and is used only if you "
                f"name it; add --set {shlex.quote(f'{name}={kept}')}, or --set {name}= "
                "for none"
            )


def launch_for(config: RunConfig, *, has_actors: bool = False) -> str:
    """Returns the default launcher of a run.

    The default is ``local`` if acting uses a GPU, because acting and learning can then
    overlap; if the number of actors is given or above 1, because actors are separate
    processes; or if ``launch.listen`` is set, because other machines can only join
    while all roles run. Otherwise it is ``inline``.

    Args:
        config: The run's config.
        has_actors: Whether the call sets the number of actors.
    """
    schedule = config.schedule
    has_many = has_actors or config.launch.of(schedule.acting).count > 1
    # Detecting a GPU imports torch, which is slow, so check for a driver first.
    may_choose = config.inference.devices == "auto" and has_driver()
    is_on_gpu = config.inference.is_on_gpu or (
        may_choose and devices_of(config.inference, config.net) != "cpu"
    )
    wants_to = is_on_gpu or bool(config.launch.listen)
    return "local" if has_many or wants_to else "inline"
