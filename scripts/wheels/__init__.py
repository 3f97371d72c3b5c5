"""What makes the wheels and the sdist, and checks them.

- ``contents``: the tag, the size and the files of a wheel.
- ``machine_code``: the instructions and the libraries that its extension needs.
- ``interpreters``: the Pythons of this machine, and environments of theirs.
"""
