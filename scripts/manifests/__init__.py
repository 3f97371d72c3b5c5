"""What scripts/check_manifests.py is made of.

``table`` has every name, port, image and size; ``pods``, ``jobs``, ``mpi`` and
``ray`` make the objects, ``files`` their files. ``renders`` has kubectl render the
overlays, and ``schemas`` validates each object.
"""
