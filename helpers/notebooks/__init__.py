"""The notebooks as files: their canonical form, the course as pages, and a package made from the template."""
