"""The operators of the course: what each is, computes and reaches."""
