"""The modules of scripts/check_manifests.py.

``table`` contains every name, port, image and size; ``pods``, ``jobs``, ``mpi`` and
``ray`` build the objects, ``files`` their files. ``renders`` renders the overlays with
kubectl, and ``schemas`` validates each object.
"""
