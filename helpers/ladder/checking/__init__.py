"""Is a tensor right? `checker.check` runs a kernel, `compare` decides, `hints` guesses the cause of an error."""
