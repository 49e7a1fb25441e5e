"""What is read: lessons as files, the book, figures, pictures, the museum of bugs."""
