"""Suites of environments, one file each; the package that each needs is an extra.

``tengen.envs.registry`` has the table of suites. A suite's file imports its package
only when one of its environments is first used.
"""
