"""A students' release: the kit without answers, as a folder, an archive and a site."""
