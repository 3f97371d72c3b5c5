"""What scripts/check_manifests.py is made of: rendering, schemas, and checks.

``render`` makes the objects of an overlay, ``schemas`` validates each alone, and each
file of ``checks`` holds rules that tie several of them together, or to the project.
"""
