"""Names of tasks that a program passes as objects, for other processes to import."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tengen.errors import UsageError
from tengen.games import is_program
from tengen.games.program import load_program

_PATH = "PYTHONPATH"
_importing: list[str] = []


def task_name(task: Any) -> str:
    """Returns a task's name; a class or function is named ``module:Name``.

    Args:
        task: A name, a class or function at the top level of a module, a game, or an
            environment that Gymnasium made by its id without other arguments.

    Raises:
        UsageError: Another process could not make the same game or environment.
    """
    if isinstance(task, str):
        return task
    if inspect.isclass(task) or inspect.isfunction(task):
        return _name_of_code(task)
    if hasattr(task, "new_state") and isinstance(getattr(task, "name", None), str):
        return str(task.name)
    spec = getattr(task, "spec", None)
    if isinstance(getattr(spec, "id", None), str):
        return _name_of_environment(spec)
    kind = type(task)
    if kind.__module__ != "builtins" and _takes_nothing(kind):
        return _name_of_code(kind)
    raise UsageError(
        f"task (a {kind.__name__}) cannot be made again by other processes; pass a "
        "class or a function that makes it without arguments"
    )


def _takes_nothing(kind: type) -> bool:
    try:
        return not inspect.signature(kind).parameters
    except ValueError:  # a class in C
        return False


def _name_of_code(code: Any) -> str:
    name, module = code.__qualname__, code.__module__
    if module == "__main__":
        module = _name_of_script(name)
    if not name.isidentifier():
        raise UsageError(
            f"task ({name}) must be at the top level of a file, where other processes "
            "can import it; move it there"
        )
    return f"{module}:{name}"


def _name_of_script(name: str) -> str:
    main = sys.modules["__main__"]
    spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    if spec is not None:
        return str(spec.name)
    if file is None:
        raise UsageError(
            f"task ({name}) is defined in a notebook or a console, where other "
            "processes cannot import it; write it to a file and import that, in a "
            "notebook with %%writefile my_task.py"
        )
    return Path(file).stem


def _name_of_environment(spec: Any) -> str:
    import gymnasium

    registered = gymnasium.registry.get(spec.id)
    given = {key: value for key, value in spec.kwargs.items() if key != "render_mode"}
    usual = {} if registered is None else dict(registered.kwargs)
    usual.pop("render_mode", None)
    if registered is None or given != usual or spec.additional_wrappers:
        raise UsageError(
            f"task ({spec.id} with arguments or wrappers) cannot be made by its id; "
            "pass a function that makes it without arguments"
        )
    return str(spec.id)


@contextmanager
def importable(task: str) -> Iterator[None]:
    """Lets processes that are started inside import ``task``, if this process can.

    They do not share this process's ``sys.path``, which contains the folder of the
    script. So ``PYTHONPATH`` begins with the folder of the task's module.

    Raises:
        UsageError: The module cannot be imported, or trains when it is imported.
    """
    if _importing:
        raise UsageError(
            f"task ({_importing[-1]}) is in a script that trains when it is imported; "
            "move the call of train into a block if __name__ == '__main__'"
        )
    if not is_program(task):
        yield
        return
    _importing.append(task)
    try:
        load_program(task)
    finally:
        _importing.pop()
    before = os.environ.get(_PATH)
    folder = _import_folder(task.partition(":")[0])
    if folder is not None:
        paths = [folder, *([] if before is None else [before])]
        os.environ[_PATH] = os.pathsep.join(paths)
    try:
        yield
    finally:
        if before is not None:
            os.environ[_PATH] = before
        elif folder is not None:
            del os.environ[_PATH]


def _import_folder(name: str) -> str | None:
    """Returns the folder from which a module was imported; None if it has no file."""
    file = getattr(sys.modules[name], "__file__", None)
    if file is None:
        return None
    path = Path(file).resolve()
    is_package = path.stem == "__init__"
    return str(path.parents[name.count(".") + is_package])
