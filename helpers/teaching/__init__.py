"""What a class needs: hand-outs, grading, the formats of platforms."""
