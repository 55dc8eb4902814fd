"""Plans for several memories: which buffer lies in which region, and when it moves."""
