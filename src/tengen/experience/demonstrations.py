"""Demonstrations: a folder of complete episodes from a person, a program or an agent.

The folder has a file ``demonstrations.json`` (``Contents``), and a file for each
episode, ``000000.npz``, ``000001.npz`` and so on, which ``numpy.load`` can open::

    observation         [T + 1, ...]  or observation/KEY for each entry of a nested one
    action_mask         [T + 1, A]    bool, the legal choices, if some may be illegal
    action              [T, ...]      int64 if discrete, float32 if continuous
    reward              [T]           float32, of action t; not clipped
    terminated          [T]           bool, whether action t led to a terminal state
    truncated           [T]           bool, whether a limit ended the episode after t
    life_lost           [T]           bool, only if the task's protocol has lives

``action[t]`` leads from ``observation[t]`` to ``observation[t + 1]``, as in
``tengen.envs.env``, and only the last step is terminated or truncated. A folder appears
when it is complete, and does not change afterwards.
"""

from __future__ import annotations

import hashlib
import json
import math
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from tengen.config import check, from_dict, to_dict
from tengen.envs import ActionSpec, Arrays, EnvSpec, legal_actions
from tengen.envs.copies import one_line
from tengen.errors import RunError, UsageError
from tengen.experience.games.archive import ArchiveReader, pack
from tengen.run import (
    check_writable,
    make_directory,
    publish_directory,
    read_object,
    remove_leftovers,
)
from tengen.tensors import ACTION_MASK, TensorSpec

_SCHEMA = 1
_NAME = "demonstrations.json"
_ADVICE = "record or import the demonstrations again"
_MAX_EPISODES = 1_000_000
_FLAGS = ("terminated", "truncated")
# Maximum size of demonstrations.json; an episode needs about 40 bytes.
_MOST_BYTES = 1 << 26
# Size limits of an episode's file beyond its arrays: meta.json and the end of the zip
# file; and for each column the headers, in which its name may occur three times.
_FILE_BYTES = 1024
_COLUMN_BYTES = 1024
_NAME_BYTES = 12


Episode: TypeAlias = Arrays
"""An episode: the arrays in the module docstring, by name."""


