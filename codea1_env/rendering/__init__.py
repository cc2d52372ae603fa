"""An episode for human eyes: on the terminal, and as a page."""
