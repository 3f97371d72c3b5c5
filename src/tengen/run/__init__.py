"""The run directory: the files that all processes of a run share.

``RunDirectory`` defines the layout. ``publish_*`` write files and folders atomically:
readers see the old or the new content, never a partial write.
"""

from __future__ import annotations

from tengen.run.actor_counts import (
    ActorCounts,
    read_actor_counts,
    read_actor_totals,
    write_actor_totals,
)
from tengen.run.endpoints import (
    Endpoint,
    memory_root,
    read_endpoint,
    remove_services,
    run_identity,
    run_token,
    service_folder,
    write_endpoint,
)
from tengen.run.layout import SCHEMA, NumberedFolder, RunDirectory
from tengen.run.lock import WriterLock, close_owned, lock_holder, own_files
from tengen.run.machine import (
    MAX_THREADS,
    available_cores,
    keep_freed_memory,
    machine_line,
    usable_threads,
)
from tengen.run.mirrors import (
    MIRROR_FILE,
    MIRROR_SCHEMA,
    MirrorRecord,
    change_mirror,
    check_no_mirror,
    evict_mirrors,
    forget_mirror,
    has_mirror,
    read_mirrors,
    write_mirror,
)
from tengen.run.publish import (
    check_new_file,
    check_writable,
    make_directory,
    move_directory,
    publish_directory,
    publish_file,
    publish_json,
    remove_leftovers,
    storage_error,
    sync_directory,
)
from tengen.run.reading import (
    OtherKindError,
    file_sha256,
    find_files,
    newer_schema,
    open_regular,
    read_bounded,
    read_object,
    reading_file,
    remember_sha256,
)

__all__ = [
    "MAX_THREADS",
    "MIRROR_FILE",
    "MIRROR_SCHEMA",
    "SCHEMA",
    "ActorCounts",
    "Endpoint",
    "MirrorRecord",
    "NumberedFolder",
    "OtherKindError",
    "RunDirectory",
    "WriterLock",
    "available_cores",
    "change_mirror",
    "check_new_file",
    "check_no_mirror",
    "check_writable",
    "close_owned",
    "evict_mirrors",
    "file_sha256",
    "find_files",
    "forget_mirror",
    "has_mirror",
    "keep_freed_memory",
    "lock_holder",
    "machine_line",
    "make_directory",
    "memory_root",
    "move_directory",
    "newer_schema",
    "open_regular",
    "own_files",
    "publish_directory",
    "publish_file",
    "publish_json",
    "read_actor_counts",
    "read_actor_totals",
    "read_bounded",
    "read_endpoint",
    "read_mirrors",
    "read_object",
    "reading_file",
    "remember_sha256",
    "remove_leftovers",
    "remove_services",
    "run_identity",
    "run_token",
    "service_folder",
    "storage_error",
    "sync_directory",
    "usable_threads",
    "write_actor_totals",
    "write_endpoint",
    "write_mirror",
]
