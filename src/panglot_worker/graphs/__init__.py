"""Graph files: templates, TOML, the rules of wiring, pictures.

Pure functions of text, so that the front can check and draw a graph that a worker, or a user's own program with
`megflow.Graph`, will run: the grammar is defined once. Of this package they import only `files`.
"""

from __future__ import annotations