@dataclass(frozen=True, kw_only=True)
class Contents:
    """The contents of a folder of demonstrations, as in ``demonstrations.json``."""

    schema: int = _SCHEMA
    """Version of the format."""
    task: str
    """The environment, as in ``tengen train TASK``."""
    source: str
    """Who chose the actions, for people."""
    observations: dict[str, TensorSpec]
    """The arrays of one observation by name, including an action mask."""
    action: TensorSpec
    """The array of one action."""
    num_choices: tuple[int, ...]
    """Number of choices of each component of an action; empty if continuous."""
    returns: tuple[float, ...] = ()
    """The undiscounted return of each episode."""
    lengths: tuple[int, ...] = ()
    """The number of steps of each episode."""
    checksums: tuple[int, ...] = ()
    """The CRC-32 of each episode's file."""

    def __post_init__(self) -> None:
        """Raises UsageError if the arrays contradict each other."""
        count = sum(self.num_choices)
        mask = self.observations.get(ACTION_MASK)
        if self.num_choices:
            ActionSpec(shape=self.action.shape, num_choices=self.num_choices)
        check(
            mask is None or mask == TensorSpec(dtype="bool", shape=(max(1, count),)),
            ACTION_MASK,
            mask,
            f"must be bool [{count}], one for each choice; {_ADVICE}",
        )

    @staticmethod
    def of(spec: EnvSpec, source: str) -> Contents:
        """Returns the contents of a folder without episodes.

        Args:
            spec: The environment.
            source: Who chooses the actions, for people.
        """
        return Contents(
            task=spec.name,
            source=source,
            observations=spec.observation_tensors,
            action=spec.actions.tensor,
            num_choices=spec.actions.num_choices,
        )

    def most_bytes(self, num_steps: int) -> int:
        """Returns the maximum size of an episode and of its file, in bytes."""
        columns = self._columns(num_steps, has_lives=True)
        return _FILE_BYTES + sum(
            _COLUMN_BYTES
            + _NAME_BYTES * len(name)
            + np.dtype(dtype).itemsize * math.prod(shape)
            for name, (dtype, shape) in columns.items()
        )

    def _columns(
        self, num_steps: int, *, has_lives: bool
    ) -> dict[str, tuple[str, tuple[int, ...]]]:
        """Returns the dtype and shape of each array of an episode."""
        flags = (*_FLAGS, "life_lost") if has_lives else _FLAGS
        return {
            **{
                column: (spec.dtype, (num_steps + 1, *spec.shape))
                for column, spec in self.observations.items()
            },
            "action": (self.action.dtype, (num_steps, *self.action.shape)),
            "reward": ("float32", (num_steps,)),
            **dict.fromkeys(flags, ("bool", (num_steps,))),
        }

    def check_episode(self, episode: Episode, name: object) -> None:
        """Checks that an episode is complete and fits the environment.

        Args:
            episode: The episode.
            name: The episode's name, for error messages.

        Raises:
            UsageError: An array is missing or unknown, or has a wrong shape or dtype; a
                number is not finite; an action does not exist or is illegal; or the end
                is not at the last step.
        """

        def refuse(what: str, rule: str) -> UsageError:
            return UsageError(f"{what} of {name} {rule}; {_ADVICE}")

        num_steps = len(np.atleast_1d(episode.get("reward", np.zeros(0))))
        wanted = self._columns(num_steps, has_lives="life_lost" in episode)
        if num_steps == 0 or episode.keys() != wanted.keys():
            rule = f"must be {one_line(', '.join(wanted), 400)} of at least one step"
            raise refuse(f"columns ({one_line(', '.join(episode), 400)})", rule)
        for column, (dtype, shape) in wanted.items():
            array = episode[column]
            if (array.dtype.name, array.shape) != (dtype, shape):
                rule = f"must be {dtype} {list(shape)}"
                raise refuse(f"{column} ({array.dtype} {list(array.shape)})", rule)
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise refuse(f"{column} (not finite)", "must be finite")
        ends = episode["terminated"] | episode["truncated"]
        if ends[:-1].any() or not ends[-1]:
            rule = "must be terminated or truncated at the last step, and only there"
            raise refuse(f"end ({ends.sum()} in {num_steps} steps)", rule)
        action, choices = episode["action"], self.num_choices
        flat = action.reshape(num_steps, -1)
        if choices and not ((flat >= 0) & (flat < choices)).all():
            raise refuse("action", f"must be 0 to {one_line(np.array(choices) - 1)}")
        if ACTION_MASK in episode:
            mask = episode[ACTION_MASK][:-1]
            starts = np.cumsum((0, *choices[:-1]))
            if not np.logical_or.reduceat(mask, starts, axis=1).all():
                raise refuse(ACTION_MASK, "must have a legal choice in every step")
            if (legal_actions(action, mask, choices) != action).any():
                raise refuse("action", f"must be legal according to {ACTION_MASK}")


