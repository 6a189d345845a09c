"""A phone at a steady pace: cool before it is measured, held while it is, and evidence that it was."""
