"""Models computed stripe by stripe: windows, regions, stripes, their memory and their search, free of file formats."""
