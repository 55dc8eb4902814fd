"""What each operator becomes: the kernel that is called for it, with its tables and what its rows depend on."""
