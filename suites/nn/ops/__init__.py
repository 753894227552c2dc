"""Entries of the NeuralNetwork dialect, one file per family."""