class Demonstrations:
    """A folder of demonstrations, whose episodes are read one at a time.

    Args:
        folder: The folder.

    Raises:
        UsageError: The folder has no demonstrations, or ``demonstrations.json`` is
            damaged or has a newer schema.

    Attributes:
        folder: The folder.
        contents: The task, the arrays, and each episode's return and length.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        path = folder / _NAME
        kept = read_object(
            path,
            "demonstrations",
            schema=_SCHEMA,
            advice=_ADVICE,
            error=UsageError,
            most_bytes=_MOST_BYTES,
        )
        self.contents = from_dict(Contents, kept, str(path))
        lengths, returns = self.contents.lengths, self.contents.returns
        checksums = self.contents.checksums
        num_steps = sum(max(0, length) for length in lengths)
        check(
            0 < len(lengths) == len(returns) == len(checksums) <= _MAX_EPISODES
            and min(lengths) > 0
            and num_steps < 2**40,
            "lengths",
            f"{len(lengths)} in {path}",
            f"must be those of 1 to {_MAX_EPISODES:,} episodes, with their returns and "
            f"checksums; {_ADVICE}",
        )

    @property
    def num_steps(self) -> int:
        """Total number of steps of all episodes."""
        return sum(self.contents.lengths)

    @property
    def digest(self) -> str:
        """The SHA-256 of ``contents``, which differs if any episode differs."""
        text = json.dumps(to_dict(self.contents), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def check_fits(self, spec: EnvSpec) -> None:
        """Checks that the episodes are of an environment, without reading them.

        Raises:
            UsageError: The task, the observations or the actions differ.
        """
        own, wanted = self.contents, Contents.of(spec, "")
        check(
            own.task == wanted.task,
            "demonstrations",
            f"of {one_line(own.task)}, in {self.folder}",
            f"must be of {wanted.task}; choose others",
        )
        for name in ("observations", "action", "num_choices"):
            given, needed = to_dict(own)[name], to_dict(wanted)[name]
            check(
                given == needed,
                name,
                f"{one_line(given, 400)}, in {self.folder}",
                f"must be {one_line(needed, 400)}, as {spec.name} has changed; "
                f"{_ADVICE}",
            )

    def episode(self, index: int) -> Episode:
        """Reads and checks an episode.

        Args:
            index: Index of the episode, counted from 0.

        Raises:
            UsageError: The file is missing, damaged, or not of this environment.
        """
        path, contents = _path(self.folder, index), self.contents
        try:
            most_bytes = contents.most_bytes(contents.lengths[index])
            with _EpisodeReader(path, most_bytes=most_bytes) as reader:
                checksum = zlib.crc32(reader.read_all())
                episode = {name: reader.read(name) for name in reader.names()}
        except RunError as error:
            raise UsageError(str(error)) from error
        for name, spec in contents.observations.items():
            # ``pack`` narrows unsigned columns.
            if name in episode and {episode[name].dtype.kind, spec.dtype[0]} == {"u"}:
                episode[name] = episode[name].astype(spec.dtype)
        contents.check_episode(episode, path)
        for what, found, wanted in (
            ("length", len(episode["reward"]), contents.lengths[index]),
            ("return", _return_of(episode), contents.returns[index]),
            ("checksum", checksum, contents.checksums[index]),
        ):
            if found != wanted:
                rule = f"must be {wanted}, as in {_NAME}"
                raise UsageError(f"{what} ({found}) of {path} {rule}; {_ADVICE}")
        return episode

    def __iter__(self) -> Iterator[Episode]:
        """Yields all episodes in order; see ``episode``."""
        return map(self.episode, range(len(self.contents.lengths)))


def write_demonstrations(
    folder: Path,
    spec: EnvSpec,
    record: Callable[[Callable[[Episode], None]], None],
    *,
    source: str,
) -> Demonstrations:
    """Writes a new folder of demonstrations. Blocks until it is durable.

    If the process is killed before the end, the folder does not exist.

    Args:
        folder: The folder, which must not exist. Its parents are created.
        spec: The environment of the episodes.
        record: Called once with a function ``add``; it passes each episode to ``add``,
            which writes the episode. ``tengen.evaluation.Recorder`` makes episodes.
        source: Who chooses the actions, for people.

    Raises:
        UsageError: The folder exists, there are no episodes or too many, or an episode
            does not fit ``spec``.
        RunError: Writing failed.
    """
    check_new_folder(folder)
    contents = Contents.of(spec, source)
    returns: list[float] = []
    lengths: list[int] = []
    checksums: list[int] = []

    def write(temporary: Path) -> None:
        def add(episode: Episode) -> None:
            index = len(lengths)
            check(index < _MAX_EPISODES, "episodes", index + 1, "are too many; stop")
            contents.check_episode(episode, f"episode {index}")
            data = pack({}, episode, deflates=True)
            _path(temporary, index).write_bytes(data)
            returns.append(_return_of(episode))
            lengths.append(len(episode["reward"]))
            checksums.append(zlib.crc32(data))

        record(add)
        check(bool(lengths), "episodes", 0, "must be at least 1; record one")
        counts = {"returns": returns, "lengths": lengths, "checksums": checksums}
        text = json.dumps({**to_dict(contents), **counts}, indent=1)
        (temporary / _NAME).write_text(text)

    place = folder.absolute()
    make_directory(place.parent)
    remove_leftovers(place.parent)
    publish_directory(place, write)
    return Demonstrations(folder)


def check_new_folder(folder: Path) -> None:
    """Raises UsageError if ``folder`` exists or cannot be created."""
    check(not folder.exists(), "out", folder, "exists already; choose another folder")
    check_writable(folder)


class _EpisodeReader(ArchiveReader):
    """A reader of an episode's file."""

    noun = "episode"

    @staticmethod
    def advice(path: Path) -> str:
        """See ``ArchiveReader.advice``."""
        return _ADVICE


def _return_of(episode: Episode) -> float:
    # Exact, because the order of a sum depends on the machine.
    return math.fsum(episode["reward"].tolist())


def _path(folder: Path, index: int) -> Path:
    return folder / f"{index:06d}.npz"
