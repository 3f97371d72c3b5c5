"""Suites of environments, one module per suite.

``tengen.envs.registry`` lists the suites. A suite's module imports the suite's optional
package when one of its environments is first used.
"""
