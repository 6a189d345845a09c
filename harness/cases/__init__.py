"""The vocabulary of what is measured, the suite file that fills it, and what is to be done for a case."""
