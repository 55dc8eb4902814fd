"""Plans as one HTML file that answers questions: a map to zoom, the live set of each step, plans to switch between."""
