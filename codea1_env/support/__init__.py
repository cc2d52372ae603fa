"""What every part may use and that is no part of the game: caches, locks, names of classes of yours."""
