"""What a newcomer meets first: the measured parts and pictures of README.md, the lessons as Colab opens them."""
