"""From a graph to a plan: who shares bytes, who is alive when, in which order, where."""
