"""Generated pages of the documentation site, for mkdocs.yml and ``make docs``.

MkDocs calls ``hooks``; every other module generates one kind of page, or links.
"""
