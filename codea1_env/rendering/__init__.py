"""Renderings of an episode: on the terminal, and as a page."""
