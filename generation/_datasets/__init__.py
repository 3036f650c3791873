"""Data sets, learners and trainings of the benchmarks datasets-LEARNER."""
