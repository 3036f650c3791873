"""A search of scikit-learn's kind that starts from earlier ones. Needs the extra `sklearn`."""
