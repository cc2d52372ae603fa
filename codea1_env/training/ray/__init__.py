"""A run whose language models compute on the nodes of a Ray cluster. Needs the extra ray."""
