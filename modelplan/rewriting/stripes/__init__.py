"""Models computed stripe by stripe: layers, regions, stripes, programs and their memory, free of file formats."""
