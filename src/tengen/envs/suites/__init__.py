"""Suites of environments, one module per suite.

``tengen.envs.registry`` has the table of suites. Each suite needs an optional package,
which its module imports at the first use of one of its environments.
"""
