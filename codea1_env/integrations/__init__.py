"""The game in other people's trainers: one file for each of them, and views of one side that all of them share."""
