"""``tengen serve``: a web page that shows runs, and on which people play models.

Nothing here changes a run. The web framework is imported when the command runs, and
only by the modules below this one.
"""

from __future__ import annotations

from tengen.serve.limits import Limits

__all__ = ["Limits"]
