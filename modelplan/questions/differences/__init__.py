"""What two models, or two ways to run one, differ in: memory by part, the peak, operators matched by structure."""
