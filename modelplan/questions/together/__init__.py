"""Several models in one memory: what is asked, and the plan for all of them, proved."""
