"""Creates the config of a new run as ``tengen train`` does, but not the run."""

from tengen.recipes.call import Call


def new_config(task, **arguments):
    """Returns the config of a new run without reading or writing any file.

    Takes the arguments of ``train_task``, which creates the same config. Does not check
    that the files named in the config exist.

    Raises:
        UsageError: An argument is invalid.
    """
    config = Call(task=task, **arguments).new_config()
    config.check_task()
    return config
