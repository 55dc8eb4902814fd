"""Models computed stripe by stripe: layers, stretches, stripes, programs and their memory, free of file formats."""
