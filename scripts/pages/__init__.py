"""What the site of docs/ is made of beside its pages: mkdocs.yml and ``make docs``.

``hooks`` is what MkDocs calls; each of the others makes pages of one thing, or links.
"""
