"""Models in several memories: what is asked of them, and layouts that were saved, asked anew."""
