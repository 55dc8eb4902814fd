"""Why a model needs what it needs, and what would help: findings about plans, each figure from a plan that was made."""
