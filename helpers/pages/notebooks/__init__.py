"""The notebooks as files: their canonical form, the course as pages, a package made from the template."""
