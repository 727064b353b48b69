"""skipgrad against gensim and fastText: the same text, settings, machine, run and evaluator. `make bench`."""
