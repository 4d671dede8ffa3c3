"""A student's lab book: predictions, diagnoses and what came of them, in a file that is theirs."""
