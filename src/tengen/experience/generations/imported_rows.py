from __future__ import annotations


class ImportedRows:
    pass
