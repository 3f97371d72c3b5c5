"""The experience store: tables of items that processes share, in memory and on disk.

`Store` creates tables, or connects to tables of another process or host. See
`docs/reference/store.md` and `docs/reference/store_net.md`.
"""

from tengen.store.batch import Batch
from tengen.store.configs.rate_limits import RateLimits
from tengen.store.configs.store_config import StoreConfig
from tengen.store.configs.table_config import Column, Selector, TableConfig
from tengen.store.folders import left_columns
from tengen.store.replica import Replica
from tengen.store.sampler import Sampler
from tengen.store.step_writer import StepWriter
from tengen.store.store import Store
from tengen.store.table import Table
from tengen.store.waiting import StoreTimeout

__all__ = [
    "Batch",
    "Column",
    "RateLimits",
    "Replica",
    "Sampler",
    "Selector",
    "StepWriter",
    "Store",
    "StoreConfig",
    "StoreTimeout",
    "Table",
    "TableConfig",
    "left_columns",
]
