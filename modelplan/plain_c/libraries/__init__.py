"""Libraries of kernels that plain C can call in place of its own."""
