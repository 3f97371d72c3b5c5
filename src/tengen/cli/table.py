"""The table of commands, in the order of ``tengen --help``."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Command:
    """An entry of the command table: a command's name, function and help text."""

    name: str
    """The command's name on the command line, one or two words."""
    target: str
    """``module:function``. The command's arguments are declared by the module's
    ``<function>_arguments(parser)``, if it exists, or ``add_arguments(parser)``."""
    help: str
    """A short description for the list of commands."""
    rare: str = ""
    """Options that only ``--help-all`` shows, without ``--``, separated by spaces."""
    talks: bool = False
    """Whether the command prints even with ``--quiet``, because its output is its
    purpose: a protocol's responses, a script, or an address to connect to."""


_TRAIN_AND_WATCH = (
    Command(
        "train",
        "tengen.recipes.run:train",
        "train an agent from scratch",
        rare="recipe launch actors cpu-seconds demos devices",
    ),
    Command(
        "recipes",
        "tengen.recipes.command:recipes",
        "list what can be trained",
    ),
    Command(
        "status",
        "tengen.observe.status:status",
        "show a run's progress and its bottleneck",
    ),
    Command(
        "serve",
        "tengen.serve.command:serve",
        "watch runs and play in a browser",
        rare="name simulations threads",
        talks=True,
    ),
    Command(
        "report",
        "tengen.report.write:report",
        "write a run as one HTML page",
    ),
    Command(
        "curves",
        "tengen.observe.curves.table:curves",
        "write a run's curve as CSV",
    ),
    Command(
        "scale",
        "tengen.launch.scale_command:scale",
        "change the number of a run's actor processes",
    ),
    Command(
        "stop",
        "tengen.observe.status:stop",
        "make a run save its work and end",
    ),
)

_PLAY = (
    Command(
        "play",
        "tengen.play.command:play",
        "play against a trained agent",
        rare="devices set fresh threads",
        talks=True,
    ),
    Command(
        "players",
        "tengen.bundled.command:players",
        "list the trained players that are part of tengen",
    ),
    Command(
        "match",
        "tengen.evaluation.command:match",
        "play a match between two players",
        rare="answer-seconds turn-seconds turn-nodes tree-threads devices",
    ),
    Command(
        "analyse",
        "tengen.report.analyse:analyse",
        "review games: losses by phase, and the worst moves",
        rare="plies worst seed threads",
    ),
    Command(
        "book",
        "tengen.play.book:book",
        "find balanced openings for games",
        rare="within temperature threads",
    ),
    Command(
        "gtp",
        "tengen.play.gtp.command:gtp",
        "play Go with a model, for GTP controllers",
        rare="devices set fresh name resign-below",
        talks=True,
    ),
    Command(
        "gomocup",
        "tengen.play.gomocup.command:gomocup",
        "play gomoku with a model, for Gomocup managers",
        rare="devices set fresh",
        talks=True,
    ),
)

_MODELS_AND_DATA = (
    Command(
        "eval",
        "tengen.play.eval_command:evaluate",
        "measure an agent's return in its environment",
        rare="step-timeout max-steps act epsilon opponent threads",
    ),
    Command(
        "data export-onnx",
        "tengen.models.onnx_command:export_onnx",
        "export a model to ONNX for other programs",
    ),
    Command(
        "data import-minigo",
        "tengen.minigo.import_command:import_minigo",
        "import models and examples of MLPerf's minigo",
    ),
    Command(
        "demos record",
        "tengen.play.demos_command:demos_record",
        "record episodes of an agent or of yourself, to learn from",
        talks=True,
    ),
    Command(
        "demos play",
        "tengen.serve.record:demos_play",
        "record episodes that you play in a browser, to learn from",
        talks=True,
    ),
    Command(
        "demos import",
        "tengen.play.demos_command:demos_import",
        "import a Minari dataset as demonstrations",
    ),
    Command(
        "demos show",
        "tengen.play.demos_command:demos_show",
        "check demonstrations, and show what they contain",
    ),
    Command(
        "store",
        "tengen.roles.store:store",
        "serve a store of experience",
    ),
    Command(
        "store top",
        "tengen.roles.store:store_top",
        "show a store's contents, and which clients wait for it",
    ),
    Command(
        "store replicate",
        "tengen.roles.store:store_replicate",
        "keep a live copy of a store on another host in a local folder",
    ),
)

_GAMES_AND_ENVIRONMENTS_OF_YOUR_OWN = (
    Command(
        "game new",
        "tengen.cli.starters:game_new",
        "write a starter file for a game of your own",
    ),
    Command(
        "game check",
        "tengen.games.check.command:game_check",
        "check a game of your own, or one of OpenSpiel",
    ),
    Command(
        "env new",
        "tengen.cli.starters:env_new",
        "write a starter file for an environment of your own",
    ),
    Command(
        "env check",
        "tengen.envs.check.command:env_check",
        "check an environment, your own or an installed one",
    ),
)

_ROLES_OF_A_RUN = (
    Command(
        "selfplay",
        "tengen.roles.alone.command:selfplay",
        "one role: play games",
    ),
    Command(
        "actor",
        "tengen.roles.alone.command:actor",
        "one role: step environments",
    ),
    Command(
        "inference",
        "tengen.roles.alone.command:inference",
        "one role: evaluate the network for actors",
    ),
    Command(
        "shuffle",
        "tengen.roles.alone.command:shuffle",
        "one role: prepare batches",
    ),
    Command(
        "learn",
        "tengen.roles.alone.command:learn",
        "one role: learn from experience",
    ),
    Command(
        "export",
        "tengen.roles.alone.command:export",
        "one role: export candidates",
    ),
    Command(
        "gate",
        "tengen.roles.alone.command:gate",
        "one role: accept or reject models",
    ),
)

_TOOLS = (
    Command(
        "doctor",
        "tengen.cli.doctor:doctor",
        "show what tengen will use on this machine, and why",
    ),
    Command(
        "bench",
        "tengen.cli.bench.command:bench",
        "measure a component's speed",
    ),
    Command(
        "mllog",
        "tengen.minigo.log:mllog",
        "write a benchmark run's log in MLPerf's form",
    ),
    Command(
        "completion",
        "tengen.cli.completion:completion",
        "print a shell's completion script",
        talks=True,
    ),
)

GROUPS = {
    "Train and watch": _TRAIN_AND_WATCH,
    "Play": _PLAY,
    "Models and data": _MODELS_AND_DATA,
    "Games and environments of your own": _GAMES_AND_ENVIRONMENTS_OF_YOUR_OWN,
    "Roles of a run, each as a process of its own": _ROLES_OF_A_RUN,
    "Tools": _TOOLS,
}
"""The commands of each group, by its heading."""

COMMANDS = tuple(command for group in GROUPS.values() for command in group)
"""All commands."""
