"""The game in trainers of other projects, and views of one side that they share."""
