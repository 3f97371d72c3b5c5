"""The modules that build the wheels and the sdist, and check them.

- ``contents``: the tag, the size and the files of a wheel.
- ``machine_code``: the instructions and libraries that a wheel's extension needs.
- ``interpreters``: this machine's Pythons, and virtual environments.
"""
