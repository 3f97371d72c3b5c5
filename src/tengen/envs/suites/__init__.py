"""Suites of environments, one file each; the package that each needs is an extra.

``tengen.envs.registry`` has the table. A suite's file imports its package when an
environment of it is first asked for.
"""
