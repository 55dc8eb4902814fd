"""modelplan plans the memory of neural networks before they meet the device."""
