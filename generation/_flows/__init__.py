"""Trains the learners of OpenML flows on the data sets of its tasks."""
