"""Memory budgets of a project's models: the file that states them, the judgement, and what a model needed before."""
