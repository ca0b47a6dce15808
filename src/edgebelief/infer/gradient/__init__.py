"""The log posterior density with its gradient, and its maxima."""
