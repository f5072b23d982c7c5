"""Find, open, create and list studies: what the command line, the server and notebooks share. Nothing here prints."""
