"""Plans for several memories: which buffer lies in which, what is copied when, and how long a run takes."""
